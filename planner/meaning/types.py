"""Defines the types of expressions, and reads texts between quotes as values of a type.

The types of expressions, as far as they decide what an operator or a cast means.

Whole numbers, NUMERIC and DOUBLE PRECISION are divided and rounded in three ways. A text between
quotes has no type before it stands beside something that has. NUMERIC is a DECIMAL in DuckDB where
its digits are known; elsewhere it is a double: quotients of answers, powers, averages.

Texts between quotes as PostgreSQL reads them, once their type is known.

``age = '7.0'`` is an error, as ``CAST('2.5' AS INTEGER)`` is; ``b = 'on'`` is true. What is read
here is written for DuckDB in the form that it cannot misread.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from sqlglot import exp

from planner.sql import IntervalValue, Moment, NoInterval, NoMoment, read_interval, read_moment


class Kind(Enum):
    """A type's name, without its digits."""

    UNKNOWN = auto()  # nothing is known of it: DuckDB decides
    LITERAL = auto()  # a text between quotes, or NULL, before it is read as something
    BOOLEAN = auto()
    INT2 = auto()
    INT4 = auto()
    INT8 = auto()
    NUMERIC = auto()
    FLOAT = auto()
    TEXT = auto()
    DATE = auto()
    TIMESTAMP = auto()
    TIMESTAMPTZ = auto()
    TIME = auto()
    INTERVAL = auto()
    OTHER = auto()  # arrays and the like


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type.

    Parameters
    ----------
    kind : Kind
    scale : int, optional
        Of a NUMERIC that is a DECIMAL in DuckDB: its digits behind the point there.
    digits : int, optional
        Of a NUMERIC: the digits behind the point that PostgreSQL shows, where they are known.
    is_answer : bool
        Of a NUMERIC: whether it is an answer, or computed from some: a real number.
    is_asked : bool
        Of a BIGINT: whether the statement casts to it; a column's may be an INTEGER in PostgreSQL.
    """

    kind: Kind
    scale: int | None = None
    digits: int | None = None
    is_answer: bool = False
    is_asked: bool = False

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole-number type."""
        return self.kind in _INTEGERS

    @property
    def is_number(self) -> bool:
        """Whether it is any type of numbers."""
        return self.kind in _NUMBERS

    @property
    def is_exact(self) -> bool:
        """Whether DuckDB has its values as whole numbers or decimals."""
        return self.is_integer or (self.kind is Kind.NUMERIC and self.scale is not None)

    @property
    def places(self) -> int:
        """Digits behind the point of an exact number."""
        return self.scale or 0

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return _NAMES.get(self.kind, "unknown")


_INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8)
_NUMBERS: Final = (*_INTEGERS, Kind.NUMERIC, Kind.FLOAT)
MOMENTS: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_NAMES: Final = {
    Kind.BOOLEAN: "boolean",
    Kind.INT2: "smallint",
    Kind.INT4: "integer",
    Kind.INT8: "bigint",
    Kind.NUMERIC: "numeric",
    Kind.FLOAT: "double precision",
    Kind.TEXT: "text",
    Kind.LITERAL: "text",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamp with time zone",
    Kind.TIME: "time",
    Kind.INTERVAL: "interval",
}

UNKNOWN: Final = SqlType(Kind.UNKNOWN)
LITERAL: Final = SqlType(Kind.LITERAL)
BOOLEAN: Final = SqlType(Kind.BOOLEAN)
INT2: Final = SqlType(Kind.INT2)
INT4: Final = SqlType(Kind.INT4)
INT8: Final = SqlType(Kind.INT8)
FLOAT: Final = SqlType(Kind.FLOAT)
TEXT: Final = SqlType(Kind.TEXT)
DATE: Final = SqlType(Kind.DATE)
TIMESTAMP: Final = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ: Final = SqlType(Kind.TIMESTAMPTZ)
TIME: Final = SqlType(Kind.TIME)
INTERVAL: Final = SqlType(Kind.INTERVAL)
OTHER: Final = SqlType(Kind.OTHER)
REAL: Final = SqlType(Kind.NUMERIC)  # a NUMERIC that is a double here: an average, a power
ANSWER: Final = SqlType(Kind.NUMERIC, is_answer=True)
WHOLE: Final = SqlType(Kind.NUMERIC, 0, 0)

_DUCKDB: Final = {
    "BOOLEAN": BOOLEAN,
    **dict.fromkeys(("TINYINT", "UTINYINT", "SMALLINT"), INT2),
    **dict.fromkeys(("USMALLINT", "INTEGER"), INT4),
    **dict.fromkeys(("UINTEGER", "BIGINT"), INT8),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), WHOLE),
    **dict.fromkeys(("FLOAT", "DOUBLE"), FLOAT),
    "VARCHAR": TEXT,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ,
    "TIME": TIME,
    "INTERVAL": INTERVAL,
}
_DECIMAL: Final = re.compile(r"DECIMAL\(\d+,\s*(\d+)\)")

