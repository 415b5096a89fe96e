"""What a quantile is of: a column with an order, perhaps scaled, and its levels as numbers.

A quantile of ``a * x + b`` with a above 0 is that of x, scaled; so are casts to types that hold
every value. Days and moments are numbered from the column's first, and become days and moments
again in the SQL around the answer.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from cube.axis import Axis, DateAxis, IntegerAxis, MeasureAxis, NumericAxis, TimestampAxis
from cube.refusals import UnsupportedSql
from cube.schema import Schema
from planner.domain.polynomials import Polynomial, polynomial_of
from planner.domain.scratchpad import columns_of
from planner.sql.messages import shown, unsupported

_IDENTITY = (Fraction(0), Fraction(1))
_AFFINE = 2  # coefficients

Calendar: TypeAlias = DateAxis | TimestampAxis


@dataclass(frozen=True, slots=True)
class OrderedColumn:
    """A column, and the numbers that its regular levels stand for.

    Parameters
    ----------
    column : Column
    axis : Axis
    levels : tuple of float
        In increasing order.
    upper : tuple of float
        The upper ends of levels that are bins.
    """

    column: exp.Column
    axis: Axis
    levels: tuple[float, ...]
    upper: tuple[float, ...]


def ordered_column(value: exp.Expr, call: exp.Expr, schema: Schema) -> OrderedColumn:
    """The column that the expression `value` of a quantile `call` orders by.

    Raises
    ------
    UnsupportedSql
        If it is not an increasing linear function of one ordered column.
    """
    names = columns_of(value)
    axis = schema.by_name[names[0]] if len(names) == 1 else None
    if isinstance(axis, DateAxis | TimestampAxis) and isinstance(value.unnest(), exp.Column):
        numbers = tuple(map(float, range(axis.n_regular)))
        return OrderedColumn(_column(value), axis, numbers, ())
    if not isinstance(axis, IntegerAxis | NumericAxis | MeasureAxis):
        raise _no_column(call)
    polynomial = polynomial_of(value, axis)
    if polynomial is None or len(polynomial.coefficients) > _AFFINE:
        raise _no_column(call)
    levels = _scaled(axis.regular, polynomial)
    if levels is None:
        raise _no_column(call)
    upper = axis.edges[1:] if isinstance(axis, NumericAxis) else ()
    return OrderedColumn(_column(value), axis, levels, _scaled(upper, polynomial) or ())


def calendar_of(value: exp.Expr, schema: Schema) -> Calendar | None:
    """The column whose levels a quantile's numbers are; None if they are no days or moments."""
    column = value.unnest()
    axis = schema.by_name[column.name] if isinstance(column, exp.Column) else None
    return axis if isinstance(axis, DateAxis | TimestampAxis) else None


def as_level(number: exp.Expr, calendar: Calendar) -> exp.Expr:
    """The day or moment with a number, counted from the column's first."""
    kind = exp.DType[calendar.sql_type]
    origin = exp.cast(exp.Literal.string(str(calendar.low)), kind, copy=False)
    after: exp.Expr = exp.cast(number, exp.DType.INT, copy=False)
    if isinstance(calendar, TimestampAxis):
        step = exp.Interval(this=exp.Literal.string("1"), unit=exp.var(calendar.step.upper()))
        after = exp.Mul(this=after, expression=step)
    return exp.paren(exp.Add(this=origin, expression=after), copy=False)


def _column(value: exp.Expr) -> exp.Column:
    return next(value.find_all(exp.Column))


def _scaled(levels: tuple[float, ...], polynomial: Polynomial) -> tuple[float, ...] | None:
    """Increasing numbers for increasing levels; None if they do not increase."""
    if polynomial.coefficients == _IDENTITY:
        return tuple(map(float, levels))
    if len(polynomial.coefficients) < _AFFINE or polynomial.coefficients[1] <= 0:
        return None
    shift, scale = map(float, polynomial.coefficients)
    return tuple(shift + scale * level for level in levels)


def _no_column(call: exp.Expr) -> UnsupportedSql:
    return unsupported(
        call,
        "is a quantile of something else than a numeric column, perhaps scaled, or one of days or "
        "moments",
        f"Name a column, as in {shown(exp.Median(this=exp.column('x')))}; its functions can be "
        "computed from the answer.",
    )
