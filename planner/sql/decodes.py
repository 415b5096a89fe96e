"""DECODE as other databases have it, written as CASE.

    DECODE(x, 'a', 1, NULL, 2, 0)
    CASE WHEN x IS NULL THEN 2 ELSE CASE x WHEN 'a' THEN 1 ELSE 0 END END

NULL is found by NULL, unlike in CASE. PostgreSQL's own DECODE(text, 'hex') makes bytes, of which no
column is; it is left as it is, and refused as other functions are.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sqlglot import exp

from cube.refusals import TooLarge
from planner.sql.messages import origin, position, shown

N_COPIED_MAX = 1000  # nodes: what is compared is written out for each value that is no literal


def read_decodes(nodes: Iterable[exp.Expr]) -> bool:
    """Put CASE in the place of every DECODE with values and results; whether there was any.

    Parameters
    ----------
    nodes : iterable of Expr
        All nodes of a tree, from the root down.
    """
    found = [node for node in nodes if isinstance(node, exp.DecodeCase)]
    for node in reversed(found):  # inner ones first: what is copied is counted with them
        written = _as_case(node)
        written.meta.update(origin(node))
        node.replace(written)
    return bool(found)


def _as_case(node: exp.DecodeCase) -> exp.Expr:
    compared, *others = node.expressions
    default = others.pop() if len(others) % 2 else None
    pairs = [(value.unnest(), result) for value, result in list(pairwise(others))[::2]]
    if all(isinstance(value, exp.Null) or _is_literal(value) for value, _ in pairs):
        return _of_literals(node, compared, pairs, default)
    _check_copies(node, compared, len(pairs))
    branches = [
        exp.If(this=exp.NullSafeEQ(this=compared.copy(), expression=value), true=result)
        for value, result in pairs
    ]
    return exp.Case(ifs=branches, default=default)


def _of_literals(
    node: exp.DecodeCase,
    compared: exp.Expr,
    pairs: Sequence[tuple[exp.Expr, exp.Expr]],
    default: exp.Expr | None,
) -> exp.Expr:
    """CASE that compares once, within one that looks for NULL if that is among the values."""
    at_null = next((result for value, result in pairs if isinstance(value, exp.Null)), None)
    branches = [
        exp.If(this=value, true=result)
        for value, result in pairs
        if not isinstance(value, exp.Null)
    ]
    found: exp.Expr | None = default
    if branches:
        found = exp.Case(this=compared, ifs=branches, default=default)
    if at_null is None:
        return exp.null() if found is None else found
    _check_copies(node, compared, 2)
    is_null = exp.Is(this=compared.copy(), expression=exp.null())
    return exp.Case(ifs=[exp.If(this=is_null, true=at_null)], default=found)


def _is_literal(node: exp.Expr) -> bool:
    if isinstance(node, exp.Neg | exp.Cast):
        return _is_literal(node.this.unnest())
    return isinstance(node, exp.Literal | exp.Boolean)


def _check_copies(node: exp.DecodeCase, compared: exp.Expr, n_copies: int) -> None:
    """Refuse what would be written out many times, since nesting multiplies the copies."""
    n_nodes = sum(1 for _ in compared.walk())
    if n_copies > 1 and n_nodes * n_copies > N_COPIED_MAX:
        raise TooLarge(
            f"{shown(node)} compares an expression of {n_nodes} words and signs, once for each of "
            f"{n_copies} values; {N_COPIED_MAX} words are written out.",
            hint="Compute the expression in a subquery, and compare its column.",
            position=position(node),
        )
