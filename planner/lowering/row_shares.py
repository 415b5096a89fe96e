"""What one private row adds to a linear answer: ``1`` to COUNT(*), ``x`` to SUM(x).

The sum of these shares over all rows is the answer. Used where a SELECT of groups becomes one of
rows (`nested_sums.py`); what is no sum of shares, such as ``COUNT(*) + 1``, has none.
"""

from dataclasses import dataclass

from sqlglot import exp

from cube.schema import Schema
from planner.sql.exact_number import constant_value
from planner.sql.nodes import copy_of

_REAL_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})


@dataclass(frozen=True, slots=True)
class RowShare:
    """What one row adds to an answer, and whether the answer counts the rows that have it."""

    value: exp.Expr
    is_count: bool


def row_share(node: exp.Expr, schema: Schema) -> RowShare | None:
    """What one row adds to a linear answer; None if it is no such answer."""
    node = node.unnest()
    condition = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    share = _counted(node, schema)
    if share is None and condition is None:
        value = _combined(node, schema)
        return None if value is None else RowShare(value, is_count=False)
    if share is None or condition is None:
        return share
    own = exp.Case(ifs=[exp.If(this=copy_of(condition), true=share.value)])
    return RowShare(own, share.is_count)


def _counted(node: exp.Expr, schema: Schema) -> RowShare | None:
    """What one row adds to a COUNT or a SUM."""
    inner = node.this
    if isinstance(node, exp.Count) and isinstance(inner, exp.Distinct) and not node.expressions:
        inner = inner.expressions[0] if len(inner.expressions) == 1 else None
        is_row = _is_unit(inner, schema) and schema.rows_per_unit_max == 1
        return RowShare(exp.Literal.number(1), is_count=True) if is_row else None
    if not isinstance(inner, exp.Expr) or node.expressions or inner.find(exp.AggFunc):
        return None
    if isinstance(node, exp.CountIf):
        return RowShare(_one_if(copy_of(inner)), is_count=True)
    if isinstance(node, exp.Count):
        is_every_row = isinstance(inner, exp.Star | exp.Literal) or _is_unit(inner, schema)
        value = exp.Literal.number(1) if is_every_row else _one_if(_is_known(inner))
        return RowShare(value, is_count=True)
    if isinstance(node, exp.Sum) and not isinstance(inner, exp.Star):
        return RowShare(copy_of(inner), is_count=False)
    return None


def _one_if(condition: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))])


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(value), expression=exp.null()))


def _is_unit(node: exp.Expr | None, schema: Schema) -> bool:
    return (
        isinstance(node, exp.Column)
        and schema.unit is not None
        and node.name.casefold() == schema.unit.casefold()
    )


def _combined(node: exp.Expr, schema: Schema) -> exp.Expr | None:
    """What one row adds to a difference, a sum or a multiple of counts and sums."""
    if isinstance(node, exp.Mul):
        sides = (node.this, node.expression)
        constants = [constant_value(side) is not None for side in sides]
        shares = [
            copy_of(side) if is_constant else _added(side, schema)
            for side, is_constant in zip(sides, constants, strict=True)
        ]
        return _binary(node, shares) if sum(constants) == 1 else None
    if isinstance(node, exp.Add | exp.Sub):
        return _binary(node, [_added(side, schema) for side in (node.this, node.expression)])
    if isinstance(node, exp.Neg):
        value = _added(node.this, schema)
        return None if value is None else exp.Neg(this=value)
    return _added(node.this, schema) if _is_padded(node) else None


def _binary(node: exp.Expr, sides: list[exp.Expr | None]) -> exp.Expr | None:
    left, right = sides
    return None if left is None or right is None else type(node)(this=left, expression=right)


def _is_padded(node: exp.Expr) -> bool:
    """Whether it is a cast that changes no answer, or COALESCE with constants."""
    if isinstance(node, exp.Cast):
        return node.to.this in _REAL_TYPES and not node.to.expressions
    return isinstance(node, exp.Coalesce) and all(
        constant_value(padding) is not None for padding in node.expressions
    )


def _added(node: exp.Expr, schema: Schema) -> exp.Expr | None:
    """What one row adds to an answer, 0 where it adds nothing."""
    share = row_share(node, schema)
    if share is None:
        return None
    if isinstance(share.value, exp.Literal):
        return share.value
    return exp.Coalesce(this=share.value, expressions=[exp.Literal.number(0)])
