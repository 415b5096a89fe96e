"""Positions of levels as trees of SQL: for each axis, what rows are grouped by, and its level.

What a level means is the same as for a file (axis_sql.py): the conformance tests hold both to one
oracle. A column with few values is grouped as it is, so that each value is encoded once; numbers
and moments are encoded first, unless the rows have few of them. Besides positions there are the
codes `LEFT_OUT` and `WRONG_TYPE`.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
    TimestampAxis,
)
from proxy.sources.axis_sql import LEFT_OUT, REALS, WRONG_TYPE, ZONED
from proxy.sources.pushdown.dialect import PLACE, VALUE, Dialect
from proxy.sources.pushdown.numbers import (
    bucket_of,
    is_whole,
    number_place,
    place_in_bucket,
)
from proxy.sources.pushdown.trees import between, both, call, case, minus, name, text, whole
from proxy.sources.source_column import SourceColumn

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
