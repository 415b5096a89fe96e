"""COUNT and SUM of an expression as products of summands and conditions.

A `Product` stands for the sum over records of ``scale * summands * [all conditions hold]``. CASE,
FILTER and WHERE all become conditions, constants move out, and sums and products over different
columns are separated; so equivalent expressions are measured once, on as few levels as possible.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from cube.axis import DateAxis
from cube.query import N_TERMS_MAX
from cube.refusals import TooLarge
from cube.schema import Schema
from cube.timestamps import TimestampAxis
from planner.domain.scratchpad import columns_of
from planner.lowering.products import connected
from planner.sql.date_functions import Age, DateBin, TimeBucket
from planner.sql.exact_number import constant_value, divided_by_zero, is_written_whole
from planner.sql.messages import position, shown

_OF_TIME = (
    exp.Interval,
    exp.TimestampTrunc,
    exp.LastDay,
    exp.DateFromParts,
    Age,
    TimeBucket,
    DateBin,
)
_STRICT = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Column, exp.Identifier, exp.Literal)
_TIMES = frozenset({exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.INTERVAL})


@dataclass(frozen=True, slots=True)
class Product:
    """``scale`` times the product of summands, over records for which every condition holds."""

    scale: Fraction
    summands: tuple[exp.Expr, ...]
    conditions: tuple[exp.Expr, ...]


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that are joined by AND, from left to right."""
    pending = [condition]
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        else:
            yield node


def counted(expression: exp.Expr, scale: Fraction, conditions: tuple[exp.Expr, ...]) -> Product:
    """COUNT(expression): the number of records for which it is not NULL."""
    expression = expression.unnest()
    branch = _single_branch(expression, empty_is_zero=False)
    if branch is not None:
        holds, value = branch
        return counted(value, scale, (*conditions, *conjuncts(holds)))
    if isinstance(expression, exp.Literal | exp.Boolean | exp.Star):
        return Product(scale, (), conditions)
    known = [_is_not_null(column) for column in _strict_columns(expression)]
    return Product(scale, (), (*conditions, *(known or [_is_not_null(expression)])))


def _strict_columns(expression: exp.Expr) -> list[exp.Column]:
    """The columns of arithmetic that is NULL where one of them is, and only there; none for others.

    A condition on each is cheaper than one on all combinations of their levels.
    """
    nodes = list(expression.walk())
    if not all(isinstance(node, _STRICT) for node in nodes):
        return []
    return [node for node in nodes if isinstance(node, exp.Column)]


def summed(
    expression: exp.Expr, scale: Fraction, conditions: tuple[exp.Expr, ...], schema: Schema
) -> list[Product]:
    """SUM(expression), in which a record counts 0 if the expression is NULL."""
    expression = expression.unnest()
    constant = constant_value(expression)
    if constant is not None:
        return [Product(scale * constant, (), conditions)]
    if isinstance(expression, exp.Neg):
        return summed(expression.this, -scale, conditions, schema)
    branch = _single_branch(expression, empty_is_zero=True)
    if branch is not None:
        holds, value = branch
        return summed(value, scale, (*conditions, *conjuncts(holds)), schema)
    if isinstance(expression, exp.Mul | exp.Div):
        apart = _factors_apart(expression, scale, conditions, schema)
        if apart is not None:
            return apart
    parts = _sums_apart(expression, schema)
    if len(parts) == 1:
        return [Product(scale, (expression,), conditions)]
    products = []
    for part in parts:
        # The whole is NULL where any part is NULL, so each part counts only where the others are
        # not.
        others = [other for other in parts if other is not part]
        beside = [_is_not_null(other) for other in others if _may_be_null(other, schema)]
        products += summed(part, scale, (*conditions, *beside), schema)
    return products


def _sums_apart(expression: exp.Expr, schema: Schema) -> list[exp.Expr]:
    """Expressions over different columns that add up to `expression`; constants go with the first.

    >>> from sqlglot import parse_one
    >>> from cube.axis import IntegerAxis
    >>> axes = tuple(IntegerAxis(name=name, low=0, high=9) for name in "ab")
    >>> schema = Schema(table="t", axes=axes, n_records_max=100)
    >>> [part.sql() for part in _sums_apart(parse_one("a - b / 4 + 2 * a + 1"), schema)]
    ['a + 2 * a + 1', '-(b / 4)']
    """
    addends = list(_addends(expression, schema, negative=False))
    scopes = [columns_of(addend) for addend in addends]
    mentioning = [place for place, scope in enumerate(scopes) if scope]
    groups = connected([scopes[place] for place in mentioning])
    if len(groups) <= 1:
        return [expression]
    constants = [addend for addend, scope in zip(addends, scopes, strict=True) if not scope]
    parts = [[addends[mentioning[member]] for member in group] for group in groups]
    parts[0] += constants
    return [reduce(_plus, part) for part in parts]


def _addends(expression: exp.Expr, schema: Schema, *, negative: bool) -> Iterator[exp.Expr]:
    node = expression.unnest()
    if isinstance(node, exp.Add | exp.Sub) and not any(
        _is_of_time(operand, schema) for operand in (node.this, node.expression)
    ):
        yield from _addends(node.this, schema, negative=negative)
        is_taken_off = isinstance(node, exp.Sub)
        yield from _addends(node.expression, schema, negative=negative ^ is_taken_off)
    elif isinstance(node, exp.Neg):
        yield from _addends(node.this, schema, negative=not negative)
    elif isinstance(node, exp.Sub) and (days := _days_apart(node, schema)) is not None:
        later, earlier, between = days
        yield from _addends(later, schema, negative=negative)
        yield from _addends(earlier, schema, negative=not negative)
        yield from _addends(between, schema, negative=negative)
    else:
        yield exp.Neg(this=exp.paren(node.copy())) if negative else node.copy()