_CASTS: Final[dict[exp.DType, SqlType]] = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: INT2,
    exp.DType.SMALLINT: INT2,
    exp.DType.INT: INT4,
    exp.DType.BIGINT: SqlType(Kind.INT8, is_asked=True),
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: FLOAT,
    exp.DType.TEXT: TEXT,
    exp.DType.VARCHAR: TEXT,
    exp.DType.CHAR: TEXT,
    exp.DType.BPCHAR: TEXT,
    exp.DType.DATE: DATE,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPTZ: TIMESTAMPTZ,
    exp.DType.TIME: TIME,
    exp.DType.INTERVAL: INTERVAL,
    exp.DType.DECIMAL: REAL,
}
CAST_TYPES: Final = frozenset(_CASTS)


def of_duckdb(name: str) -> SqlType:
    """The type of a column that DuckDB has.

    >>> of_duckdb("DECIMAL(9,2)").scale, of_duckdb("VARCHAR").name
    (2, 'text')
    """
    digits = decimal_digits(name)
    if digits is not None:
        return SqlType(Kind.NUMERIC, digits, digits)
    return _DUCKDB.get(name, UNKNOWN)


def decimal_digits(name: str) -> int | None:
    """The digits behind the point of a DECIMAL that DuckDB has; None of any other type.

    >>> decimal_digits("DECIMAL(9,2)"), decimal_digits("DOUBLE")
    (2, None)
    """
    match = _DECIMAL.fullmatch(name)
    return None if match is None else int(match[1])


def of_cast(to: exp.DataType) -> SqlType:
    """The type that a cast names."""
    return _CASTS.get(to.this, OTHER if to.this in exp.DataType.NESTED_TYPES else UNKNOWN)


def arithmetic_type(one: SqlType, other: SqlType) -> SqlType:
    """The type in which two numbers are added; UNKNOWN if one of them is."""
    if one.kind is Kind.UNKNOWN or other.kind is Kind.UNKNOWN:
        return UNKNOWN
    if one.is_answer or other.is_answer:
        return ANSWER
    if Kind.FLOAT in (one.kind, other.kind):
        return FLOAT
    if one.is_integer and other.is_integer:
        return max(one, other, key=lambda it: (_INTEGERS.index(it.kind), it.is_asked))
    if not (one.is_exact and other.is_exact):
        return REAL
    is_shown = None not in (_digits(one), _digits(other))
    return SqlType(
        Kind.NUMERIC,
        max(one.places, other.places),
        max(_digits(one) or 0, _digits(other) or 0) if is_shown else None,
    )


def _digits(one: SqlType) -> int | None:
    return 0 if one.is_integer else one.digits


def common_type(types: Iterable[SqlType]) -> SqlType | None:
    """The type in which values of several types are compared; None if there is none.

    It is text if all of them are texts between quotes.
    """
    found: SqlType | None = None
    for one in types:
        if one.kind is Kind.LITERAL:
            continue
        if found is None or found == one:
            found = one
        elif Kind.UNKNOWN in (found.kind, one.kind):
            found = UNKNOWN
        elif found.is_number and one.is_number:
            found = arithmetic_type(found, one)
        elif found.kind in MOMENTS and one.kind in MOMENTS:
            found = max(found, one, key=lambda it: MOMENTS.index(it.kind))
        elif found.kind is not one.kind and {found.kind, one.kind} != {Kind.TIME, Kind.INTERVAL}:
            return None
    return TEXT if found is None else found


_WHOLE: Final = re.compile(r"\s*(?P<number>[+-]?[0-9]+)\s*", re.ASCII)
_NUMBER: Final = re.compile(
    r"\s*(?P<sign>[+-]?)(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE](?P<power>[+-]?[0-9]{1,3}))?\s*",
    re.ASCII,
)
_TRUTHS: Final = {
    "true": ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"),
    "false": ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"),
}
TRUE_TEXTS: Final = _TRUTHS["true"]
FALSE_TEXTS: Final = _TRUTHS["false"]
_BITS: Final = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}
_TIME: Final = re.compile(
    r"(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?P<f>\.[0-9]*)?)?\s*(?P<half>[AaPp][Mm])?",
    re.ASCII,
)
_CLOCK: Final = re.compile(r"[0-9]{1,2}:[0-9]", re.ASCII)
_MIDNIGHT: Final = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - a day of no zone


class NoValue(ValueError):
    """A text that is no value of a type."""


def read_constant(text: str, wanted: SqlType) -> str:
    """A text as the constant of a type, in DuckDB's SQL.

    >>> from planner.meaning.types import BOOLEAN, INT4
    >>> read_constant(" 42 ", INT4), read_constant("on", BOOLEAN)
    ('42', 'TRUE')

    Raises
    ------
    NoValue
        If PostgreSQL refuses it, or it is infinite.
    """
    reader = _READERS.get(wanted.kind)
    if reader is None:
        raise NoValue(text)
    return reader(text, wanted)


