"""Values that clients bind to parameters: bytes of a type to the planner's parameters.

A value that is not written as its type says is refused. Values become literals of the syntax tree,
never text of the statement.
"""

import datetime as dt
import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from planner.sql.parameters import Parameter, Parameters, list_of, parameter_of
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
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    VARCHAR,
    PgType,
)
from proxy.wire.postgres.sqlstates import StateError

_BAD_TEXT: Final = "22P02"
_BAD_BINARY: Final = "22P03"
_NO_TYPE: Final = "42804"
_TRUE: Final = frozenset({"t", "true", "y", "yes", "on", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "off", "0"})
_EPOCH: Final = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - PostgreSQL's times begin here
_EPOCH_DAY: Final = dt.date(2000, 1, 1).toordinal()
_N_DIGITS_MAX: Final = 1000  # of a NUMERIC
_TEXTS: Final = frozenset({TEXT, VARCHAR, BPCHAR, NAME, CHAR, UNKNOWN})
_WHOLE: Final = frozenset({INT2, INT4, INT8, OID})
_NUMERIC_HEAD: Final = struct.Struct("!hhHh")


def bound(
    values: Sequence[bytes | None],
    formats: Sequence[int],
    types: Sequence[PgType],
    names: Sequence[str],
) -> Parameters:
    """The values of a Bind message.

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
    return tuple(
        _parameter(value, form, kind, name)
        for value, form, kind, name in zip(values, forms, types, names, strict=True)
    )


def spread(formats: Sequence[int], n: int) -> tuple[int, ...]:
    """A format for each of n values: none given means text, one given is for all."""
    found = tuple(formats) if len(formats) > 1 else (formats[0] if formats else 0,) * n
    if len(found) != n or not set(found) <= {0, 1}:
        raise StateError("08P01", f"{len(formats)} formats came for {n} values.")
    return found


def _parameter(value: bytes | None, form: int, kind: PgType, name: str) -> Parameter:
    if value is None:
        return parameter_of(None, name)
    try:
        found = _binary(value, kind) if form else _text(decoded(value), kind)
    except (ValueError, struct.error, InvalidOperation, OverflowError):
        raise StateError(
            _BAD_BINARY if form else _BAD_TEXT,
            f"A value for the parameter {name} is no {kind.name}.",
        ) from None
    return list_of(found, name) if isinstance(found, list) else parameter_of(found, name)


def _text(value: str, kind: PgType) -> Any:
    if kind.element is not None:
        return [None if item is None else _text(item, kind.element) for item in _items(value)]
    if kind in _TEXTS:
        return value
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
            hint="Send numbers, texts, booleans, dates, timestamps, lists of them, and NULL.",
        )
    return found


def _whole(text: str) -> int:
    if len(text) > 20:  # noqa: PLR2004 - the digits of 64 bits, and a sign
        raise ValueError
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > _N_DIGITS_MAX:
        raise ValueError
    number = Decimal(text)
    if not number.is_finite() or abs(number.adjusted()) > _N_DIGITS_MAX:
        raise ValueError
    return number


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _flag(text: str) -> bool:
    folded = text.lower()
    if folded not in _TRUE | _FALSE:
        raise ValueError
    return folded in _TRUE


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


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


def _items(text: str) -> list[str | None]:
    """The items of a list in the text format: ``{a,"b,c",NULL}``."""
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError
    found: list[str | None] = []
    place, end = 1, len(text) - 1
    while place < end:
        item, place = _quoted_item(text, place) if text[place] == '"' else _bare_item(text, place)
        found.append(item)
        if place < end and text[place] != ",":
            raise ValueError
        place += 1
        if place == end:  # a comma at the end
            raise ValueError
    return found


def _bare_item(text: str, place: int) -> tuple[str | None, int]:
    ends = [at for at in (text.find(",", place), len(text) - 1) if at >= 0]
    item = text[place : min(ends)].strip()
    if not item or set(item) & set('{}"\\'):
        raise ValueError
    return (None if item.upper() == "NULL" else item), min(ends)


def _quoted_item(text: str, place: int) -> tuple[str, int]:
    found: list[str] = []
    place += 1
    while text[place] != '"':
        place += text[place] == "\\"
        found.append(text[place])
        place += 1
        if place >= len(text) - 1:
            raise ValueError
    return "".join(found), place + 1


_READERS: Final[dict[PgType, tuple[Callable[[str], Any], Callable[[bytes], Any]]]] = {
    BOOL: (_flag, _binary_flag),
    INT2: (_whole, _unpacked("!h")),
    INT4: (_whole, _unpacked("!i")),
    INT8: (_whole, _unpacked("!q")),
    OID: (_whole, _unpacked("!I")),
    FLOAT4: (_float, _unpacked("!f")),
    FLOAT8: (_float, _unpacked("!d")),
    NUMERIC: (_decimal, _binary_decimal),
    DATE: (dt.date.fromisoformat, _binary_day),
    TIMESTAMP: (_moment, _binary_moment),
    TIMESTAMPTZ: (_moment, _binary_moment),
}