def _days_apart(difference: exp.Sub, schema: Schema) -> tuple[exp.Expr, exp.Expr, exp.Expr] | None:
    """The days of two columns from their middle days, and those between these; None for others.

    So a sum of differences is two rows of numbers, not one over all pairs of days; and both are as
    small as they can be, since their largest values add up in the bound of the cost.
    """
    columns = [difference.this.unnest(), difference.expression.unnest()]
    if not all(isinstance(one, exp.Column) for one in columns):
        return None
    axes = [schema.by_name[one.name] for one in columns]
    if axes[0] is axes[1]:
        return None
    middles = [axis.low + (axis.high - axis.low) / 2 for axis in axes if isinstance(axis, DateAxis)]
    if len(middles) < len(columns):
        return None
    later, earlier = (
        exp.Sub(
            this=column.copy(),
            expression=exp.cast(exp.Literal.string(middle.isoformat()), exp.DType.DATE),
        )
        for column, middle in zip(columns, middles, strict=True)
    )
    n_days = (middles[0] - middles[1]).days
    between = exp.Literal.number(abs(n_days))
    return later, earlier, between if n_days >= 0 else exp.Neg(this=between)


def _is_of_time(expression: exp.Expr, schema: Schema) -> bool:
    """Whether an expression is a day, a moment or an interval: those do not add up like numbers."""
    node = expression.unnest()
    if isinstance(node, exp.Column):
        return isinstance(schema.by_name[node.name], DateAxis | TimestampAxis)
    if isinstance(node, exp.Cast):
        return node.to.this in _TIMES
    if isinstance(node, exp.Sub):  # the difference of two days is a number
        return _is_of_time(node.this, schema) and not _is_of_time(node.expression, schema)
    if isinstance(node, exp.Add | exp.Coalesce | exp.Greatest | exp.Least | exp.Nullif):
        return any(_is_of_time(part, schema) for part in node.iter_expressions())
    if isinstance(node, exp.Case):
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        return any(_is_of_time(branch, schema) for branch in branches)
    return isinstance(node, _OF_TIME)


def _plus(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Add(this=one, expression=other)


def _factors_apart(
    product: exp.Binary, scale: Fraction, conditions: tuple[exp.Expr, ...], schema: Schema
) -> list[Product] | None:
    """A product with a constant, or of expressions over different columns; None if it is neither.

    A product is NULL where a factor is, and a summand that is NULL counts 0: no condition is lost.
    """
    left, right = product.this, product.expression
    by = constant_value(right)
    if isinstance(product, exp.Div):
        if by == 0:
            raise divided_by_zero(product)
        if by is None or is_written_whole(right):
            return None  # whether the division truncates depends on the left side's type
        return summed(left, scale / by, conditions, schema)
    if by is not None:
        return summed(left, scale * by, conditions, schema)
    by = constant_value(left)
    if by is not None:
        return summed(right, scale * by, conditions, schema)
    if not _share_nothing(product):
        return None
    lefts, rights = summed(left, scale, conditions, schema), summed(right, Fraction(1), (), schema)
    if len(lefts) * len(rights) > N_TERMS_MAX:
        raise TooLarge(
            f"{shown(product)} is a sum of {len(lefts) * len(rights)} products of columns; "
            f"{N_TERMS_MAX} are allowed.",
            hint="Ask for its parts as separate columns.",
            position=position(product),
        )
    return [
        Product(
            one.scale * other.scale,
            one.summands + other.summands,
            one.conditions + other.conditions,
        )
        for one in lefts
        for other in rights
    ]


def _share_nothing(binary: exp.Binary) -> bool:
    """Whether both sides mention columns, and none in common."""
    left, right = set(columns_of(binary.this)), set(columns_of(binary.expression))
    return bool(left) and bool(right) and left.isdisjoint(right)


def _single_branch(case: exp.Expr, *, empty_is_zero: bool) -> tuple[exp.Expr, exp.Expr] | None:
    """Condition and value of ``CASE WHEN .. THEN .. END`` if otherwise it contributes nothing."""
    if not isinstance(case, exp.Case) or case.this is not None or len(case.args["ifs"]) != 1:
        return None
    otherwise = case.args.get("default")
    nothing = otherwise is None or isinstance(otherwise.unnest(), exp.Null)
    if otherwise is not None and empty_is_zero:
        nothing = nothing or constant_value(otherwise) == 0
    branch = case.args["ifs"][0]
    return (branch.this, branch.args["true"]) if nothing else None


def _is_not_null(expression: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(expression.copy()), expression=exp.null()))


def _may_be_null(expression: exp.Expr, schema: Schema) -> bool:
    """False only if the expression is surely not NULL on any level."""
    expression = expression.unnest()
    if isinstance(expression, exp.Literal | exp.Boolean):
        return False
    if isinstance(expression, exp.Column):
        return schema.by_name[expression.name].null
    if isinstance(expression, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Paren | exp.Abs):
        return any(_may_be_null(part, schema) for part in expression.iter_expressions())
    return True
