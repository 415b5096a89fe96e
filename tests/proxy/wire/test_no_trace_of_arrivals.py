"""Calls that bring arrivals leave nothing in logs and metrics, which would be a count of them."""

import io
from collections.abc import Iterator
from pathlib import Path

import grpc
import pyarrow as pa
import pytest
import structlog
from google.protobuf.any_pb2 import Any as AnyMessage

from proxy.monitoring.logs import configure_logs
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol import tacit_pb2
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.wire.arrow_ipc import flight_messages
from tests.support.streaming import CREATE, Streaming, streaming
from tests.support.watched import told, watched

OBSERVE = "/tacit.v1.Tacit/Observe"
OPTIONS = sql.CommandStatementIngest.TableDefinitionOptions
APPEND = OPTIONS(
    if_not_exist=OPTIONS.TABLE_NOT_EXIST_OPTION_FAIL, if_exists=OPTIONS.TABLE_EXISTS_OPTION_APPEND
)
PROCESS = ("process_", "python_")  # what any work of a process moves


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Streaming]:
    with streaming(tmp_path / "a.ledger") as found:
        found.rows(CREATE)
        yield found


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written = io.StringIO()
    configure_logs(written)
    yield written
    structlog.reset_defaults()


def kept(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(("#", *PROCESS))]


def observe(stub: TacitStub, ids: list[int]) -> None:
    stub.Observe(iter([tacit_pb2.ObserveRequest(stream="visits", ids=ids)]))


def test_a_call_that_is_taken_leaves_nothing_and_one_that_is_refused_a_line(
    server: Streaming, log: io.StringIO
) -> None:
    with watched(server.engine, server.streams) as (metrics, channel, _):
        stub = TacitStub(channel)
        before, lines = kept(told(metrics)), log.getvalue()
        for user in range(20):
            observe(stub, [user])
        assert kept(told(metrics)) == before
        assert log.getvalue() == lines
        with pytest.raises(grpc.RpcError):
            observe(stub, [-1])
        assert f'"method": "{OBSERVE}"' in log.getvalue()
        assert kept(told(metrics)) != before


def test_an_upload_leaves_nothing(server: Streaming, log: io.StringIO) -> None:
    envelope = AnyMessage()
    envelope.Pack(sql.CommandStatementIngest(table="visits", table_definition_options=APPEND))
    first, *rest = flight_messages(pa.table({"user": [1, 2]}))
    first.flight_descriptor.cmd = envelope.SerializeToString()
    with watched(server.engine, server.streams) as (metrics, channel, _):
        before, lines = kept(told(metrics)), log.getvalue()
        (done,) = FlightServiceStub(channel).DoPut(iter((first, *rest)))
        assert done.app_metadata
        assert kept(told(metrics)) == before
        assert log.getvalue() == lines
