"""Texts between quotes as PostgreSQL reads them, once their type is known.

``age = '7.0'`` is an error, as ``CAST('2.5' AS INTEGER)`` is; ``b = 'on'`` is true. What is read
here is written for DuckDB in the form that it cannot misread.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Final

from planner.meaning.types import Kind, SqlType
from planner.sql.interval_texts import IntervalValue, NoInterval, read_interval
from planner.sql.moment_texts import Moment, NoMoment, read_moment

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
