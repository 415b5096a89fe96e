"""Comparisons with the values of a list, which clients send as one parameter, as IN.

    x = ANY(ARRAY['a', 'b'])        x IN ('a', 'b')
    x <> ALL($1)                    x NOT IN (..)

Only lists that are written or bound are read; of an empty one nothing is a member.
"""

from collections.abc import Iterable

from sqlglot import exp

from planner.sql.messages import origin


def read_lists(nodes: Iterable[exp.Expr]) -> bool:
    """Put IN in the place of every comparison with a list; whether there was any.

    Parameters
    ----------
    nodes : iterable of Expr
        All nodes of a tree.
    """
    has_read = False
    for node in nodes:
        if not isinstance(node, exp.EQ | exp.NEQ):
            continue
        is_equal = isinstance(node, exp.EQ)
        items = _items(node.expression, ("ANY", "SOME") if is_equal else ("ALL",))
        if items is None:
            continue
        found: exp.Expr = exp.false()
        if items:
            found = exp.In(this=node.this, expressions=items)
        found.meta.update(origin(node))
        node.replace(found if is_equal else exp.paren(exp.Not(this=found), copy=False))
        has_read = True
    return has_read


def _items(compared: exp.Expr, words: tuple[str, ...]) -> list[exp.Expr] | None:
    """The values of a list behind one of some words; None if it is no such list."""
    if isinstance(compared, exp.Any) and "ANY" in words:
        inner = compared.this.unnest()
    elif isinstance(compared, exp.Anonymous) and compared.name.upper() in words:
        inner = compared.expressions[0].unnest() if len(compared.expressions) == 1 else compared
    else:
        return None
    if isinstance(inner, exp.Cast) and inner.to.this == exp.DType.ARRAY:
        inner = inner.this.unnest()
    return list(inner.expressions) if isinstance(inner, exp.Array) else None
