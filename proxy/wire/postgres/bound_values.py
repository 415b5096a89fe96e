"""Values that clients bind to parameters: bytes of a type to the planner's parameters.

A value that is not written as its type says is refused. Values become literals of the syntax tree,
never text of the statement.
"""

import datetime as dt
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from planner.sql import (
    NoMoment,
    OutOfRange,
    Parameter,
    ParameterKind,
    Parameters,
    list_items,
    list_of,
    parameter_of,
    read_interval,
    read_moment,
)
from proxy.wire.postgres.frontend import decoded
from proxy.wire.postgres.pg_types import (
    BOOL,
    BPCHAR,
    CHAR,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    PgType,
)
from proxy.wire.postgres.sqlstates import StateError

_BAD_TEXT: Final = "22P02"
_BAD_BINARY: Final = "22P03"
_BAD_MOMENT: Final = "22007"
_NO_DAY: Final = "22008"
_TOO_LARGE: Final = "22003"
_NO_TYPE: Final = "42804"
_TRUE: Final = frozenset({"t", "true", "y", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "off", "0"})
_EPOCH: Final = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - PostgreSQL's times begin here
_EPOCH_DAY: Final = dt.date(2000, 1, 1).toordinal()
_N_DIGITS_MAX: Final = 1000  # of a NUMERIC
_MOMENTS: Final = frozenset({DATE, TIME, TIMESTAMP, TIMESTAMPTZ})
_DAY_MICROS: Final = 24 * 3600 * 10**6
_INTEGER: Final = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,5})?", re.ASCII)
_TEXTS: Final = frozenset({TEXT, VARCHAR, BPCHAR, NAME, CHAR, UNKNOWN})
_NUMERIC_HEAD: Final = struct.Struct("!hhHh")


@dataclass(frozen=True, slots=True)
class Reading:
    """How a session reads texts that could mean several things.

    Parameters
    ----------
    zone : datetime.tzinfo
        The zone of moments that name none.
    order : str
        Of days and months that are numbers: ``MDY``, ``DMY`` or ``YMD``.
    """

    zone: dt.tzinfo = dt.UTC
    order: str = "MDY"


USUAL: Final = Reading()


def bound(  # noqa: PLR0913, PLR0917 - what a Bind message and its statement say
    values: Sequence[bytes | None],
    formats: Sequence[int],
    types: Sequence[PgType],
    names: Sequence[str],
    places: Sequence[PgType] = (),
    reading: Reading = USUAL,
) -> Parameters:
    """The values of a Bind message.

    Parameters
    ----------
    values, formats : sequence
        The values and formats of the message.
    types, names : sequence
        The types and names of the statement's parameters.
    places : sequence of PgType
        What each stands beside: a moment with a zone is, beside one without, what the clocks of the
        session's zone show.

    Raises
    ------
    StateError
        If their number is wrong, or one is not of its type.
    """
    if len(values) != len(types):
        raise StateError(
            "08P01", f"The statement has {len(types)} parameters, and {len(values)} values came."
        )
    forms = spread(formats, len(values))
    beside = places or types
    return tuple(
        _parameter(value, form, kind, name, place, reading)
        for value, form, kind, name, place in zip(values, forms, types, names, beside, strict=True)
    )


def spread(formats: Sequence[int], n: int) -> tuple[int, ...]:
    """A format for each of n values: none given means text, one given is for all."""
    found = tuple(formats) if len(formats) > 1 else (formats[0] if formats else 0,) * n
    if len(found) != n or not set(found) <= {0, 1}:
        raise StateError("08P01", f"{len(formats)} formats came for {n} values.")
    return found


def _parameter(  # noqa: PLR0913, PLR0917 - as `bound`
    value: bytes | None, form: int, kind: PgType, name: str, place: PgType, reading: Reading
) -> Parameter:
    if value is None:
        return parameter_of(None, name)
    try:
        found = _binary(value, kind) if form else _text(decoded(value), kind, reading)
    except (ValueError, struct.error, InvalidOperation, OverflowError) as error:
        raise StateError(
            _BAD_BINARY if form else _state(error, kind.element or kind),
            f"A value for the parameter {name} is not a valid {kind.name}.",
        ) from None
    if kind is TIMESTAMPTZ and place in (DATE, TIMESTAMP):
        found = found.astimezone(reading.zone).replace(tzinfo=None)
    if isinstance(found, Parameter):
        return replace(found, name=name)
    return list_of(found, name) if isinstance(found, list) else parameter_of(found, name)


def _state(error: Exception, kind: PgType) -> str:
    """The SQLSTATE of a text that is no value of a type."""
    if kind not in _MOMENTS:
        return _TOO_LARGE if isinstance(error, OverflowError) else _BAD_TEXT
    return _NO_DAY if isinstance(error, OutOfRange | OverflowError) else _BAD_MOMENT


def _text(value: str, kind: PgType, reading: Reading) -> Any:
    if kind.element is not None:
        items = list_items(value)
        return [None if item is None else _text(item, kind.element, reading) for item in items]
    if kind in _TEXTS:
        return value
    match kind:
        case _ if kind is DATE:
            return read_moment(value, reading.order).day
        case _ if kind is TIMESTAMP:
            return read_moment(value, reading.order).local
        case _ if kind is TIMESTAMPTZ:
            return read_moment(value, reading.order).instant(reading.zone)
        case _:
            return _readers(kind)[0](value.strip())


def _binary(value: bytes, kind: PgType) -> Any:
    if kind.element is not None:
        return _binary_list(value, kind.element)
    if kind in _TEXTS:
        return decoded(value)
    return _readers(kind)[1](value)


