"""Collectors tell streams who came, over both protocols; whatever else they try is refused."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi
from adbc_driver_manager import Error

import tacit_client
from accountant.auditor.verify import verify
from accountant.ledger.credentials import Role
from cube.refusals import NotAllowed
from proxy.api.requests import LOCAL
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.every_call import packed
from tests.support.identities import bearer, refusal, token_for
from tests.support.serving import serving
from tests.support.streaming import COUNT, CREATE, Streaming, streaming

USERS = pa.table({"user": range(300)})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Streaming]:
    with streaming(tmp_path / "a.ledger") as found:
        found.rows(CREATE)
        found.rows(CREATE.replace("visits", "hits"))
        yield found


@pytest.fixture
def address(server: Streaming) -> Iterator[str]:
    doors = LedgerAuthenticator(server.ledger)
    with serving(server.engine, authenticator=doors, streams=server.streams) as found:
        yield found


@pytest.fixture
def token(server: Streaming) -> str:
    return token_for(server.ledger, "gate-3", "visits", role=Role.COLLECTOR)


@contextmanager
def cursor_of(address: str, token: str) -> Iterator[Any]:
    options = {"adbc.flight.sql.authorization_header": f"Bearer {token}"}
    with (
        dbapi.connect(f"grpc://{address}", db_kwargs=options, autocommit=True) as connection,
        connection.cursor() as opened,
    ):
        yield opened


def test_a_collector_tells_a_stream_who_came(server: Streaming, address: str, token: str) -> None:
    with cursor_of(address, token) as cursor:
        assert cursor.adbc_ingest("visits", USERS, mode="append") == 300
    with tacit_client.connect(address, token=token) as connection:
        connection.observe("visits", range(200, 500))
    # 1000 bits of epsilon 8 miss by a deviation of about 1; 30 off happens in no lifetime.
    assert abs(server.rows(COUNT)[0]["n"] - 500) < 30
    assert verify(list(server.ledger.entries())).problem is None


def test_another_stream_does_not_exist_for_them(
    server: Streaming, address: str, token: str
) -> None:
    with cursor_of(address, token) as cursor, pytest.raises(Error, match="no stream 'hits'"):
        cursor.adbc_ingest("hits", USERS, mode="append")
    with grpc.insecure_channel(address) as channel:
        users = tacit_pb2.ObserveRequest(stream="hits", ids=[1])
        code, said = refusal(
            lambda: TacitStub(channel).Observe(iter([users]), metadata=bearer(token))
        )
    assert code is grpc.StatusCode.NOT_FOUND
    assert "Did you mean 'visits'?" in said
    assert "epoch_released" not in server.kinds()


def test_a_collector_reads_nothing_and_changes_nothing(
    server: Streaming, address: str, token: str
) -> None:
    before = server.kinds()
    with cursor_of(address, token) as cursor:
        for statement in (COUNT, "SELECT * FROM data_privacy.streams", "DROP STREAM visits"):
            with pytest.raises(Error, match="The role collector may not call DoAction"):
                cursor.execute(statement)
    with grpc.insecure_channel(address) as channel:
        for command in (
            sql.CommandStatementUpdate(query="DROP STREAM visits"),
            sql.CommandPreparedStatementQuery(prepared_statement_handle=b"any"),
        ):
            first = flight_pb2.FlightData()
            first.flight_descriptor.cmd = packed(command)
            stub = FlightServiceStub(channel)
            put = refusal(partial(stub.DoPut, iter([first]), metadata=bearer(token)))
            assert put[0] is grpc.StatusCode.PERMISSION_DENIED
            assert "The role collector may not query" in put[1]
    assert server.kinds() == before


def test_analysts_and_auditors_tell_no_stream_who_came(server: Streaming) -> None:
    for role in (Role.ANALYST, Role.AUDITOR):
        with pytest.raises(NotAllowed, match="Only collectors and owners"):
            server.streams.observed(replace(LOCAL, role=role), "visits")
