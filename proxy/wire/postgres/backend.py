"""What the server sends: messages to bytes. Pure.

Formats: PostgreSQL 15, chapter 55.7.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proxy.wire.postgres.pg_types import PgType

_UNBOUND_TABLE: Final = 0
_NO_MODIFIER: Final = -1


class Standing(bytes, Enum):
    """Whether a session is in a transaction."""

    IDLE = b"I"
    OPEN = b"T"
    FAILED = b"E"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result, and the format its values travel in: 0 text, 1 binary."""

    name: str
    type: PgType
    format: int = 0


TLS_ACCEPTED: Final = b"S"
ENCRYPTION_DECLINED: Final = b"N"


def _framed(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack("!i", len(body) + 4) + body


PARSE_COMPLETE: Final = _framed(b"1")
BIND_COMPLETE: Final = _framed(b"2")
CLOSE_COMPLETE: Final = _framed(b"3")
NO_DATA: Final = _framed(b"n")
PORTAL_SUSPENDED: Final = _framed(b"s")
COPY_DONE: Final = _framed(b"c")
EMPTY_QUERY: Final = _framed(b"I")
AUTHENTICATION_OK: Final = _framed(b"R", struct.pack("!i", 0))


def text(value: str) -> bytes:
    """A text with its end; what UTF-8 or C cannot hold is replaced."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace") + b"\0"


def sasl_mechanisms(names: Iterable[str]) -> bytes:
    """The ways to log in, the best first."""
    return _framed(b"R", struct.pack("!i", 10) + b"".join(map(text, names)) + b"\0")


def sasl_continue(data: bytes) -> bytes:
    """The server's first message of an exchange."""
    return _framed(b"R", struct.pack("!i", 11) + data)


def sasl_final(data: bytes) -> bytes:
    """The server's last message of an exchange."""
    return _framed(b"R", struct.pack("!i", 12) + data)


def negotiate_version(minor: int, unknown_options: Sequence[str]) -> bytes:
    """The newest minor version that is spoken here, and the options that are not known."""
    head = struct.pack("!ii", minor, len(unknown_options))
    return _framed(b"v", head + b"".join(map(text, unknown_options)))


def parameter_status(name: str, value: str) -> bytes:
    """A setting that clients want to know of."""
    return _framed(b"S", text(name) + text(value))


def backend_key(process: int, key: int) -> bytes:
    """What a cancel request has to name."""
    return _framed(b"K", struct.pack("!iI", process, key))


def ready(standing: Standing) -> bytes:
    """The next query may come."""
    return _framed(b"Z", standing.value)


def row_description(columns: Sequence[Column]) -> bytes:
    """The columns of the rows that follow."""
    parts = [struct.pack("!h", len(columns))]
    parts += [
        text(column.name)
        + struct.pack(
            "!IhIhih",
            _UNBOUND_TABLE,
            0,
            column.type.oid,
            column.type.size,
            _NO_MODIFIER,
            column.format,
        )
        for column in columns
    ]
    return _framed(b"T", b"".join(parts))


def parameter_description(types: Sequence[PgType]) -> bytes:
    """The types of a statement's parameters."""
    return _framed(b"t", struct.pack(f"!h{len(types)}I", len(types), *(one.oid for one in types)))


def data_row(values: Iterable[bytes | None]) -> bytes:
    """One row."""
    parts = [
        b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value
        for value in values
    ]
    return _framed(b"D", struct.pack("!h", len(parts)) + b"".join(parts))


def copy_out(n_columns: int, *, is_binary: bool) -> bytes:
    """A stream of so many columns follows."""
    form = int(is_binary)
    return _framed(b"H", struct.pack(f"!bh{n_columns}h", form, n_columns, *[form] * n_columns))


def copy_data(piece: bytes) -> bytes:
    """A piece of a stream."""
    return _framed(b"d", piece)


def command_complete(tag: str) -> bytes:
    """A statement is done."""
    return _framed(b"C", text(tag))


def error(fields: Iterable[tuple[str, str]]) -> bytes:
    """A statement failed; see `sqlstates` for the fields."""
    return _framed(b"E", _fields(fields))


def notice(fields: Iterable[tuple[str, str]]) -> bytes:
    """Something to know."""
    return _framed(b"N", _fields(fields))


def _fields(fields: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(letter.encode("ascii") + text(value) for letter, value in fields) + b"\0"
