"""Positions of levels as trees of SQL: for each axis, what rows are grouped by, and its level.

What a level means is the same as for a file (axis_sql.py): the conformance tests hold both to one
oracle. A column with few values is grouped as it is, so that each value is encoded once; numbers
and moments are encoded first, unless the rows have few of them. Besides positions there are the
codes `LEFT_OUT` and `WRONG_TYPE`.

For the bin of a number, and the nearest level of a measure, numbers are doubles, compared with the
doubles nearest to what the owner wrote; those of a decimal column with digits behind the point are
compared exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Final

from sqlglot import exp

from cube.axis import (
    STEPS,
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    Rounding,
    TimestampAxis,
)
from proxy.sources.axis_sql import (
    DECIMAL_DIGITS,
    DECIMAL_MAX,
    LEFT_OUT,
    REALS,
    WRONG_TYPE,
    ZONED,
    SourceColumn,
)
from proxy.sources.pushdown.dialect import (
    BIG,
    PLACE,
    VALUE,
    Dialect,
    between,
    both,
    call,
    case,
    clamped,
    decimal,
    minus,
    name,
    plus,
    text,
    times,
    whole,
)

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


N_CASES_MAX: Final = 32  # levels that are compared one by one; more are joined


@dataclass(frozen=True, slots=True)
class Position:
    """How one axis is encoded.

    Parameters
    ----------
    key : Expression
        What rows are grouped by, from the table's columns.
    level : Expression
        The position, or one of the two codes, from the column `key_of` of the grouped rows.
    levels : Expression, optional
        A relation of levels that `level` needs, by the name `levels_of`.
    of_few : Position, optional
        The same encoding for rows with few values: they are grouped by these, which are encoded
        afterwards. None if that is how it is, or no gain.
    """

    key: exp.Expr
    level: exp.Expr
    levels: exp.Expr | None = None
    of_few: "Position | None" = None


def key_of(place: int) -> exp.Column:
    """The column of an axis's key."""
    return exp.column(f"key_{place}")


def levels_of(place: int) -> str:
    """The name of an axis's relation of levels."""
    return f"levels_{place}"


def same_text(place: int) -> exp.Expr:
    """The condition by which a key is joined to its level."""
    return exp.EQ(this=key_of(place), expression=exp.column(VALUE, table=levels_of(place)))


def position(axis: Axis, column: SourceColumn, place: int, dialect: Dialect) -> Position:
    """The encoding of the axis at a place of the schema.

    Raises
    ------
    TooManyEdgesError
        If the engine cannot look for a number among so many edges.
    """
    raw = name(column.sql)
    key = key_of(place)
    match axis:
        case CategoryAxis():
            return _category(axis, dialect.text(raw), place, dialect)
        case IntegerAxis() if column.type_name in REALS:
            return _encoded(axis, raw, place, partial(_whole_place, axis, column, dialect), dialect)
        case NumericAxis() | MeasureAxis():
            bucket = bucket_of(axis, column, raw, dialect)
            if bucket is not None:
                return Position(bucket, _coded(axis, key, place_in_bucket(axis, key)))
            return _encoded(axis, raw, place, partial(number_place, axis, column, dialect), dialect)
        case IntegerAxis():
            low, high = whole(axis.low), whole(axis.high)
            found = case(((between(key, low, high), minus(key, low)),))
        case BooleanAxis():
            found = case(((key, whole(1)),), whole(0))
        case DateAxis():
            low, high = (exp.cast(text(day.isoformat()), "DATE") for day in (axis.low, axis.high))
            found = case(((between(key, low, high), dialect.days_since(axis.low, key)),))
        case TimestampAxis():
            return _encoded(axis, raw, place, partial(_step, axis, column, dialect), dialect)
        case _:
            raise TypeError(f"{type(axis).__name__} cannot be read from a source")
    return Position(raw, _coded(axis, key, found))


def _encoded(
    axis: Axis, raw: exp.Expr, place: int, found: Callable[[exp.Expr], exp.Expr], dialect: Dialect
) -> Position:
    """An encoding before rows are grouped, and the one after that."""
    key = key_of(place)
    after = None
    if dialect.about_how_many(raw) is not None:
        after = Position(raw, _coded(axis, key, found(key)))
    return Position(_coded(axis, raw, found(raw)), key, of_few=after)


def _coded(axis: Axis, value: exp.Expr, found: exp.Expr) -> exp.Expr:
    """A position found, or that of NULL or of OTHER, or a code."""
    outside = LEFT_OUT if axis.other_position is None else axis.other_position
    null = outside if axis.null_position is None else axis.null_position
    is_null = exp.Is(this=value.copy(), expression=exp.null())
    level = call("coalesce", found, whole(outside))
    return exp.cast(case(((is_null, whole(null)),), level), "INT")


def _category(axis: CategoryAxis, raw: exp.Expr, place: int, dialect: Dialect) -> Position:
    key = key_of(place)
    listed = dialect.place_in_list(key, axis.values)
    if listed is not None:
        return Position(raw, _coded(axis, key, listed))
    if len(axis.values) > N_CASES_MAX:
        found: exp.Expr = exp.column(PLACE, table=levels_of(place))
        levels = dialect.levels(axis.values, levels_of(place))
        return Position(raw, _coded(axis, key, found), levels)
    cases = (
        (exp.EQ(this=key, expression=text(value)), whole(level))
        for level, value in enumerate(axis.values)
    )
    return Position(raw, _coded(axis, key, case(cases)))


def _whole_place(
    axis: IntegerAxis, column: SourceColumn, dialect: Dialect, raw: exp.Expr
) -> exp.Expr:
    """The position of a whole number among numbers that may have digits behind the point."""
    is_unbounded = column.type_name == "DECIMAL" and column.decimal_places is None
    is_exact = column.decimal_places is not None
    value = raw if is_exact else dialect.as_double(raw, is_unbounded=is_unbounded)
    within = between(value, whole(axis.low), whole(axis.high))
    inside = case(((within, exp.cast(minus(value, whole(axis.low)), "BIGINT")),))
    found = case(((exp.not_(exp.paren(is_whole(value))), whole(WRONG_TYPE)),), inside)
    return found if is_exact else case(((dialect.is_finite(value), found),))


def _step(axis: TimestampAxis, column: SourceColumn, dialect: Dialect, raw: exp.Expr) -> exp.Expr:
    """The step that a moment is in, on the clock of the axis."""
    low, end = axis.low, axis.high + STEPS[axis.step]
    if column.type_name == ZONED:
        moment = dialect.on_clock(str(axis.time_zone), raw)
    else:
        moment = exp.cast(raw.copy(), "TIMESTAMP")
    begins, ends = (exp.cast(text(str(one)), "TIMESTAMP") for one in (low, end))
    is_in = both(exp.GTE(this=moment, expression=begins), exp.LT(this=moment, expression=ends))
    found = case(((is_in, dialect.steps_since(low, axis.step, moment)),))
    if column.type_name != "DATE":
        return found
    # A date may be too late for a time.
    days = (exp.cast(text(one.date().isoformat()), "DATE") for one in (low, end))
    return case(((between(raw, *days), found),))
