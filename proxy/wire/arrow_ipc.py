"""Arrow tables and schemas as the bytes that Flight and `tacit.v1` carry.

An Arrow IPC stream is a sequence of messages, each a flatbuffer header and a body; Flight sends
one of them in each `FlightData`. Inwards come only the values of a statement's parameters,
and users of streams.

Of a message that comes in, the header says whether its body is compressed. A body of a megabyte may
stand for many gigabytes if it is, and a reader of Arrow unpacks it before anybody can ask how large
it is. pyarrow does not report this of a message; a header is a flatbuffer, and a few of its fields
are read here. If it is not a flatbuffer, Arrow refuses it by itself.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from cube.pace import checkpoint
from cube.refusals import InvalidRequest, TooLarge
from proxy.api import clean_batches
from proxy.protocol import flight_pb2

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


BATCH_BYTES = 2**20  # a quarter of most gRPC clients' default limit for one message
CHUNK_BYTES = 2**18  # pieces of a byte stream; small enough to start showing a result early


def schema_bytes(schema: pa.Schema) -> bytes:
    """The schema as one encapsulated IPC message."""
    return bytes(schema.serialize())


def stream_bytes(table: pa.Table) -> bytes:
    """The table as one Arrow IPC stream, in batches of about `BATCH_BYTES`.

    Each batch is cleaned: the bytes are those of the rows, and zeros.
    """
    n_parts = 1 + table.nbytes // BATCH_BYTES
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in clean_batches(table, max(1, -(-table.num_rows // n_parts))):
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def stream_chunks(table: pa.Table) -> Iterator[bytes]:
    """The same stream in pieces of at most `CHUNK_BYTES`."""
    whole = stream_bytes(table)
    for start in range(0, len(whole), CHUNK_BYTES):
        yield whole[start : start + CHUNK_BYTES]


def flight_messages(table: pa.Table) -> tuple[flight_pb2.FlightData, ...]:
    """The same stream as Flight sends it: the schema, then every batch."""
    return tuple(
        flight_pb2.FlightData(
            data_header=bytes(message.metadata),
            data_body=b"" if message.body is None else bytes(message.body),
        )
        for message in pa.ipc.MessageReader.open_stream(stream_bytes(table))
    )


def sent_table(
    messages: Iterable[flight_pb2.FlightData], n_bytes_max: int, what: str, hint: str
) -> pa.Table:
    """The table that a client sends.

    Parameters
    ----------
    what, hint : str
        What it is, for refusals; and what to do if it is too large.

    Raises
    ------
    InvalidRequest, TooLarge
        If the messages are no Arrow stream, or too large.
    """
    pieces: list[bytes] = []
    n_bytes = 0
    for message in messages:
        checkpoint()
        n_bytes += len(message.data_header) + len(message.data_body)
        if n_bytes > n_bytes_max:
            raise TooLarge(f"{what.capitalize()} have more than {n_bytes_max} bytes.", hint=hint)
        if message.data_header:
            if _is_compressed(message.data_header):
                raise TooLarge(
                    f"{what.capitalize()} may be compressed, and could then have any size.",
                    hint="Send them uncompressed, in Arrow's format of version 5.",
                )
            padded = message.data_header + bytes(-len(message.data_header) % 8)
            length = len(padded).to_bytes(4, "little")
            pieces += (b"\xff\xff\xff\xff", length, padded, message.data_body)
    try:
        with pa.ipc.open_stream(b"".join(pieces)) as reader:
            table = reader.read_all()
        table.validate(full=True)  # or lengths that a client claims would be believed
    except (pa.ArrowException, EOFError, OSError):
        raise InvalidRequest(f"{what.capitalize()} are not an Arrow table.") from None
    return table


def _is_compressed(header: bytes) -> bool:
    try:
        return may_be_compressed(header)
    except (struct.error, IndexError):
        return False  # no header; Arrow says so
