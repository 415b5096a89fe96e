"""Comparisons with the values of a list, which clients send as one parameter, as IN.

    x = ANY(ARRAY['a', 'b'])        x IN ('a', 'b')
    x <> ALL($1)                    x NOT IN (..)
    x = ANY('{a,b}'::text[])        x IN ('a', 'b')

Only lists that are written or bound are read; of an empty one nothing is a member. A list may be
one text, in PostgreSQL's form.
"""

import re
from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from planner.sql.messages import origin

_ITEM: Final = re.compile(
    r"""\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>(?:[^\s",{}\\]|\\.)(?:(?:[^",{}\\]|\\.)*(?:[^\s",{}\\]|\\.))?))\s*[,}]""",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})", re.ASCII)


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
    element: exp.DataType | None = None
    if isinstance(inner, exp.Cast) and inner.to.this == exp.DType.ARRAY:
        element = inner.to.expressions[0] if inner.to.expressions else None
        inner = inner.this.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        return _written_items(inner, element)
    return list(inner.expressions) if isinstance(inner, exp.Array) else None


def _written_items(text: exp.Literal, element: exp.DataType | None) -> list[exp.Expr] | None:
    """The values of a list that is one text, each cast to the type of its elements, if named."""
    try:
        items = list_items(text.name)
    except ValueError:
        return None
    values: list[exp.Expr] = []
    for item in items:
        value: exp.Expr = exp.null() if item is None else exp.Literal.string(item)
        value.meta.update(origin(text))
        is_text = element is None or element.this in exp.DataType.TEXT_TYPES
        is_number = element is not None and element.this in exp.DataType.NUMERIC_TYPES
        if item is not None and is_number and _NUMBER.fullmatch(item) is not None:
            number = exp.Literal.number(item.lstrip("+-"))
            value = exp.paren(exp.Neg(this=number), copy=False) if item[0] == "-" else number
        elif item is not None and not is_text:
            value = exp.cast(value, element.copy() if element is not None else "text")
        values.append(value)
    return values


def list_items(text: str) -> list[str | None]:
    r"""The items of a list as PostgreSQL writes it in one text, None for NULL.

    >>> list_items('{a, "b,c", NULL, "null"}')
    ['a', 'b,c', None, 'null']

    Raises
    ------
    ValueError
        If it is no list of one dimension.
    """
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}") and len(inner) > 1):
        raise ValueError(text)
    if not inner[1:-1].strip():
        return []
    found: list[str | None] = []
    place = 1
    while True:
        match = _ITEM.match(inner, place)
        if match is None:
            raise ValueError(text)
        bare = match["bare"]
        if bare is None:
            found.append(_ESCAPED.sub(r"\1", match["quoted"]))
        else:
            is_null = bare.upper() == "NULL"
            found.append(None if is_null else _ESCAPED.sub(r"\1", bare))
        place = match.end()
        if inner[place - 1] == "}":
            break
    if place != len(inner):
        raise ValueError(text)
    return found
