"""Tables survive the trip: pyarrow reads back what was written, in messages of bounded size."""

import struct

import pyarrow as pa
import pytest

from proxy.protocol import flight_pb2
from proxy.wire.arrow_ipc import (
    BATCH_BYTES,
    CHUNK_BYTES,
    flight_messages,
    schema_bytes,
    stream_bytes,
    stream_chunks,
)

DESCRIBED = pa.schema([pa.field("a", pa.int64(), nullable=False)], metadata={b"k": b"v"})
TABLES = {
    "no rows": DESCRIBED.empty_table(),
    "no columns": pa.table({}),
    "metadata": pa.table({"a": [1, 2]}, schema=DESCRIBED),
    "nulls": pa.table({"a": [None, "ä", ""], "b": [1.5, None, float("nan")]}),
    "dictionary": pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode()}),
    "decimal": pa.table({"a": pa.array([None, 12], pa.decimal128(10, 2))}),
    "chunked": pa.table({"a": pa.chunked_array([[1], [], [2, 3]])}),
    "large": pa.table({"a": range(400_000), "b": ["some text"] * 400_000}),
}


def reassembled(messages: tuple[flight_pb2.FlightData, ...]) -> pa.Table:
    """The stream of Arrow's columnar format: marker, padded header, body; then an end marker."""
    stream = b""
    for message in messages:
        header = message.data_header.ljust(-(-len(message.data_header) // 8) * 8, b"\0")
        stream += b"\xff\xff\xff\xff" + struct.pack("<i", len(header)) + header + message.data_body
    return pa.ipc.open_stream(stream + b"\xff\xff\xff\xff\0\0\0\0").read_all()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_a_table_survives_the_trip(table: pa.Table) -> None:
    for back in (
        pa.ipc.open_stream(stream_bytes(table)).read_all(),
        pa.ipc.open_stream(b"".join(stream_chunks(table))).read_all(),
        reassembled(flight_messages(table)),
    ):
        assert back.schema.equals(table.schema, check_metadata=True)
        assert str(back.to_pylist()) == str(table.to_pylist())  # as text, because NaN != NaN


def test_a_large_table_travels_in_messages_of_bounded_size() -> None:
    table = TABLES["large"]
    assert max(message.ByteSize() for message in flight_messages(table)) < 2 * BATCH_BYTES
    assert max(map(len, stream_chunks(table))) == CHUNK_BYTES


def test_a_schema_is_one_message_that_arrow_reads() -> None:
    assert pa.ipc.read_schema(pa.py_buffer(schema_bytes(DESCRIBED))).equals(
        DESCRIBED, check_metadata=True
    )
