"""Calls of a real server: who is let in, as whom, and what those who are not are told."""

from functools import partial
from pathlib import Path

import grpc
from adbc_driver_flightsql import dbapi
from google.protobuf.any_pb2 import Any as AnyMessage
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.issuing import Grant, issue_token, revoke
from proxy.monitoring.service import LedgerWatch, Readiness
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.tokens import new_token
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.every_call import CALLS, packed
from tests.support.identities import (
    REFUSED,
    bearer,
    refusal,
    soon,
    tables_seen,
    token_for,
)
from tests.support.serving import serving

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED


def test_health_and_reflection_are_open(channel: grpc.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    assert health.Check(health_pb2.HealthCheckRequest()).status
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    (reply,) = stub.ServerReflectionInfo(iter([ask]))
    assert reply.list_services_response.service


def test_the_name_of_the_caller_is_that_of_the_credential(
    channel: grpc.Channel, ledger: Ledger, engine: CannedEngine
) -> None:
    token = token_for(ledger, "ann", groups=("sales",))
    spoofed = (*bearer(token), ("x-analyst", "bob"), ("tacit-epsilon", "1"), ("user", "bob"))
    for method in ("Query", "Explain", "Plan", "GetFlightInfo", "GetSchema"):
        CALLS[method](channel, spoofed)
    assert {request.caller.payer.analyst for request in engine.requests} == {"ann"}
    assert {request.caller.payer.groups for request in engine.requests} == {("sales",)}


def test_only_the_tables_of_a_credential_are_there(channel: grpc.Channel, ledger: Ledger) -> None:
    both, one, none = (token_for(ledger, "ann", *names) for names in ((), ("people",), ("x",)))
    assert tables_seen(channel, both) == ["people", "ad_hoc"]
    assert tables_seen(channel, one) == ["people"]
    assert tables_seen(channel, none) == []
    stub = TacitStub(channel)
    texts = {
        refusal(
            partial(stub.GetBudget, tacit_pb2.GetBudgetRequest(table=name), metadata=bearer(one))
        )[1].replace(name, "NAME")
        for name in ("ad_hoc", "nowhere", "PEOPLE")
    }
    assert texts == {"[unknown_name] There is no table 'NAME'. Tables here: people."}
    _, told = refusal(
        lambda: stub.GetBudget(tacit_pb2.GetBudgetRequest(table="people"), metadata=bearer(none))
    )
    assert told.endswith("No table is open to this credential.")


def test_revoking_and_issuing_elsewhere_takes_effect_while_the_server_runs(
    channel: grpc.Channel, ledger: Ledger, tmp_path: Path
) -> None:
    with LedgerWatch(ledger, Readiness(()), lambda _: None):
        with open_ledger(tmp_path / "test.ledger") as elsewhere:
            grant = Grant(analyst="ann", tables=("people",))
            credential, token = issue_token(elsewhere, grant, by="a test")
            assert soon(lambda: is_let_in(channel, token))
            revoke(elsewhere, credential.id, by="a test")
        assert soon(lambda: not is_let_in(channel, token))
    assert refusal(lambda: tables_seen(channel, token)) == (UNAUTHENTICATED, REFUSED)


def is_let_in(channel: grpc.Channel, token: str) -> bool:
    try:
        tables_seen(channel, token)
    except grpc.RpcError:
        return False
    return True


def test_nobody_but_the_log_is_told_why_and_that_not_each_time(
    channel: grpc.Channel, ledger: Ledger
) -> None:
    over = Grant(analyst="ann", tables=("people",), expires="2020-01-01T00:00:00.000+00:00")
    _, token = issue_token(ledger, over, by="a test")
    with capture_logs() as lines:
        for _ in range(50):
            assert refusal(lambda: tables_seen(channel, token)) == (UNAUTHENTICATED, REFUSED)
    assert 1 <= len(lines) <= 10
    assert {line["event"] for line in lines} == {"authentication_failed"}
    assert {line["code"] for line in lines} == {"credential_expired"}
    assert token not in str(lines)


def test_anonymous_calls_are_an_analysts_where_they_are_allowed(
    engine: CannedEngine, ledger: Ledger
) -> None:
    authenticator = LedgerAuthenticator(ledger, allow_anonymous=True)
    with (
        serving(engine, authenticator=authenticator) as address,
        grpc.insecure_channel(address) as channel,
    ):
        assert tables_seen(channel, None) == ["people", "ad_hoc"]
        assert refusal(lambda: tables_seen(channel, new_token())) == (UNAUTHENTICATED, REFUSED)
        assert refusal(lambda: CALLS["SetLimit"](channel, None))[0] is DENIED
        with dbapi.connect(f"grpc://{address}", autocommit=True) as connection:
            assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    assert not engine.calls


# What one caller holds is not there for another.


def test_a_ticket_and_a_statement_are_their_makers(channel: grpc.Channel, ledger: Ledger) -> None:
    stub = FlightServiceStub(channel)
    ann, bob = (bearer(token_for(ledger, name)) for name in ("ann", "bob"))
    body = packed(sql.ActionCreatePreparedStatementRequest(query=COUNT_ALL))
    action = flight_pb2.Action(type="CreatePreparedStatement", body=body)
    (result,) = stub.DoAction(action, metadata=ann)
    prepared = sql.ActionCreatePreparedStatementResult()
    AnyMessage.FromString(result.body).Unpack(prepared)
    handle = prepared.prepared_statement_handle
    command = packed(sql.CommandPreparedStatementQuery(prepared_statement_handle=handle))
    descriptor = flight_pb2.FlightDescriptor(type=flight_pb2.FlightDescriptor.CMD, cmd=command)
    not_found = grpc.StatusCode.NOT_FOUND
    assert refusal(lambda: stub.GetFlightInfo(descriptor, metadata=bob))[0] is not_found
    close = packed(sql.ActionClosePreparedStatementRequest(prepared_statement_handle=handle))
    list(stub.DoAction(flight_pb2.Action(type="ClosePreparedStatement", body=close), metadata=bob))
    (endpoint,) = stub.GetFlightInfo(descriptor, metadata=ann).endpoint
    unknown = flight_pb2.Ticket(ticket=packed(sql.TicketStatementQuery(statement_handle=b"x" * 16)))
    told = {
        refusal(partial(stub.DoGet, ticket, metadata=bob)) for ticket in (endpoint.ticket, unknown)
    }
    assert len(told) == 1
    assert next(iter(told))[0] is not_found
    assert list(stub.DoGet(endpoint.ticket, metadata=ann))


def test_two_analysts_on_one_connection_have_settings_of_their_own(
    channel: grpc.Channel, ledger: Ledger, engine: CannedEngine
) -> None:
    stub = TacitStub(channel)
    ann, bob = (bearer(token_for(ledger, name)) for name in ("ann", "bob"))
    list(stub.Query(tacit_pb2.QueryRequest(sql="SET tacit.half_width = 50"), metadata=ann))
    for metadata in (ann, bob):
        list(stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL), metadata=metadata))
    found = {request.caller.payer.analyst: request.target.half_width for request in engine.requests}
    assert found == {"ann": 50.0, "bob": None}
