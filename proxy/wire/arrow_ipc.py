"""Arrow tables and schemas as the bytes that Flight and `tacit.v1` carry.

An Arrow IPC stream is a sequence of messages, each a flatbuffer header and a body; Flight sends
one of them in each `FlightData`. Inwards come only the values of a statement's parameters,
and users of streams.
"""

import struct
from collections.abc import Iterable, Iterator

import pyarrow as pa

from cube.pace import checkpoint
from cube.refusals import InvalidRequest, TooLarge
from proxy.api.clean_arrow import clean_batches
from proxy.protocol import flight_pb2
from proxy.wire.ipc_header import may_be_compressed

BATCH_BYTES = 2**20  # a quarter of what most gRPC clients take as one message by default
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
    messages : iterable of FlightData
    n_bytes_max : int
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
                    f"{what.capitalize()} may be compressed, and then of any size.",
                    hint="Send them as they are, in Arrow's format of version 5.",
                )
            padded = message.data_header + bytes(-len(message.data_header) % 8)
            length = len(padded).to_bytes(4, "little")
            pieces += (b"\xff\xff\xff\xff", length, padded, message.data_body)
    try:
        with pa.ipc.open_stream(b"".join(pieces)) as reader:
            table = reader.read_all()
        table.validate(full=True)  # or lengths that a client claims would be believed
    except (pa.ArrowException, EOFError, OSError):
        raise InvalidRequest(f"{what.capitalize()} are no Arrow table.") from None
    return table


def _is_compressed(header: bytes) -> bool:
    try:
        return may_be_compressed(header)
    except (struct.error, IndexError):
        return False  # no header; Arrow says so