def _whole(text: str, wanted: SqlType) -> str:
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise NoValue(text)
    number, bits = int(match["number"]), _BITS[wanted.kind]
    if not -(2**bits) <= number < 2**bits:
        raise NoValue(text)
    return f"({number})" if number < 0 else str(number)


def _numeric(text: str, _wanted: SqlType) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise NoValue(text)
    plain = plain_number(match["digits"], int(match["power"] or 0))
    return f"(-{plain})" if match["sign"] == "-" else plain


def plain_number(digits: str, power: int = 0) -> str:
    """Digits times a power of ten, without an exponent: a DECIMAL to DuckDB.

    >>> plain_number("1.5", 2), plain_number("12", -3), plain_number("7.")
    ('150', '0.012', '7')
    """
    whole, _, places = digits.partition(".")
    if power >= 0:
        moved = places.ljust(power, "0")
        whole, places = whole + moved[:power], moved[power:]
    else:
        filled = whole.rjust(-power + 1, "0")
        whole, places = filled[:power], filled[power:] + places
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{places}" if places else whole


def _double(text: str, _wanted: SqlType) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise NoValue(text)
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NoValue(text)
    return f"CAST('{value!r}' AS DOUBLE)"


def _truth(text: str, _wanted: SqlType) -> str:
    word = text.strip().lower()
    if word in TRUE_TEXTS:
        return "TRUE"
    if word in FALSE_TEXTS:
        return "FALSE"
    raise NoValue(text)


def _moment(text: str) -> Moment:
    try:
        return read_moment(text)
    except NoMoment:
        raise NoValue(text) from None


def _since_midnight(found: re.Match[str], text: str) -> dt.timedelta:
    hour, minute, second = int(found["h"]), int(found["m"]), int(found["s"] or 0)
    half = (found["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:  # noqa: PLR2004 - of such a clock
            raise NoValue(text)
        hour = hour % 12 + (12 if half == "pm" else 0)
    fraction = dt.timedelta(
        microseconds=round(float(f"0{found['f']}0") * 10**6) if found["f"] else 0
    )
    whole = dt.timedelta(hours=hour, minutes=minute, seconds=second) + fraction
    if minute > 59 or second > 60 or whole > dt.timedelta(days=1):  # noqa: PLR2004 - of a clock
        raise NoValue(text)
    return whole


def _endless(text: str, sql_type: str) -> str | None:
    """``infinity``, which is later than every day."""
    word = text.strip().lower()
    return f"CAST('{word}' AS {sql_type})" if word in ("infinity", "-infinity") else None


def _date(text: str, _wanted: SqlType) -> str:
    endless = _endless(text, "DATE")
    if endless is not None:
        return endless
    return f"CAST('{_moment(text).day.isoformat()}' AS DATE)"


def _timestamp(text: str, _wanted: SqlType) -> str:
    endless = _endless(text, "TIMESTAMP")
    if endless is not None:
        return endless
    return f"CAST('{_moment(text).local}' AS TIMESTAMP)"


def _instant(text: str, _wanted: SqlType) -> str:
    utc = _moment(text).instant(dt.UTC).replace(tzinfo=None)
    return f"CAST('{utc}+00' AS TIMESTAMPTZ)"


def _time(text: str, _wanted: SqlType) -> str:
    text = text.strip()
    found = _TIME.fullmatch(text)
    if found is None:
        # An offset behind a time is read and dropped. A region's offset would need a day.
        is_clock = _CLOCK.match(text) is not None and "/" not in text
        moment = _moment(f"2000-01-01 {text}" if is_clock else text)
        return f"CAST('{moment.local.time()}' AS TIME)"
    whole = _since_midnight(found, text)
    clock = (_MIDNIGHT + whole).time() if whole < dt.timedelta(days=1) else "24:00:00"
    return f"CAST('{clock}' AS TIME)"


def _interval(text: str, _wanted: SqlType) -> str:
    try:
        return interval_sql(read_interval(text))
    except NoInterval:
        raise NoValue(text) from None


def interval_sql(value: IntervalValue) -> str:
    """An interval in DuckDB's SQL, of the same three parts."""
    parts = (
        f"to_months({value.months})",
        f"to_days({value.days})",
        f"to_microseconds({value.microseconds})",
    )
    return f"({' + '.join(parts)})"


def _text(text: str, _wanted: SqlType) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


_READERS: Final[dict[Kind, Callable[[str, SqlType], str]]] = {
    Kind.INT2: _whole,
    Kind.INT4: _whole,
    Kind.INT8: _whole,
    Kind.NUMERIC: _numeric,
    Kind.FLOAT: _double,
    Kind.BOOLEAN: _truth,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _instant,
    Kind.TIME: _time,
    Kind.INTERVAL: _interval,
    Kind.TEXT: _text,
}
