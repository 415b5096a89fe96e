"""What the process held before is in no answer: memory is poisoned, and answers are the same."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import grpc
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from proxy.protocol import flight_pb2, flight_sql_pb2, tacit_pb2
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.wire.arrow_ipc import stream_bytes
from tests.support.private_history import world
from tests.support.serving import serving

PERTURB = -6  # of glibc's mallopt: the byte that memory holds before it is used, and after
MARKERS = (0x5E, 0xA1, 0x3C)
on_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
FREE = (
    (
        "SELECT CASE WHEN typlen = 4 THEN 1::bigint ELSE NULL END AS x1, typname AS t, "
        "CASE WHEN typlen = 8 THEN typname ELSE NULL END AS x2, "
        "CASE WHEN typlen = 1 THEN 2.5::double precision END AS x3 FROM pg_catalog.pg_type"
    ),
    (
        "SELECT NULLIF(attnum, 1) AS n, attnum > 1 AS b, NULLIF(attname, 'age') AS t "
        "FROM pg_catalog.pg_attribute"
    ),
    "SELECT city, NULLIF(COUNT(*), 0) AS n FROM people GROUP BY city",
    (
        "SELECT CASE WHEN city = 'Oslo' THEN n END AS n, CASE WHEN n < 0 THEN city END AS c FROM "
        "(SELECT city, COUNT(*) AS n FROM people GROUP BY city) AS x"
    ),
    "SELECT * FROM data_privacy.history",
    "SELECT * FROM information_schema.columns",
)


@contextmanager
def poisoned(marker: int) -> Iterator[None]:
    """While inside, memory that is handed out or given back is filled with a marker."""
    libc = ctypes.CDLL(None)
    libc.mallopt(PERTURB, marker)
    try:
        yield
    finally:
        libc.mallopt(PERTURB, 0)


def statement_bytes(channel: grpc.Channel, sql: str) -> bytes:
    """All that Flight SQL and `tacit.v1` send as the answer's data."""
    envelope = AnyMessage()
    envelope.Pack(flight_sql_pb2.CommandStatementQuery(query=sql))
    command = flight_pb2.FlightDescriptor(
        type=flight_pb2.FlightDescriptor.CMD, cmd=envelope.SerializeToString()
    )
    stub = FlightServiceStub(channel)
    info = stub.GetFlightInfo(command)
    sent = [message.SerializeToString() for message in stub.DoGet(info.endpoint[0].ticket)]
    replies = TacitStub(channel).Query(tacit_pb2.QueryRequest(sql=sql))
    return b"".join([*sent, *(reply.ipc for reply in replies)])


@pytest.mark.slow
@on_glibc
def test_answers_are_the_same_whatever_memory_held(tmp_path: Path) -> None:
    with (
        world(tmp_path / "people", is_busy=False) as engine,
        serving(engine) as address,
        grpc.insecure_channel(address) as channel,
    ):
        for sql in FREE:
            statement_bytes(channel, sql)  # buys what it needs
        seen = []
        for marker in MARKERS:
            with poisoned(marker):
                seen.append([statement_bytes(channel, sql) for sql in FREE])
    assert all(len(set(same)) == 1 for same in zip(*seen, strict=True))


ROWS = (
    "SELECT CASE WHEN i % 4 = 0 THEN i ELSE NULL END AS a, "
    "CASE WHEN i % 3 = 0 THEN 'some longer text ' || i END AS b, "
    "CASE WHEN i % 7 = 0 THEN i % 3 = 0 END AS c, "
    "CASE WHEN i % 2 = 0 THEN [i, NULL, i] END AS d, "
    "CASE WHEN i % 7 = 0 THEN {'x': i, 'y': 't' || i} END AS e, "
    "CASE WHEN i % 3 = 0 THEN i::DECIMAL(30, 2) END AS f FROM range(3001) t(i)"
)


@on_glibc
def test_the_poison_is_in_what_arrow_would_write_and_not_in_what_is_sent() -> None:
    written, sent = set(), set()
    with duckdb.connect() as connection:
        for marker in MARKERS:
            with poisoned(marker):
                table = connection.sql(ROWS).to_arrow_table()
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                written.add(bytes(sink.getvalue()))
                sent.add(stream_bytes(table))
    assert len(written) > 1
    assert len(sent) == 1
