"""Reads and writes protobuf's wire format as far as a client of `tacit.v1` needs it.

The server's generated classes are not imported, because two copies of them cannot share a process,
and because a client needs a few messages only. Fields that a message does not have are passed over,
so that a newer server may say more. Knows no message; `details` and `marginals` do.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
N_VARINT_BYTES_MAX: Final = 10

Value: TypeAlias = int | bytes


class NotAMessage(ValueError):
    """These bytes are no protobuf message."""


def fields(message: bytes) -> dict[int, list[Value]]:
    """The values of a message by the numbers of their fields, in their order.

    A number is an int, or eight or four bytes if its field has a fixed size; all else is bytes.

    >>> fields(bytes([0x08, 0x96, 0x01, 0x12, 0x02]) + b"ab")
    {1: [150], 2: [b'ab']}
    """
    found: dict[int, list[Value]] = {}
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        value, place = _value(message, place, key & 7)
        found.setdefault(key >> 3, []).append(value)
    return found


def text_of(values: dict[int, list[Value]], number: int) -> str | None:
    """The text of a field; None if it is not there."""
    value = values.get(number, [None])[-1]
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else None


def double_of(values: dict[int, list[Value]], number: int) -> float | None:
    """The double of a field; None if it is not there."""
    value = values.get(number, [None])[-1]
    if not isinstance(value, bytes) or len(value) != struct.calcsize("<d"):
        return None
    return float(struct.unpack("<d", value)[0])


def doubles_of(values: dict[int, list[Value]], number: int) -> list[float]:
    """The doubles of a repeated field, packed or not."""
    packed = b"".join(one for one in values.get(number, ()) if isinstance(one, bytes))
    n_values, rest = divmod(len(packed), struct.calcsize("<d"))
    if rest:
        raise NotAMessage("A list of numbers ends within a number.")
    return list(struct.unpack(f"<{n_values}d", packed))


def integer_of(values: dict[int, list[Value]], number: int) -> int | None:
    """The integer of a field; None if it is not there."""
    value = values.get(number, [None])[-1]
    return value if isinstance(value, int) else None


def messages_of(values: dict[int, list[Value]], number: int) -> Iterator[dict[int, list[Value]]]:
    """The messages of a field, each by its own numbers."""
    return (fields(value) for value in values.get(number, ()) if isinstance(value, bytes))


def written(values: Iterable[tuple[int, object]]) -> bytes:
    """A message of numbered values: int, float, str, or bytes of a message; None is left out.

    >>> fields(written([(1, 150), (2, "ab"), (3, None)]))
    {1: [150], 2: [b'ab']}
    """
    return b"".join(_written(number, value) for number, value in values if value is not None)


def _written(number: int, value: object) -> bytes:
    match value:
        case int():
            return _written_varint(number << 3 | VARINT) + _written_varint(value & (2**64 - 1))
        case float():
            return _written_varint(number << 3 | FIXED64) + struct.pack("<d", value)
        case str() | bytes():
            packed = value.encode() if isinstance(value, str) else value
            return _written_varint(number << 3 | BYTES) + _written_varint(len(packed)) + packed
        case _:
            raise TypeError(
                f"a field must hold a number, a string, bytes or a message, not {type(value)}"
            )


def _written_varint(value: int) -> bytes:
    packed = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - seven bits a byte
        packed.append(value & 0x7F | 0x80)
        value >>= 7
    packed.append(value)
    return bytes(packed)


def _value(message: bytes, place: int, kind: int) -> tuple[Value, int]:
    if kind == VARINT:
        return _varint(message, place)
    if kind == BYTES:
        length, place = _varint(message, place)
    elif kind in {FIXED64, FIXED32}:
        length = 8 if kind == FIXED64 else 4
    else:
        raise NotAMessage("A field has an unknown wire type.")
    if place + length > len(message):
        raise NotAMessage("The message ends within a field.")
    return message[place : place + length], place + length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = 0
    for n_bytes, byte in enumerate(message[place : place + N_VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * n_bytes)
        if byte < 0x80:  # noqa: PLR2004 - seven bits a byte
            return value, place + n_bytes + 1
    raise NotAMessage("The message ends within a number.")
