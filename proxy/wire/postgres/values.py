"""Values of a result as bytes: PostgreSQL's text format, its binary one, and the stream of a COPY.

A COPY has formats of its own, which are text, CSV and binary. Nothing here knows where values come
from. How a session wants them written is a `TextStyle`.
"""

import datetime as dt
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa

from planner.sql import CopyFormat, CopyOut
from proxy.wire.postgres.backend import Column
from proxy.wire.postgres.pg_types import (
    BOOL,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    PgType,
)

Writer: TypeAlias = Callable[[Any], bytes]

POSTGRES: Final = "postgres"
VERBOSE: Final = "postgres_verbose"
ISO_8601: Final = "iso_8601"

_EPOCH: Final = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - PostgreSQL's times begin here
_EPOCH_DAY: Final = dt.date(2000, 1, 1).toordinal()
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_DAY_SECONDS: Final = 86_400
_DIGITS: Final = 4  # in one number of a binary NUMERIC
_N_DIGITS: Final = {FLOAT4: 6, FLOAT8: 15}  # that every number of the type keeps
_BACKSLASH, _SPACE, _TILDE = b"\\ ~"
_QUOTED_IN_LISTS: Final = frozenset('{}",\\ \t\n\r\v\f')


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How a session wants values as text, where there are several ways.

    Parameters
    ----------
    zone : datetime.tzinfo
        The zone in which moments with a zone are written.
    interval : str
        The session's IntervalStyle.
    float_digits : int
        extra_float_digits; from 1 on, as many digits as tell a number from all others.
    escapes_bytes : bool
        Whether bytes are written as escapes, and not in hexadecimal digits.
    """

    zone: dt.tzinfo = dt.UTC
    interval: str = POSTGRES
    float_digits: int = 1
    escapes_bytes: bool = False


USUAL: Final = TextStyle()


def rows_of(
    table: pa.Table, columns: Sequence[Column], style: TextStyle = USUAL
) -> Iterator[tuple[bytes | None, ...]]:
    """The rows of a table, each value in its column's format."""
    writers = [_writer(column, style) for column in columns]
    for batch in table.to_batches():
        cells = [
            [None if value is None else write(value) for value in _values(array)]
            for array, write in zip(batch.columns, writers, strict=True)
        ]
        if cells:
            yield from zip(*cells, strict=True)
        else:
            yield from (() for _ in range(batch.num_rows))


