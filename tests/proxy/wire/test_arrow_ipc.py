"""Tables survive the trip: pyarrow reads back what was written, in messages of bounded size."""

import struct

import pyarrow as pa
import pytest

from cube.refusals import InvalidRequest, TooLarge
from proxy.protocol import flight_pb2
from proxy.wire.arrow_ipc import (
    BATCH_BYTES,
    CHUNK_BYTES,
    flight_messages,
    may_be_compressed,
    schema_bytes,
    sent_table,
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


def sent(stream: bytes) -> list[flight_pb2.FlightData]:
    return [
        flight_pb2.FlightData(
            data_header=bytes(message.metadata),
            data_body=b"" if message.body is None else bytes(message.body),
        )
        for message in pa.ipc.MessageReader.open_stream(stream)
    ]


def written(table: pa.Table, options: pa.ipc.IpcWriteOptions) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_what_a_client_sends_is_read_as_it_was(table: pa.Table) -> None:
    back = sent_table(flight_messages(table), 2**26, "the rows", "")
    assert str(back.to_pylist()) == str(table.to_pylist())


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_what_is_compressed_is_refused_before_it_is_unpacked(codec: str) -> None:
    plain = pa.table({"a": [0] * 1000, "b": pa.array(["x"] * 1000).dictionary_encode()})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    for table in (plain, plain.select(["a"]), plain.select(["b"])):
        messages = sent(written(table, options))
        schema, *rest = (may_be_compressed(one.data_header) for one in messages)
        assert not schema
        assert rest
        assert all(rest)
        with pytest.raises(TooLarge, match="may be compressed"):
            sent_table(messages, 2**20, "the rows", "")


def test_formats_that_mark_compression_elsewhere_are_refused() -> None:
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    with pytest.raises(TooLarge, match="may be compressed"):
        sent_table(sent(written(pa.table({"a": [1]}), options)), 2**20, "the rows", "")


def test_what_is_no_header_is_no_table() -> None:
    whole = flight_messages(pa.table({"a": [1, 2]}))[1].data_header
    for cut in (b"", b"junk", b"\xff" * 60, *(whole[:size] for size in range(0, len(whole), 7))):
        schema = flight_messages(pa.table({"a": [1, 2]}))[0]
        messages = [schema, flight_pb2.FlightData(data_header=cut or b"\0", data_body=b"")]
        with pytest.raises((InvalidRequest, TooLarge)):
            sent_table(messages, 2**20, "the rows", "")
