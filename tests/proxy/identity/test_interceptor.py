"""Calls of a real server: who is let in, to which method, and what those who are not are told."""

import base64
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import adbc_driver_manager
import grpc
import pytest
from adbc_driver_flightsql import dbapi
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from pyarrow import flight
from structlog.testing import capture_logs

from accountant.ledger.credentials import Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.open_ledger import open_ledger
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.issuing import Grant, issue_token, revoke
from proxy.identity.roles import MAY_CALL, OPEN_SERVICES
from proxy.identity.tokens import new_token
from proxy.monitoring.health import LedgerWatch, Readiness
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.engine_fake import ANSWERS, COUNT_ALL, COUNT_BY_SEX, CannedEngine
from tests.support.identities import (
    REFUSED,
    bearer,
    credentials,
    refusal,
    soon,
    tables_seen,
    token_for,
)
from tests.support.serving import serving

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED
AUTHORIZATION = "adbc.flight.sql.authorization_header"
Metadata = tuple[tuple[str, str], ...] | None


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with credentials(tmp_path) as opened:
        yield opened


@pytest.fixture
def engine() -> CannedEngine:
    return CannedEngine()


@pytest.fixture
def address(engine: CannedEngine, ledger: Ledger) -> Iterator[str]:
    with serving(engine, authenticator=LedgerAuthenticator(ledger)) as served:
        yield served


