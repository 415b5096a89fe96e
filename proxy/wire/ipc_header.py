"""The header of one Arrow IPC message: whether its body is compressed.

A body of a megabyte may stand for many gigabytes if it is, and a reader of Arrow unpacks it before
anybody can ask how large it is. pyarrow does not say so of a message; a header is a flatbuffer, of
which these few fields are read. What is no flatbuffer, Arrow refuses by itself.
"""

import struct
from typing import Final

VERSION_5: Final = 4  # the number that stands for it; earlier ones marked compression elsewhere
DICTIONARY_BATCH: Final = 2
RECORD_BATCH: Final = 3
_VERSION, _KIND, _HEADER = 0, 1, 2  # the fields of a message, by their slots
_DATA: Final = 1  # of a dictionary
_COMPRESSION: Final = 3  # of a record batch


def may_be_compressed(header: bytes) -> bool:
    """Whether the body of a message is compressed, or that cannot be told.

    Raises
    ------
    struct.error
        If it is no header.
    """
    (message,) = struct.unpack_from("<I", header)
    version, kind = (_field(header, message, slot) for slot in (_VERSION, _KIND))
    what = 0 if kind is None else header[kind]
    if what not in {RECORD_BATCH, DICTIONARY_BATCH}:
        return False
    batch = _table(header, message, _HEADER)
    if what == DICTIONARY_BATCH:
        batch = _table(header, batch, _DATA)
    is_now = version is not None and struct.unpack_from("<h", header, version) == (VERSION_5,)
    return not is_now or _field(header, batch, _COMPRESSION) is not None


def _field(header: bytes, table: int, slot: int) -> int | None:
    """Where a field of a table is; None if it was left out."""
    (back,) = struct.unpack_from("<i", header, table)
    listed = table - back
    (size,) = struct.unpack_from("<H", header, listed)
    place = 4 + 2 * slot
    if place + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", header, listed + place)
    return table + offset if offset else None


def _table(header: bytes, table: int, slot: int) -> int:
    """Where the table is that a field refers to."""
    field = _field(header, table, slot)
    if field is None:
        raise struct.error("a message without its header")
    (offset,) = struct.unpack_from("<I", header, field)
    return field + int(offset)
