"""The bin of a number, and the nearest level of a measure, as trees: what number_sql.py says.

Numbers are doubles, compared with the doubles nearest to what the owner wrote; those of a decimal
column with digits behind the point are compared exactly.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from sqlglot import exp

from cube.axis import MeasureAxis, NumericAxis, Rounding
from proxy.sources.number_sql import DECIMAL_DIGITS, DECIMAL_MAX
from proxy.sources.pushdown.dialect import Dialect
from proxy.sources.pushdown.trees import (
    BIG,
    between,
    both,
    call,
    case,
    clamped,
    decimal,
    minus,
    plus,
    times,
    whole,
)
from proxy.sources.source_column import SourceColumn

LEAST: Final = 1e-200  # moves no guess, and lets no quotient be too small for a double


class TooManyEdgesError(Exception):
    """An engine has no search among so many edges."""


def bucket_of(
    axis: NumericAxis | MeasureAxis, column: SourceColumn, raw: exp.Expr, dialect: Dialect
) -> exp.Expr | None:
    """The number of edges of bins that a number reaches, if the engine finds it by itself.

    It is all that a row has to be asked: below the first bin it is 0, above the last one more than
    there are bins, and `place_in_bucket` says the rest of each group of rows.
    """
    if isinstance(axis, MeasureAxis) or column.decimal_places is not None:
        return None
    value = dialect.as_double(raw, is_unbounded=column.type_name == "DECIMAL")
    return dialect.bucket(value, axis.regular, axis.edges[-1])


def place_in_bucket(axis: NumericAxis | MeasureAxis, bucket: exp.Expr) -> exp.Expr:
    """The position of a bin, from `bucket_of`; NULL outside of all."""
    inside = between(bucket, whole(1), whole(axis.n_regular))
    return case(((inside, minus(bucket, whole(1))),))


def number_place(
    axis: NumericAxis | MeasureAxis, column: SourceColumn, dialect: Dialect, raw: exp.Expr
) -> exp.Expr:
    """The position of a number that is not NULL; NULL where it has none.

    Parameters
    ----------
    axis : NumericAxis or MeasureAxis
    column : SourceColumn
    dialect : Dialect
    raw : Expression
        The column.

    Raises
    ------
    TooManyEdgesError
    """
    if isinstance(axis, NumericAxis) and column.decimal_places is not None:
        return _decimal_bin(axis, raw, column.decimal_places, dialect)
    if isinstance(axis, MeasureAxis):
        exact = _decimal_level(axis, column, raw, dialect)
        if exact is not None:
            return exact
    is_unbounded = column.type_name == "DECIMAL" and column.decimal_places is None
    value = dialect.one_zero(dialect.as_double(raw, is_unbounded=is_unbounded))
    if isinstance(axis, MeasureAxis) and axis.rounding is not None:
        found: exp.Expr = _rounded(value, axis.n_regular, axis.rounding, dialect)
    elif isinstance(axis, MeasureAxis):
        edges = [dialect.double(one) for one in axis.rounding_points]
        found = plus(call("coalesce", _place(value, edges, dialect), whole(-1)), whole(1))
    else:
        within = exp.LTE(this=value, expression=dialect.double(axis.edges[-1]))
        found = case(
            ((within, _place(value, [dialect.double(one) for one in axis.regular], dialect)),)
        )
    return case(((dialect.is_finite(value), found),))


def _place(value: exp.Expr, edges: list[exp.Expr], dialect: Dialect) -> exp.Expr:
    if len(edges) > dialect.n_edges_max:
        raise TooManyEdgesError
    return dialect.place(value, edges)


def _decimal_bin(axis: NumericAxis, raw: exp.Expr, places: int, dialect: Dialect) -> exp.Expr:
    """Among the least decimals of bins, and up to the largest of the last.

    A bin that begins beyond every decimal of the column is found by none.
    """
    written = [Fraction(repr(edge)) * 10**places for edge in axis.edges]
    end = min(math.floor(written[-1]), DECIMAL_MAX)
    first = [max(math.ceil(edge), -DECIMAL_MAX) for edge in written[:-1]]
    within = exp.LTE(this=raw.copy(), expression=_scaled(max(end, -DECIMAL_MAX), places))
    edges = [_scaled(edge, places) for edge in first if edge <= end]
    found = _place(raw, edges, dialect) if edges else exp.null()
    return case(((within, found),))


def _scaled(units: int, places: int) -> exp.Expr:
    value = Decimal(units).scaleb(-places, Context(prec=DECIMAL_DIGITS))
    return decimal(value, DECIMAL_DIGITS, places)


def _rounded(value: exp.Expr, n_levels: int, rounding: Rounding, dialect: Dialect) -> exp.Expr:
    """The level of a measure by arithmetic: half a million edges are slow to search.

    The quotient is less than a level from the right one; comparing with the two rounding points
    beside it finds that one exactly.
    """
    first, step, unit = rounding.first, rounding.step, rounding.unit
    last = n_levels - 1

    def point(level: exp.Expr) -> exp.Expr:
        units = plus(whole(first), times(level, whole(step)))
        return exp.Div(this=exp.cast(units, "DOUBLE"), expression=dialect.double(unit), typed=True)

    lowest, highest = dialect.double(first / unit), dialect.double((first + n_levels * step) / unit)
    within = plus(call("greatest", lowest, call("least", highest, value)), dialect.double(LEAST))
    units = minus(times(within, dialect.double(unit)), dialect.double(first))
    quotient = exp.Floor(this=exp.Div(this=units, expression=dialect.double(step), typed=True))
    near = clamped(exp.cast(quotient, BIG), 0, last)
    above = exp.GTE(this=value.copy(), expression=point(plus(near, whole(1))))
    below = exp.LT(this=value.copy(), expression=point(near))
    moved = plus(near, case(((above, whole(1)), (below, whole(-1))), whole(0)))
    return clamped(moved, 0, last)


def _decimal_level(
    axis: MeasureAxis, column: SourceColumn, raw: exp.Expr, dialect: Dialect
) -> exp.Expr | None:
    """The level of a measure of decimals, exactly; None if that takes too many digits.

    It is the whole part of ``(x * unit - first) / step``, with whole numbers but for x, and so of
    the whole part of ``x * unit``, less `first`, by `step`.
    """
    places, rounding = column.decimal_places, axis.rounding
    if places is None or rounding is None:
        return None
    low, high = math.floor(axis.low) - 1, math.ceil(axis.high) + 1
    digits = len(str(max(abs(low), abs(high)))) + places
    n_unit = len(str(rounding.unit))
    if digits + n_unit > DECIMAL_DIGITS:
        return None
    least, most = (_scaled(end * 10**places, places) for end in (low, high))
    bounded = call("greatest", least, call("least", most, raw))
    within = exp.cast(bounded, f"DECIMAL({digits}, {places})")
    unit = exp.cast(whole(rounding.unit), f"DECIMAL({n_unit}, 0)")
    units = exp.cast(exp.Floor(this=times(within, unit)), BIG)
    level = dialect.divided(minus(units, whole(rounding.first)), rounding.step)
    return case(((dialect.is_number(raw), clamped(level, 0, axis.n_regular - 1)),))


def is_whole(value: exp.Expr) -> exp.Expr:
    """Whether a finite number is whole; doubles beyond 2**53 are."""
    floor = exp.Floor(this=value.copy())
    is_large = exp.GT(this=call("abs", value), expression=whole(2**53))
    return exp.or_(is_large, both(exp.EQ(this=value.copy(), expression=floor)))