def _values(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        array = array.cast(_in_microseconds(kind), safe=False)
    found: list[Any] = array.to_pylist()
    return found


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """The same type without nanoseconds, which Python's times do not have."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    return pa.time64("us") if pa.types.is_time(kind) else pa.duration("us")


def _writer(column: Column, style: TextStyle) -> Writer:
    element = column.type.element
    if column.format:
        if element is not None:
            return _binary_list(element, _BINARY[element])
        return _BINARY[column.type]
    if element is not None:
        return _text_list(_text_writer(element, style))
    return _text_writer(column.type, style)


def _text_writer(kind: PgType, style: TextStyle) -> Writer:
    """The text format of a type; as PostgreSQL's defaults have it, or as the session wants."""
    if kind is TIMESTAMPTZ and style.zone is not dt.UTC:
        return partial(_text_instant, zone=style.zone)
    if kind is INTERVAL and style.interval != POSTGRES:
        return _iso_interval if style.interval == ISO_8601 else _verbose_interval
    if kind in (FLOAT4, FLOAT8) and style.float_digits <= 0:
        return partial(_rounded_float, n_digits=_N_DIGITS[kind] + style.float_digits)
    if kind is BYTEA and style.escapes_bytes:
        return _escaped_bytes
    return _TEXT[kind]


def _text_list(write: Writer) -> Writer:
    def written(values: Sequence[Any]) -> bytes:
        parts = ("NULL" if one is None else _quoted(write(one).decode()) for one in values)
        return f"{{{','.join(parts)}}}".encode()

    return written


def _quoted(text: str) -> str:
    """An element of a list in the text format."""
    if text and text.upper() != "NULL" and not _QUOTED_IN_LISTS.intersection(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _binary_list(element: PgType, write: Writer) -> Writer:
    def written(values: Sequence[Any]) -> bytes:
        if not values:
            return struct.pack("!iiI", 0, 0, element.oid)
        has_null = any(one is None for one in values)
        head = struct.pack("!iiIii", 1, has_null, element.oid, len(values), 1)
        cells = (None if one is None else write(one) for one in values)
        return head + b"".join(
            b"\xff\xff\xff\xff" if cell is None else struct.pack("!i", len(cell)) + cell
            for cell in cells
        )

    return written


def _text_float(value: float) -> bytes:
    """The shortest decimal that is the same number."""
    if math.isfinite(value):
        return _shown(repr(value), _N_DIGITS[FLOAT8])
    return b"NaN" if math.isnan(value) else (b"Infinity" if value > 0 else b"-Infinity")


def _text_float4(value: float) -> bytes:
    """The shortest decimal that is the same number in single precision."""
    if not math.isfinite(value):
        return _text_float(value)
    short = next(text for n in range(6, 10) if _single(float(text := f"{value:.{n}g}")) == value)
    return _shown(repr(float(short)), _N_DIGITS[FLOAT4])


def _shown(text: str, n_digits: int) -> bytes:
    """A number of Python's, with an exponent where PostgreSQL has one."""
    if "e" not in text and text.find(".") <= n_digits:  # as nearly all are
        return text.removesuffix(".0").encode()
    sign, digits, exponent = Decimal(text).as_tuple()
    places = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + int(exponent)
    if not places or -5 < power < n_digits:  # noqa: PLR2004 - as C's printf
        return (f"{Decimal(text):f}".removesuffix(".0") if places else text[:-2]).encode()
    point = "." if len(places) > 1 else ""
    return f"{'-' * sign}{places[0]}{point}{places[1:]}e{power:+03}".encode()


def _single(value: float) -> float:
    return float(struct.unpack("!f", struct.pack("!f", value))[0])


def _rounded_float(value: float, n_digits: int) -> bytes:
    """A number of so many digits, as the C library writes it."""
    if not math.isfinite(value):
        return _text_float(value)
    return f"{value:.{max(1, n_digits)}g}".encode()


def _escaped_bytes(value: bytes) -> bytes:
    """Bytes in the old format: those of printed ASCII as they are, others in octal digits."""
    signs = (b"\\\\" if one == _BACKSLASH else _plain_or_octal(one) for one in value)
    return b"".join(signs)


def _plain_or_octal(one: int) -> bytes:
    is_plain = _SPACE <= one <= _TILDE
    return bytes((one,)) if is_plain else f"\\{one:03o}".encode()


def _text_instant(value: dt.datetime, zone: dt.tzinfo) -> bytes:
    """A moment in the session's zone, with how far that is from UTC then."""
    moment = (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(zone)
    offset = moment.utcoffset() or dt.timedelta()
    sign = "-" if offset < dt.timedelta() else "+"
    minutes, seconds = divmod(int(abs(offset).total_seconds()), 60)
    shown = f"{sign}{minutes // 60:02}"
    if minutes % 60 or seconds:
        shown += f":{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    return _text_timestamp(moment.replace(tzinfo=None)) + shown.encode()


def _text_timestamp(value: dt.datetime) -> bytes:
    naive = value.replace(tzinfo=None)
    text = naive.isoformat(sep=" ")
    text = text.rstrip("0") if naive.microsecond else text
    return (text if value.tzinfo is None else f"{text}+00").encode()


def _text_time(value: dt.time) -> bytes:
    text = value.isoformat()
    return (text.rstrip("0") if value.microsecond else text).encode()


def _parts(value: dt.timedelta | pa.MonthDayNano) -> tuple[int, int, int]:
    """Months, days and microseconds of an interval."""
    if isinstance(value, dt.timedelta):
        return 0, value.days, (value - dt.timedelta(days=value.days)) // _MICROSECOND
    return value.months, value.days, value.nanoseconds // 1000


def _text_interval(value: dt.timedelta | pa.MonthDayNano) -> bytes:
    """In PostgreSQL's own style: ``1 year 2 mons -3 days 04:05:06.5``."""
    months, days, micros = _parts(value)
    years, months = math.trunc(months / 12), int(math.fmod(months, 12))
    units = ((years, "year"), (months, "mon"), (days, "day"))
    words = list[str]()
    is_negative = False  # then a part that is not has a sign, as PostgreSQL writes it
    for n, unit in units:
        if n:
            sign = "+" if is_negative and n > 0 else ""
            words.append(f"{sign}{n} {unit}{'' if n == 1 else 's'}")
            is_negative = n < 0
    if micros or not words:
        seconds, fraction = divmod(abs(micros), 10**6)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        tail = f".{fraction:06}".rstrip("0") if fraction else ""
        sign = "-" if micros < 0 else "+" if is_negative else ""
        words.append(f"{sign}{clock}{tail}")
    return " ".join(words).encode()


def _clock_parts(micros: int) -> tuple[int, int, int, int]:
    """Hours, minutes, seconds and microseconds, each with the sign of the whole."""
    sign = -1 if micros < 0 else 1
    seconds, fraction = divmod(abs(micros), 10**6)
    return (
        sign * (seconds // 3600),
        sign * (seconds // 60 % 60),
        sign * (seconds % 60),
        sign * fraction,
    )


def _seconds(seconds: int, fraction: int) -> str:
    """Seconds without their sign: ``6``, ``6.5``."""
    tail = f".{abs(fraction):06}".rstrip("0") if fraction else ""
    return f"{abs(seconds)}{tail}"


def _iso_interval(value: dt.timedelta | pa.MonthDayNano) -> bytes:
    """As ISO 8601 writes it: ``P1Y2M-3DT4H5M6.5S``."""
    months, days, micros = _parts(value)
    years, months = math.trunc(months / 12), int(math.fmod(months, 12))
    hours, minutes, seconds, fraction = _clock_parts(micros)
    date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
    time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if seconds or fraction:
        time += f"{'-' if micros < 0 else ''}{_seconds(seconds, fraction)}S"
    if not date and not time:
        return b"PT0S"
    return f"P{date}{'T' if time else ''}{time}".encode()


def _verbose_interval(value: dt.timedelta | pa.MonthDayNano) -> bytes:
    """In words: ``@ 1 year 2 mons 4 hours 5.5 secs ago``."""
    months, days, micros = _parts(value)
    years, months = math.trunc(months / 12), int(math.fmod(months, 12))
    hours, minutes, seconds, fraction = _clock_parts(micros)
    units = (
        *((years, "year"), (months, "mon"), (days, "day")),
        *((hours, "hour"), (minutes, "min")),
    )
    words = [(n, str(abs(n)), unit) for n, unit in units if n]
    if seconds or fraction:
        words.append((micros, _seconds(seconds, fraction), "sec"))
    if not words:
        return b"@ 0"
    is_before = words[0][0] < 0  # the first decides which direction needs no sign
    shown = [
        f"{'' if (n < 0) == is_before else '-'}{text} {unit}"
        f"{'' if text == '1' and (unit == 'sec' or (n < 0) == is_before) else 's'}"
        for n, text, unit in words
    ]
    return f"@ {' '.join(shown)}{' ago' if is_before else ''}".encode()


def _binary_numeric(value: Decimal | int) -> bytes:
    """Groups of four decimal digits, with the weight of the first and a scale for display."""
    number = Decimal(value)
    scale = max(0, -int(number.as_tuple().exponent))
    n_behind = -(-scale // _DIGITS)
    shifted = int(abs(number).scaleb(n_behind * _DIGITS, None).to_integral_value())
    groups: list[int] = []
    while shifted:
        shifted, group = divmod(shifted, 10**_DIGITS)
        groups.append(group)
    weight = len(groups) - n_behind - 1
    while groups and groups[0] == 0:
        groups.pop(0)
    sign = 0x4000 if number < 0 else 0
    groups.reverse()
    return struct.pack(
        f"!hhHh{len(groups)}h", len(groups), weight if groups else 0, sign, scale, *groups
    )


def _text_numeric(value: Decimal | int) -> bytes:
    return f"{Decimal(value):f}".encode()


def _binary_interval(value: dt.timedelta | pa.MonthDayNano) -> bytes:
    months, days, micros = _parts(value)
    return struct.pack("!qii", micros, days, months)


def _micros(value: dt.datetime) -> bytes:
    return struct.pack("!q", (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND)


def _time_micros(value: dt.time) -> bytes:
    since = dt.timedelta(
        hours=value.hour,
        minutes=value.minute,
        seconds=value.second,
        microseconds=value.microsecond,
    )
    return struct.pack("!q", since // _MICROSECOND)


def _whole(value: int) -> bytes:
    return str(value).encode()


def _utf8(value: str) -> bytes:
    return value.encode("utf-8", "replace")


_TEXT: Final[dict[PgType, Writer]] = {
    BOOL: lambda value: b"t" if value else b"f",
    BYTEA: lambda value: b"\\x" + value.hex().encode(),
    INT2: _whole,
    INT4: _whole,
    INT8: _whole,
    OID: _whole,
    FLOAT4: _text_float4,
    FLOAT8: _text_float,
    NUMERIC: _text_numeric,
    TEXT: _utf8,
    DATE: lambda value: value.isoformat().encode(),
    TIME: _text_time,
    TIMESTAMP: _text_timestamp,
    TIMESTAMPTZ: _text_timestamp,
    INTERVAL: _text_interval,
}
_BINARY: Final[dict[PgType, Writer]] = {
    BOOL: lambda value: b"\1" if value else b"\0",
    BYTEA: bytes,
    INT2: struct.Struct("!h").pack,
    INT4: struct.Struct("!i").pack,
    INT8: struct.Struct("!q").pack,
    OID: struct.Struct("!I").pack,
    FLOAT4: struct.Struct("!f").pack,
    FLOAT8: struct.Struct("!d").pack,
    NUMERIC: _binary_numeric,
    TEXT: _utf8,
    DATE: lambda value: struct.pack("!i", value.toordinal() - _EPOCH_DAY),
    TIME: _time_micros,
    TIMESTAMP: _micros,
    TIMESTAMPTZ: _micros,
    INTERVAL: _binary_interval,
}


_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_END: Final = struct.pack("!h", -1)
_NULL: Final = b"\\N"
_QUOTED: Final = frozenset(b',"\r\n')
_ESCAPES: Final = {
    ord("\\"): "\\\\",
    ord("\b"): "\\b",
    ord("\f"): "\\f",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord("\v"): "\\v",
}


def stream(
    rows: pa.Table, columns: Sequence[Column], asked: CopyOut, style: TextStyle = USUAL
) -> Iterator[bytes]:
    """The pieces of a stream, a row each."""
    if asked.format is CopyFormat.BINARY:
        yield from _binary(rows, columns)
        return
    if asked.has_header:
        yield _line([column.name.encode() for column in columns], asked.format)
    for row in rows_of(rows, [replace(column, format=0) for column in columns], style):
        yield _line(row, asked.format)


def _binary(rows: pa.Table, columns: Sequence[Column]) -> Iterator[bytes]:
    """The signature goes with the first row, as clients expect."""
    head = _SIGNATURE
    for row in rows_of(rows, [replace(column, format=1) for column in columns]):
        yield head + _binary_row(row)
        head = b""
    yield head + _END


def _binary_row(row: Sequence[bytes | None]) -> bytes:
    cells = (
        b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value
        for value in row
    )
    return struct.pack("!h", len(row)) + b"".join(cells)


def _line(row: Sequence[bytes | None], form: CopyFormat) -> bytes:
    if form is CopyFormat.CSV:
        return b",".join(map(_csv, row)) + b"\n"
    return b"\t".join(map(_text, row)) + b"\n"


def _csv(value: bytes | None) -> bytes:
    """A value of CSV: nothing for NULL, quotes around an empty text."""
    if value is None:
        return b""
    if value and not _QUOTED.intersection(value):
        return value
    return b'"' + value.replace(b'"', b'""') + b'"'


def _text(value: bytes | None) -> bytes:
    if value is None:
        return _NULL
    return value.decode().translate(_ESCAPES).encode()
