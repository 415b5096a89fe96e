"""SQL that turns a column of the source into positions of levels, one expression per axis.

The expressions are made from the public declaration, and from how SQL sees the column, alone;
nothing here runs them. Besides positions there are two codes: `LEFT_OUT` for a value without a
level, `WRONG_TYPE` for a value that is not of the axis's type.

For the bin of a number, and the nearest level of a measure, numbers are doubles, compared with the
doubles nearest to what the owner wrote. Those of a DECIMAL column are compared exactly, as
decimals, whatever the number of their digits; unless a measure's steps and its column's digits
together are more than a DECIMAL holds.
"""

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

import pyarrow as pa

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
from proxy.sources.closed import text_sql
from proxy.sources.searching import Search

DECIMAL_DIGITS_MAX: Final = 38  # the most that a DECIMAL of DuckDB has


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the source.

    Parameters
    ----------
    sql : str
        The SQL that names it.
    type_name : str
        Its type, without parameters.
    decimal_places : int, optional
        The digits behind the point, if it is a DECIMAL.
    missing : str
        SQL for whether it has no value, if `sql` may be NULL for a value that is no number.
    decimal_digits : int
        All of its digits, if it is a DECIMAL: at most so many.
    decimal_sign : str
        What stands before the decimals of a number in text.
    """

    sql: str
    type_name: str
    is_csv: bool
    decimal_places: int | None = None
    missing: str = ""
    decimal_digits: int = DECIMAL_DIGITS_MAX
    decimal_sign: str = "."


DECIMAL_DIGITS: Final = DECIMAL_DIGITS_MAX
SHORT_DIGITS: Final = 18  # of a DECIMAL that is a machine word: twenty times as fast
EXACT: Final = Context(prec=DECIMAL_DIGITS)
DECIMAL_MAX: Final = 10**DECIMAL_DIGITS - 1  # in units of its last digit


def number_sql(
    axis: NumericAxis | MeasureAxis, value: str, place: int, column: SourceColumn
) -> tuple[str, Search | None]:
    """SQL for a position, NULL where a number has none, and the search that it needs.

    Parameters
    ----------
    value : str
        SQL for the number as a double, NULL if it is not finite.
    place : int
        The axis's place in the schema.
    """
    if isinstance(axis, NumericAxis) and column.decimal_places is not None:
        search, last = _among_decimals(axis, column.sql, column.decimal_places)
        return f"CASE WHEN {column.sql} <= {last} THEN {search.found(place)} END", search
    if isinstance(axis, NumericAxis):
        search, last = _among(value, axis.regular), _double(axis.edges[-1])
        return f"CASE WHEN value_{place} <= {last} THEN {search.found(place)} END", search
    exact = _decimal_level(axis, column)
    if exact is not None:
        return exact, None
    if axis.rounding is not None:
        return _rounded(value, axis.n_regular, axis.rounding), None
    # The lowest level has no lower edge: values clamped to it are below every edge.
    search = _among(value, (-math.inf, *axis.rounding_points))
    return search.found(place), search


def _among(value: str, edges: Sequence[float]) -> Search:
    """A search among the lower edges of levels."""
    return Search(value, pa.array(edges, pa.float64()))


def _among_decimals(axis: NumericAxis, value: str, places: int) -> tuple[Search, str]:
    """A search among the least decimals of bins, and SQL for the largest decimal of the last.

    Edges are the decimals that the owner wrote, compared exactly. Of bins that begin at the same
    decimal, as no decimal of so few places lies between them, the last is found.
    """
    written = [Fraction(repr(edge)) * 10**places for edge in axis.edges]
    end = min(math.floor(written[-1]), DECIMAL_MAX)
    first = [max(math.ceil(edge), -DECIMAL_MAX) for edge in written[:-1]]
    # A bin that begins beyond every decimal is found by none: its edge is NULL.
    decimals = [Decimal(edge).scaleb(-places, EXACT) if edge <= end else None for edge in first]
    last = Decimal(max(end, -DECIMAL_MAX)).scaleb(-places, EXACT)
    edges = pa.array(decimals, pa.decimal128(DECIMAL_DIGITS, places))
    return Search(value, edges), f"CAST('{last:f}' AS {_decimal(places)})"


def _decimal(places: int) -> str:
    return f"DECIMAL({DECIMAL_DIGITS}, {places})"


def _rounded(value: str, n_levels: int, rounding: Rounding) -> str:
    """SQL for the level of a measure, by arithmetic: half a million edges are slow to search.

    The quotient is less than a level from the right one; comparing with the two rounding points
    beside it finds that one exactly.
    """
    first, step, unit = rounding.first, rounding.step, rounding.unit

    def point(level: str) -> str:
        return f"CAST({first} + ({level}) * {step} AS DOUBLE) / {_double(float(unit))}"

    within = f"greatest({point('0')}, least({point(str(n_levels))}, {value}))"
    quotient = f"floor(({within} * {unit} - ({first})) / {step})"
    near = f"CAST(greatest(0, least({n_levels - 1}, {quotient})) AS BIGINT)"
    return (
        # Of NULL, `greatest` would make the lowest level.
        f"CASE WHEN {value} IS NOT NULL THEN greatest(0, least({n_levels - 1}, {near} "
        f"+ CAST({value} >= {point(near + ' + 1')} AS INTEGER) "
        f"- CAST({value} < {point(near)} AS INTEGER))) END"
    )


def _decimal_level(axis: MeasureAxis, column: SourceColumn) -> str | None:
    """SQL for the level of a measure of decimals, exactly; None if that takes too many digits.

    It is the whole part of ``(x * unit - first) / step``, with whole numbers but for x, and so of
    the whole part of ``x * unit``, less `first`, by `step`; between the least decimal that is above
    the lowest level, and the least of the highest.
    """
    places, rounding, last = column.decimal_places, axis.rounding, axis.n_regular - 1
    if places is None or rounding is None:
        return None
    ends = [_least_decimal(rounding, level, places) for level in (min(1, last), last)]
    digits = max(len(str(abs(end))) for end in ends)
    if max(digits, places) + len(str(rounding.unit)) > DECIMAL_DIGITS:
        return None
    is_short = max(digits, column.decimal_digits) <= SHORT_DIGITS
    kind = f"DECIMAL({SHORT_DIGITS if is_short else DECIMAL_DIGITS}, {places})"
    above, highest = (f"CAST('{Decimal(end).scaleb(-places, EXACT):f}' AS {kind})" for end in ends)
    within = f"CAST({column.sql} AS DECIMAL({max(digits, places)}, {places}))"
    times = "" if rounding.unit == 1 else f" * {rounding.unit}"
    level = f"(CAST(floor({within}{times}) AS BIGINT) - ({rounding.first})) // {rounding.step}"
    raw = column.sql
    return (
        f"CASE WHEN {raw} >= {highest} THEN {last} WHEN {raw} < {above} THEN 0 "
        f"WHEN {raw} IS NOT NULL THEN {level} END"
    )


def _least_decimal(rounding: Rounding, level: int, places: int) -> int:
    """The least decimal of a level, in units of its last digit."""
    scale: int = 10**places
    return -(-(rounding.first + level * rounding.step) * scale // rounding.unit)


def _double(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


LEFT_OUT = -1
WRONG_TYPE = -2
NEVER = "false"

TEXT = "VARCHAR"
SIGNED = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"))
INTEGERS = SIGNED | {f"U{name}" for name in SIGNED}
WITHIN_BIGINT = frozenset(
    ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
)
REALS = frozenset(("FLOAT", "DOUBLE", "DECIMAL"))
MOMENTS = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"))
ZONED = "TIMESTAMP WITH TIME ZONE"

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
OFFSET = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


@dataclass(frozen=True, slots=True)
class AxisSql:
    """How one axis is encoded.

    Parameters
    ----------
    position : str
        SQL for the position of a level, or one of the two codes.
    search : Search, optional
        A search that `position` needs.
    setup : str
        A statement to run beforehand, or empty.
    listed : pyarrow.Table, optional
        The table that `setup` refers to as ``listed``.
    """

    position: str
    search: Search | None = None
    setup: str = ""
    listed: pa.Table | None = None


def code_type(axis: Axis) -> str:
    """The smallest signed integer type that holds every position and both codes."""
    sizes = (("TINYINT", 2**7), ("SMALLINT", 2**15))
    return next((name for name, limit in sizes if axis.size <= limit), "INTEGER")


def can_read(axis: Axis, column: SourceColumn) -> bool:
    """Whether a column of this type can hold values of the axis at all."""
    if column.is_csv:
        return True
    match axis:
        case CategoryAxis():
            return column.type_name in {TEXT, "ENUM"}
        case IntegerAxis() | NumericAxis() | MeasureAxis():
            return column.type_name in INTEGERS | REALS
        case BooleanAxis():
            return column.type_name == "BOOLEAN"
        case DateAxis():
            return column.type_name == "DATE"
        case TimestampAxis():
            is_zoned = axis.time_zone is not None and column.type_name == ZONED
            return is_zoned or column.type_name in MOMENTS
        case _:
            raise TypeError(f"{type(axis).__name__} cannot be read from a source")


def axis_sql(axis: Axis, column: SourceColumn, place: int) -> AxisSql:
    """The encoding of the axis at a place of the schema."""
    is_text = column.is_csv
    value, wrong = typed_text(axis, column) if is_text else _typed_native(axis, column)
    search, setup, listed = None, "", None
    match axis:
        case CategoryAxis():
            # The codes of an ENUM are the positions of its values.
            listed = pa.table({"value": pa.array(axis.values, pa.string())})
            setup = f"CREATE TYPE levels_{place} AS ENUM (FROM listed)"
            found = f"enum_code(TRY_CAST({value} AS levels_{place}))"
        case IntegerAxis():
            found = f"CASE WHEN {value} BETWEEN {axis.low} AND {axis.high} "
            found += f"THEN {value} - ({axis.low}) END"
        case NumericAxis() | MeasureAxis():
            found, search = number_sql(axis, value, place, column)
        case BooleanAxis():
            found = f"CAST({value} AS TINYINT)"
        case DateAxis():
            low = f"DATE '{axis.low.isoformat()}'"
            found = f"CASE WHEN {value} BETWEEN {low} AND DATE '{axis.high.isoformat()}' "
            found += f"THEN {value} - {low} END"
        case TimestampAxis():
            low, end = _timestamp(axis.low), _timestamp(axis.high + STEPS[axis.step])
            found = f"CASE WHEN {value} >= {low} AND {value} < {end} "
            found += f"THEN date_diff('{axis.step}', {low}, {value}) END"
        case _:
            raise TypeError(f"{type(axis).__name__} cannot be read from a source")
    outside = LEFT_OUT if axis.other_position is None else axis.other_position
    null = outside if axis.null_position is None else axis.null_position
    # Nearly every value has a level: what else it may be is asked of the others alone.
    cases = ""
    if null != outside or wrong != NEVER:
        missing = column.missing or f"{column.sql} IS NULL"
        cases = f"WHEN {missing} THEN {null} "
    if wrong != NEVER:
        cases += f"WHEN {wrong} THEN {WRONG_TYPE} "
    otherwise = f"CASE {cases}ELSE {outside} END" if cases else outside
    position = f"CAST(coalesce({found}, {otherwise}) AS {code_type(axis)})"
    return AxisSql(position, search, setup, listed)


def _typed_native(axis: Axis, column: SourceColumn) -> tuple[str, str]:
    """SQL for a typed column's value in the axis's type, and for whether it has another type.

    Of another type, the value is NULL.
    """
    raw = column.sql
    match axis:
        case CategoryAxis():
            return f"CAST({raw} AS VARCHAR)", NEVER  # an ENUM
        case IntegerAxis() if column.type_name in REALS:
            whole = f"isfinite(CAST({raw} AS DOUBLE)) AND {raw} = trunc({raw})"
            return f"CASE WHEN {whole} THEN {raw} END", f"{_finite(raw)} <> trunc({raw})"
        case IntegerAxis():
            # Unsigned columns cannot be compared with a negative end of the range.
            kind = "BIGINT" if column.type_name in WITHIN_BIGINT else "HUGEINT"
            return f"TRY_CAST({raw} AS {kind})", NEVER
        case NumericAxis() | MeasureAxis():
            return _finite(f"CAST({raw} AS DOUBLE)"), NEVER
        case TimestampAxis():
            is_zoned = column.type_name == ZONED
            local = f"timezone({text_sql(str(axis.time_zone))}, {raw})"
            return local if is_zoned else f"CAST({raw} AS TIMESTAMP)", NEVER
        case _:
            return raw, NEVER


def typed_text(axis: Axis, column: SourceColumn) -> tuple[str, str]:
    """SQL for a CSV field's value in the axis's type, and for whether it has another type.

    Of another type, the value is NULL. What is written as the engine writes it is of the type,
    which takes less to find out than an expression to match.
    """
    raw = column.sql
    if isinstance(axis, IntegerAxis | NumericAxis | MeasureAxis):
        raw = number_text(column)
    match axis:
        case CategoryAxis():
            return raw, NEVER
        case IntegerAxis():
            # A cast would round 3.7 to 4. 39.0 is how other tools write 39 beside a NULL.
            whole = rf"regexp_full_match({raw}, '\s*[+-]?[0-9]+(\.0+)?\s*')"
            value = f"TRY_CAST({raw} AS BIGINT)"
            plain = f"CAST({value} AS VARCHAR) = {raw}"
            return f"CASE WHEN {plain} THEN {value} WHEN {whole} THEN {value} END", f"NOT {whole}"
        case DateAxis():
            # A cast would accept a time of day, and drop it.
            date, day = f"TRY_CAST({raw} AS DATE)", f"regexp_full_match({raw}, '{DAY}')"
            plain = f"length({raw}) = {len('2026-01-31')} AND CAST({date} AS VARCHAR) = {raw}"
            value = f"CASE WHEN {plain} THEN {date} WHEN {day} THEN {date} END"
        case TimestampAxis():
            value = _moment_of_text(axis, raw)
        case NumericAxis() | MeasureAxis():
            value = f"TRY_CAST({raw} AS DOUBLE)"
            return _finite(value), f"{value} IS NULL"
        case _:
            value = f"TRY_CAST({raw} AS {axis.sql_type})"
    return value, f"{value} IS NULL"


def number_text(column: SourceColumn) -> str:
    """SQL for a field as a number is written with a point; what has a point already is no number.

    A point there would separate thousands, as in 1.234,50: that is not read as one and a bit.
    """
    if column.decimal_sign == ".":
        return column.sql
    return f"translate({column.sql}, ',.', '.?')"


def _moment_of_text(axis: TimestampAxis, raw: str) -> str:
    """SQL for a CSV field's moment; NULL if it is none, or has an offset and the axis no zone.

    A cast to TIMESTAMP would drop an offset.
    """
    plain = f"regexp_full_match({raw}, '{DAY}({TIME})?')"
    value = f"TRY_CAST(CASE WHEN {plain} THEN {raw} END AS TIMESTAMP)"
    if axis.time_zone is None:
        return value
    zoned = f"regexp_full_match({raw}, '{DAY}{TIME}{OFFSET}')"
    instant = f"TRY_CAST(CASE WHEN {zoned} THEN {raw} END AS TIMESTAMPTZ)"
    return f"coalesce({value}, timezone({text_sql(axis.time_zone)}, {instant}))"


def _timestamp(moment: dt.datetime) -> str:
    return f"TIMESTAMP '{moment}'"


def _finite(value: str) -> str:
    """SQL for a number, NULL if it is NaN or infinite.

    DuckDB drops a comparison that a Parquet file's minimum and maximum make seem redundant, but
    these ignore NaN: a NaN would pass the comparison.
    """
    return f"CASE WHEN isfinite(CAST({value} AS DOUBLE)) THEN {value} END"
