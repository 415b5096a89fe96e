"""Values of a result as bytes: PostgreSQL's text format, and its binary one.

Nothing here knows where values come from. Times are in UTC, and say so.
"""

import datetime as dt
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

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

_EPOCH: Final = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - PostgreSQL's times begin here
_EPOCH_DAY: Final = dt.date(2000, 1, 1).toordinal()
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_DAY_SECONDS: Final = 86_400
_DIGITS: Final = 4  # in one number of a binary NUMERIC
_QUOTED_IN_LISTS: Final = frozenset('{}",\\ \t\n\r\v\f')


def rows_of(table: pa.Table, columns: Sequence[Column]) -> Iterator[tuple[bytes | None, ...]]:
    """The rows of a table, each value in its column's format."""
    for batch in table.to_batches():
        cells = [
            [None if value is None else write(value) for value in _values(array)]
            for array, write in zip(batch.columns, map(_writer, columns), strict=True)
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


def _writer(column: Column) -> Writer:
    if column.type.element is not None:
        return _list_writer(column.type.element, column.format)
    return (_BINARY if column.format else _TEXT)[column.type]


def _list_writer(element: PgType, form: int) -> Writer:
    write = (_BINARY if form else _TEXT)[element]
    return _binary_list(element, write) if form else _text_list(write)


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
    if math.isfinite(value):
        text = repr(value)
        return text.removesuffix(".0").encode()
    return b"NaN" if math.isnan(value) else (b"Infinity" if value > 0 else b"-Infinity")


def _text_float4(value: float) -> bytes:
    """The shortest decimal that is the same number in single precision."""
    if not math.isfinite(value):
        return _text_float(value)
    short = next(text for n in range(6, 10) if _single(float(text := f"{value:.{n}g}")) == value)
    return _text_float(float(short))


def _single(value: float) -> float:
    return float(struct.unpack("!f", struct.pack("!f", value))[0])


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
