"""An answer as the stream of a COPY: PostgreSQL's text, CSV and binary formats."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from planner.sql.copying import CopyFormat, CopyOut
from proxy.wire.postgres.backend import Column
from proxy.wire.postgres.values import USUAL, TextStyle, rows_of

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