def _readers(kind: PgType) -> tuple[Callable[[str], Any], Callable[[bytes], Any]]:
    found = _READERS.get(kind)
    if found is None:
        raise StateError(
            _NO_TYPE,
            f"A parameter cannot be a {kind.name}.",
            hint="Send numbers, texts, booleans, dates, times, timestamps, intervals, lists of "
            "them, and NULL.",
        )
    return found


def _whole(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError
    return int(text)


def _within(n_bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = _whole(text)
        if not -(2 ** (n_bits - 1)) <= number < 2 ** (n_bits - 1):
            raise OverflowError
        return number

    return read


def _decimal(text: str) -> Decimal:
    if len(text) > _N_DIGITS_MAX or _DECIMAL.fullmatch(text) is None:
        raise ValueError
    number = Decimal(text)
    if not number.is_finite() or abs(number.adjusted()) > _N_DIGITS_MAX:
        raise ValueError
    return number


def _float(text: str) -> float:
    if len(text) > _N_DIGITS_MAX or _DECIMAL.fullmatch(text) is None:
        raise ValueError
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _flag(text: str) -> bool:
    """A Boolean, or as much of its word as is clear."""
    folded = text.lower()
    if folded in ("", "o"):
        raise ValueError
    for value, words in ((True, _TRUE), (False, _FALSE)):
        if any(word.startswith(folded) for word in words):
            return value
    raise ValueError


def _interval(text: str) -> Parameter:
    if len(text) > _N_DIGITS_MAX:
        raise ValueError
    read_interval(text)  # which raises a ValueError
    return Parameter(ParameterKind.INTERVAL, text)


def _binary_interval(value: bytes) -> Parameter:
    micros, days, months = struct.unpack("!qii", value)
    sign = "-" if micros < 0 else ""
    seconds, fraction = divmod(abs(micros), 10**6)
    text = f"{months} months {days} days {sign}{seconds}.{fraction:06} seconds"
    return Parameter(ParameterKind.INTERVAL, text)


def _time(text: str) -> dt.time:
    """A time of day; an offset behind it is read and dropped, as PostgreSQL does."""
    if "/" in text or not text[:1].isdecimal():  # a region's offset needs a day
        raise NoMoment(text)
    return read_moment(f"2000-01-01 {text}").local.time()


def _binary_time(value: bytes) -> Parameter:
    (micros,) = struct.unpack("!q", value)
    if not 0 <= micros <= _DAY_MICROS:
        raise OverflowError
    seconds, fraction = divmod(micros, 10**6)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return Parameter(ParameterKind.TIME, f"{clock}.{fraction:06}" if fraction else clock)


def _unpacked(layout: str) -> Callable[[bytes], Any]:
    packed = struct.Struct(layout)
    return lambda value: packed.unpack(value)[0]


def _binary_decimal(value: bytes) -> Decimal:
    n_groups, weight, sign, scale = _NUMERIC_HEAD.unpack_from(value)
    if sign not in (0, 0x4000) or not 0 <= n_groups <= _N_DIGITS_MAX // 4 or scale < 0:
        raise ValueError
    groups = struct.unpack(f"!{n_groups}h", value[_NUMERIC_HEAD.size :])
    if abs(weight) > _N_DIGITS_MAX // 4 or any(not 0 <= group < 10_000 for group in groups):  # noqa: PLR2004 - four digits
        raise ValueError
    digits = int("".join(f"{group:04}" for group in groups) or "0")
    text = f"{'-' if sign else ''}{digits}E{4 * (weight + 1 - n_groups)}"
    return Decimal(text)


def _binary_moment(value: bytes) -> dt.datetime:
    (micros,) = struct.unpack("!q", value)
    return _EPOCH + dt.timedelta(microseconds=micros)


def _binary_instant(value: bytes) -> dt.datetime:
    return _binary_moment(value).replace(tzinfo=dt.UTC)


def _binary_day(value: bytes) -> dt.date:
    (days,) = struct.unpack("!i", value)
    return dt.date.fromordinal(days + _EPOCH_DAY)


def _binary_flag(value: bytes) -> bool:
    if value not in (b"\0", b"\1"):
        raise ValueError
    return value == b"\1"


def _binary_list(value: bytes, element: PgType) -> list[Any]:
    """A list of one dimension; its elements say their type themselves."""
    n_dimensions, _, oid = struct.unpack_from("!iiI", value)
    if n_dimensions == 0 and len(value) == 12:  # noqa: PLR2004 - nothing behind the head
        return []
    if n_dimensions != 1 or oid != element.oid:
        raise ValueError
    n_items, _ = struct.unpack_from("!ii", value, 12)
    place, found = 20, []
    for _ in range(n_items):
        (length,) = struct.unpack_from("!i", value, place)
        place += 4
        if length < -1 or place + max(length, 0) > len(value):
            raise ValueError
        found.append(None if length < 0 else _binary(value[place : place + length], element))
        place += max(length, 0)
    if place != len(value):
        raise ValueError
    return found


_READERS: Final[dict[PgType, tuple[Callable[[str], Any], Callable[[bytes], Any]]]] = {
    BOOL: (_flag, _binary_flag),
    INT2: (_within(16), _unpacked("!h")),
    INT4: (_within(32), _unpacked("!i")),
    INT8: (_within(64), _unpacked("!q")),
    OID: (_whole, _unpacked("!I")),
    FLOAT4: (_float, _unpacked("!f")),
    FLOAT8: (_float, _unpacked("!d")),
    NUMERIC: (_decimal, _binary_decimal),
    DATE: (read_moment, _binary_day),
    TIMESTAMP: (read_moment, _binary_moment),
    TIMESTAMPTZ: (read_moment, _binary_instant),
    TIME: (_time, _binary_time),
    INTERVAL: (_interval, _binary_interval),
}