@pytest.fixture
def channel(address: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(address) as opened:
        yield opened


def packed(message: Message) -> bytes:
    envelope = AnyMessage()
    envelope.Pack(message)
    return envelope.SerializeToString()


def described(text: str) -> flight_pb2.FlightDescriptor:
    command = packed(sql.CommandStatementQuery(query=text))
    return flight_pb2.FlightDescriptor(type=flight_pb2.FlightDescriptor.CMD, cmd=command)


# Each method of both services, called in earnest.
CALLS: dict[str, Callable[[grpc.Channel, Metadata], object]] = {
    "Query": lambda channel, metadata: list(
        TacitStub(channel).Query(tacit_pb2.QueryRequest(sql=COUNT_ALL), metadata=metadata)
    ),
    "Explain": lambda channel, metadata: TacitStub(channel).Explain(
        tacit_pb2.ExplainRequest(sql=COUNT_ALL), metadata=metadata
    ),
    "Plan": lambda channel, metadata: TacitStub(channel).Plan(
        tacit_pb2.PlanRequest(sql=COUNT_ALL), metadata=metadata
    ),
    "TestIndependence": lambda channel, metadata: TacitStub(channel).TestIndependence(
        tacit_pb2.TestIndependenceRequest(table="people", x="sex", y="married"), metadata=metadata
    ),
    "Marginals": lambda channel, metadata: list(
        TacitStub(channel).Marginals(tacit_pb2.MarginalsRequest(), metadata=metadata)
    ),
    "BestReport": lambda channel, metadata: TacitStub(channel).BestReport(
        tacit_pb2.BestReportRequest(sql=COUNT_ALL), metadata=metadata
    ),
    "ListTables": lambda channel, metadata: TacitStub(channel).ListTables(
        tacit_pb2.ListTablesRequest(), metadata=metadata
    ),
    "GetBudget": lambda channel, metadata: TacitStub(channel).GetBudget(
        tacit_pb2.GetBudgetRequest(), metadata=metadata
    ),
    "SetLimit": lambda channel, metadata: TacitStub(channel).SetLimit(
        tacit_pb2.SetLimitRequest(), metadata=metadata
    ),
    "ListLimits": lambda channel, metadata: TacitStub(channel).ListLimits(
        tacit_pb2.ListLimitsRequest(), metadata=metadata
    ),
    "AuditReport": lambda channel, metadata: list(
        TacitStub(channel).AuditReport(tacit_pb2.AuditReportRequest(), metadata=metadata)
    ),
    "CreateSynthetic": lambda channel, metadata: list(
        TacitStub(channel).CreateSynthetic(tacit_pb2.CreateSyntheticRequest(), metadata=metadata)
    ),
    "PreviewSynthetic": lambda channel, metadata: TacitStub(channel).PreviewSynthetic(
        tacit_pb2.CreateSyntheticRequest(), metadata=metadata
    ),
    "ListSynthetic": lambda channel, metadata: TacitStub(channel).ListSynthetic(
        tacit_pb2.ListSyntheticRequest(), metadata=metadata
    ),
    "ReadSynthetic": lambda channel, metadata: list(
        TacitStub(channel).ReadSynthetic(tacit_pb2.ReadSyntheticRequest(), metadata=metadata)
    ),
    "ReportSynthetic": lambda channel, metadata: list(
        TacitStub(channel).ReportSynthetic(tacit_pb2.ReportSyntheticRequest(), metadata=metadata)
    ),
    "ResampleSynthetic": lambda channel, metadata: TacitStub(channel).ResampleSynthetic(
        tacit_pb2.ResampleSyntheticRequest(), metadata=metadata
    ),
    "DropSynthetic": lambda channel, metadata: TacitStub(channel).DropSynthetic(
        tacit_pb2.DropSyntheticRequest(), metadata=metadata
    ),
    "SyntheticLaw": lambda channel, metadata: list(
        TacitStub(channel).SyntheticLaw(tacit_pb2.SyntheticLawRequest(), metadata=metadata)
    ),
    "Handshake": lambda channel, metadata: list(
        FlightServiceStub(channel).Handshake(
            iter([flight_pb2.HandshakeRequest()]), metadata=metadata
        )
    ),
    "ListFlights": lambda channel, metadata: list(
        FlightServiceStub(channel).ListFlights(flight_pb2.Criteria(), metadata=metadata)
    ),
    "GetFlightInfo": lambda channel, metadata: FlightServiceStub(channel).GetFlightInfo(
        described(COUNT_ALL), metadata=metadata
    ),
    "GetSchema": lambda channel, metadata: FlightServiceStub(channel).GetSchema(
        described(COUNT_ALL), metadata=metadata
    ),
    "DoGet": lambda channel, metadata: list(
        FlightServiceStub(channel).DoGet(
            flight_pb2.Ticket(ticket=packed(sql.CommandGetTables())), metadata=metadata
        )
    ),
    "DoPut": lambda channel, metadata: list(
        FlightServiceStub(channel).DoPut(iter([flight_pb2.FlightData()]), metadata=metadata)
    ),
    "DoExchange": lambda channel, metadata: list(
        FlightServiceStub(channel).DoExchange(iter([flight_pb2.FlightData()]), metadata=metadata)
    ),
    "DoAction": lambda channel, metadata: list(
        FlightServiceStub(channel).DoAction(
            flight_pb2.Action(type="GetSessionOptions"), metadata=metadata
        )
    ),
    "ListActions": lambda channel, metadata: list(
        FlightServiceStub(channel).ListActions(flight_pb2.Empty(), metadata=metadata)
    ),
}
MAY: dict[Role, set[str]] = {
    Role.AUDITOR: {
        "ListTables",
        "ListSynthetic",
        "GetBudget",
        "ListLimits",
        "AuditReport",
        "Handshake",
    },
    Role.ANALYST: CALLS.keys() - {"SetLimit", "ListLimits", "AuditReport"},
    Role.OWNER: set(CALLS),
}


def test_the_calls_above_are_all_there_are() -> None:
    services = (
        tacit_pb2.DESCRIPTOR.services_by_name["Tacit"],
        flight_pb2.DESCRIPTOR.services_by_name["FlightService"],
    )
    methods = {f"/{one.full_name}/{method.name}" for one in services for method in one.methods}
    assert MAY_CALL.keys() == methods
    assert CALLS.keys() == {method.rpartition("/")[2] for method in methods}
    assert not any(method.startswith(OPEN_SERVICES) for method in methods)


@pytest.mark.parametrize("method", CALLS)
def test_a_call_without_a_credential_is_refused_before_it_is_read(
    channel: grpc.Channel, engine: CannedEngine, method: str
) -> None:
    strangers: tuple[Metadata, ...] = (
        None,
        bearer(new_token()),
        (("authorization", "Bearer x"),),
    )
    told = {refusal(partial(CALLS[method], channel, metadata)) for metadata in strangers}
    assert told == {(UNAUTHENTICATED, REFUSED)}
    assert not engine.calls


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("method", CALLS)
def test_a_role_is_what_it_may_call(
    channel: grpc.Channel, ledger: Ledger, engine: CannedEngine, method: str, role: Role
) -> None:
    metadata = bearer(token_for(ledger, role=role))
    try:
        CALLS[method](channel, metadata)
        code = grpc.StatusCode.OK
    except grpc.RpcError as error:
        code = error.code()
    assert (code is not DENIED) == (method in MAY[role])
    assert code is not UNAUTHENTICATED
    if method not in MAY[role]:
        told = (
            f"[not_allowed] The role {role} may not call {method}. "
            "Ask the server's owner for a credential with another role."
        )
        assert refusal(lambda: CALLS[method](channel, metadata)) == (DENIED, told)
        assert not engine.calls


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
            assert connection.adbc_get_table_types() == ["TABLE"]
    assert not engine.calls


# Clients as they are.


def connected(address: str, **options: str) -> Any:
    return dbapi.connect(f"grpc://{address}", db_kwargs=options, autocommit=True)


def asked(connection: Any, text: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetch_arrow_table().to_pylist()


def test_adbc_comes_in_with_a_token(address: str, ledger: Ledger) -> None:
    token = token_for(ledger, "ann", "people")
    with connected(address, **{AUTHORIZATION: f"Bearer {token}"}) as connection:
        assert asked(connection, COUNT_BY_SEX) == ANSWERS[COUNT_BY_SEX].to_pylist()
        (catalog,) = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        (schema,) = catalog["catalog_db_schemas"]
        assert [table["table_name"] for table in schema["db_schema_tables"]] == ["people"]


def test_adbc_comes_in_with_a_name_and_the_token_as_password(
    address: str, ledger: Ledger, engine: CannedEngine
) -> None:
    token = token_for(ledger, "Ännchen")
    with connected(address, username="Ännchen", password=token) as connection:
        assert asked(connection, COUNT_BY_SEX) == ANSWERS[COUNT_BY_SEX].to_pylist()
    assert {request.caller.payer.analyst for request in engine.requests} == {"Ännchen"}


@pytest.mark.parametrize("name", ["bob", "", "Ann"])
def test_another_name_does_not_go_with_it(address: str, ledger: Ledger, name: str) -> None:
    token = token_for(ledger, "ann")
    with (
        pytest.raises(adbc_driver_manager.Error, match=r"(?i)unauth|no credential"),
        connected(address, username=name, password=token) as connection,
    ):
        asked(connection, COUNT_ALL)


def test_adbc_without_a_token_is_told_what_to_send(address: str) -> None:
    with (
        pytest.raises(adbc_driver_manager.Error, match="Bearer TOKEN"),
        connected(address) as connection,
    ):
        asked(connection, COUNT_ALL)


def test_pyarrow_is_handed_its_token(address: str, ledger: Ledger) -> None:
    token = token_for(ledger, "ann")
    with flight.connect(f"grpc://{address}") as client:
        header = client.authenticate_basic_token("ann", token)
        assert header == (b"authorization", f"Bearer {token}".encode())
        options = flight.FlightCallOptions(headers=[header])
        assert list(client.list_flights(options=options)) == []
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.authenticate_basic_token("bob", token)


def test_a_name_and_password_are_for_the_handshake_alone(
    channel: grpc.Channel, ledger: Ledger
) -> None:
    token = token_for(ledger, "ann")
    header = "Basic " + base64.b64encode(f"ann:{token}".encode()).decode()
    CALLS["Handshake"](channel, (("authorization", header),))
    for method in CALLS.keys() - {"Handshake"}:
        told = refusal(partial(CALLS[method], channel, (("authorization", header),)))
        assert told == (UNAUTHENTICATED, REFUSED)


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
