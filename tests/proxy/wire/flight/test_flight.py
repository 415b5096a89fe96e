"""Flight SQL through its own stub and through pyarrow's client: who is charged, and for what."""

import json
from collections.abc import Callable, Iterable, Iterator

import grpc
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import flight

from proxy.protocol import flight_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.wire.flight.catalog import TYPE_NAME_KEY
from proxy.wire.flight.service import N_RELEASES_MAX
from tests.support.engine_fake import ANSWERS, COUNT_ALL, COUNT_BY_SEX, EXPLAIN_ALL, CannedEngine
from tests.support.serving import channel_to, serving

REFUSED_COMMANDS = [
    "CommandStatementUpdate",
    "CommandStatementSubstraitPlan",
    "ActionBeginTransactionRequest",
]


VIEWS = ["budgets", "collections", "domains", "history", "losses", "streams"]


def packed(message: Message) -> bytes:
    envelope = AnyMessage()
    envelope.Pack(message)
    return envelope.SerializeToString()


def descriptor(command: bytes) -> flight_pb2.FlightDescriptor:
    return flight_pb2.FlightDescriptor(type=flight_pb2.FlightDescriptor.CMD, cmd=command)


def query(text: str) -> bytes:
    return packed(sql.CommandStatementQuery(query=text))


@pytest.fixture
def engine() -> CannedEngine:
    return CannedEngine()


@pytest.fixture
def stub(engine: CannedEngine) -> Iterator[FlightServiceStub]:
    with channel_to(engine) as channel:
        yield FlightServiceStub(channel)


def prepare(stub: FlightServiceStub, text: str) -> sql.ActionCreatePreparedStatementResult:
    body = packed(sql.ActionCreatePreparedStatementRequest(query=text))
    (result,) = stub.DoAction(flight_pb2.Action(type="CreatePreparedStatement", body=body))
    prepared = sql.ActionCreatePreparedStatementResult()
    assert AnyMessage.FromString(result.body).Unpack(prepared)
    return prepared


def fetch(stub: FlightServiceStub, ticket: bytes) -> list[bytes]:
    messages = stub.DoGet(flight_pb2.Ticket(ticket=ticket))
    return [message.SerializeToString() for message in messages]


def metadata(stub: FlightServiceStub, engine: CannedEngine, command: Message) -> pa.Table:
    """A metadata command's rows, by the three calls that must agree on their schema."""
    info = stub.GetFlightInfo(descriptor(packed(command)))
    promised = stub.GetSchema(descriptor(packed(command))).schema
    assert info.schema == promised
    with serving(engine) as address, flight.connect(f"grpc://{address}") as client:
        table = client.do_get(flight.Ticket(info.endpoint[0].ticket.ticket)).read_all()
    assert table.schema.equals(pa.ipc.read_schema(pa.py_buffer(promised)), check_metadata=True)
    table.validate(full=True)
    for field in table.schema:
        assert field.nullable or table[field.name].null_count == 0
    return table


def refusal_of(call: Callable[[], Iterable[object]]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        list(call())
    return caught.value.code(), caught.value.details() or ""


def test_preparing_is_free_asking_charges_once_and_fetching_never(
    stub: FlightServiceStub, engine: CannedEngine
) -> None:
    prepared = prepare(stub, COUNT_ALL)
    command = packed(
        sql.CommandPreparedStatementQuery(
            prepared_statement_handle=prepared.prepared_statement_handle
        )
    )
    stub.GetSchema(descriptor(command))
    assert engine.calls == {"result_schema": 2}
    info = stub.GetFlightInfo(descriptor(command))
    assert engine.calls["answer"] == 1
    ticket = info.endpoint[0].ticket.ticket
    assert fetch(stub, ticket) == fetch(stub, ticket) == fetch(stub, ticket)
    assert engine.calls == {"result_schema": 2, "answer": 1}


def test_a_prepared_statement_promises_the_columns_that_come(stub: FlightServiceStub) -> None:
    prepared = prepare(stub, COUNT_BY_SEX)
    promised = pa.ipc.read_schema(pa.py_buffer(prepared.dataset_schema))
    assert promised.equals(ANSWERS[COUNT_BY_SEX].schema)
    assert len(pa.ipc.read_schema(pa.py_buffer(prepared.parameter_schema))) == 0
    assert prepared.HasField("is_update")
    assert not prepared.is_update


def test_what_was_spent_and_what_is_left_rides_in_the_flight_info(stub: FlightServiceStub) -> None:
    first = json.loads(stub.GetFlightInfo(descriptor(query(COUNT_ALL))).app_metadata)
    again = json.loads(stub.GetFlightInfo(descriptor(query(COUNT_ALL))).app_metadata)
    assert first == {"table": "people", "epsilon_spent": 0.25, "epsilon_left": 9.75}
    assert again == {"table": "people", "epsilon_spent": 0.0, "epsilon_left": 9.75}
    assert stub.GetFlightInfo(descriptor(query(EXPLAIN_ALL))).app_metadata == b""


def test_pyarrow_reads_one_ticket_twice_and_gets_the_same_release(engine: CannedEngine) -> None:
    with serving(engine) as address, flight.connect(f"grpc://{address}") as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(query(COUNT_BY_SEX)))
        (endpoint,) = info.endpoints
        first, second = (client.do_get(endpoint.ticket).read_all() for _ in range(2))
    assert first.equals(second, check_metadata=True)
    assert first.to_pylist() == ANSWERS[COUNT_BY_SEX].to_pylist()
    assert info.total_records == 3
    assert json.loads(first.schema.metadata[b"tacit.receipt"]) == {"epsilon_spent": 0.25}
    assert engine.calls == {"answer": 1}


def test_pyarrow_lists_what_there_is_to_do(engine: CannedEngine) -> None:
    with serving(engine) as address, flight.connect(f"grpc://{address}") as client:
        assert [action.type for action in client.list_actions()] == [
            "CreatePreparedStatement",
            "ClosePreparedStatement",
            "SetSessionOptions",
            "GetSessionOptions",
            "CloseSession",
        ]
        assert list(client.list_flights()) == []


def test_a_ticket_is_forgotten_when_too_many_were_issued(
    stub: FlightServiceStub, engine: CannedEngine
) -> None:
    oldest = stub.GetFlightInfo(descriptor(query(COUNT_ALL))).endpoint[0].ticket.ticket
    for _ in range(N_RELEASES_MAX):
        stub.GetFlightInfo(descriptor(query(COUNT_ALL)))
    code, details = refusal_of(lambda: stub.DoGet(flight_pb2.Ticket(ticket=oldest)))
    assert code is grpc.StatusCode.NOT_FOUND
    assert details.startswith("[unknown_ticket]")
    assert "free" in details
    assert engine.spent == 0.25


def test_a_closed_statement_is_gone_and_closing_again_is_harmless(stub: FlightServiceStub) -> None:
    handle = prepare(stub, COUNT_ALL).prepared_statement_handle
    body = packed(sql.ActionClosePreparedStatementRequest(prepared_statement_handle=handle))
    for _ in range(2):
        assert not list(stub.DoAction(flight_pb2.Action(type="ClosePreparedStatement", body=body)))
    command = packed(sql.CommandPreparedStatementQuery(prepared_statement_handle=handle))
    code, details = refusal_of(lambda: [stub.GetFlightInfo(descriptor(command))])
    assert code is grpc.StatusCode.NOT_FOUND
    assert "Prepare it again: that is free." in details


@pytest.mark.parametrize("name", REFUSED_COMMANDS)
def test_commands_that_change_things_are_not_offered(
    stub: FlightServiceStub, engine: CannedEngine, name: str
) -> None:
    command = AnyMessage(
        type_url=f"type.googleapis.com/arrow.flight.protocol.sql.{name}"
    ).SerializeToString()
    upload = flight_pb2.FlightData(flight_descriptor=descriptor(command))
    for call in (
        lambda: [stub.GetFlightInfo(descriptor(command))],
        lambda: [stub.GetSchema(descriptor(command))],
        lambda: stub.DoGet(flight_pb2.Ticket(ticket=command)),
        lambda: stub.DoPut(iter([upload])),
    ):
        code, details = refusal_of(call)
        assert code is grpc.StatusCode.UNIMPLEMENTED
        assert details.endswith(f"it does not offer '{name}'.")
    assert not engine.calls


def test_transactions_exchanges_and_other_actions_are_not_offered(stub: FlightServiceStub) -> None:
    in_transaction = sql.CommandStatementQuery(query=COUNT_ALL, transaction_id=b"t")
    begin = flight_pb2.Action(type="BeginTransaction")
    for call in (
        lambda: [stub.GetFlightInfo(descriptor(packed(in_transaction)))],
        lambda: stub.DoAction(begin),
        lambda: stub.DoExchange(iter([flight_pb2.FlightData()])),
    ):
        code, details = refusal_of(call)
        assert code is grpc.StatusCode.UNIMPLEMENTED
        assert "only answers SELECT" in details


def test_values_for_a_statement_that_is_not_held_are_refused(stub: FlightServiceStub) -> None:
    bind = packed(sql.CommandPreparedStatementQuery(prepared_statement_handle=b"any"))
    upload = flight_pb2.FlightData(flight_descriptor=descriptor(bind))
    code, details = refusal_of(lambda: stub.DoPut(iter([upload])))
    assert code is grpc.StatusCode.NOT_FOUND
    assert details.endswith("Prepare it again: that is free.")


def test_a_statement_is_no_ticket_so_fetching_cannot_charge(
    stub: FlightServiceStub, engine: CannedEngine
) -> None:
    code, details = refusal_of(lambda: stub.DoGet(flight_pb2.Ticket(ticket=query(COUNT_ALL))))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "GetFlightInfo" in details
    assert not engine.calls


@pytest.mark.parametrize(
    "body",
    [packed(sql.ActionClosePreparedStatementRequest()), query(COUNT_ALL), b"\xff", b""],
    ids=["close", "query", "noise", "empty"],
)
def test_an_action_with_the_body_of_another_is_refused(
    stub: FlightServiceStub, body: bytes
) -> None:
    action = flight_pb2.Action(type="CreatePreparedStatement", body=body)
    code, _ = refusal_of(lambda: stub.DoAction(action))
    assert code is grpc.StatusCode.INVALID_ARGUMENT


def test_an_upload_of_nothing_is_refused(stub: FlightServiceStub) -> None:
    code, _ = refusal_of(lambda: stub.DoPut(iter([])))
    assert code is grpc.StatusCode.INVALID_ARGUMENT


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(command=st.binary(max_size=80))
def test_any_bytes_at_all_are_refused_in_good_order(
    stub: FlightServiceStub, command: bytes
) -> None:
    for call in (
        lambda: [stub.GetFlightInfo(descriptor(command))],
        lambda: stub.DoGet(flight_pb2.Ticket(ticket=command)),
        lambda: stub.DoAction(flight_pb2.Action(type="CreatePreparedStatement", body=command)),
    ):
        code, _ = refusal_of(call)
        assert code in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED}


def test_the_catalog_is_one_catalog_with_tables_and_views(
    stub: FlightServiceStub, engine: CannedEngine
) -> None:
    catalogs = metadata(stub, engine, sql.CommandGetCatalogs())
    assert catalogs.to_pylist() == [{"catalog_name": "tacit"}]
    types = metadata(stub, engine, sql.CommandGetTableTypes())
    assert types.to_pylist() == [{"table_type": "TABLE"}, {"table_type": "VIEW"}]
    public = [{"catalog_name": "tacit", "db_schema_name": "public"}]
    everything = [{"catalog_name": "tacit", "db_schema_name": "data_privacy"}, *public]
    for command, expected in (
        (sql.CommandGetDbSchemas(), everything),
        (sql.CommandGetDbSchemas(catalog="tacit", db_schema_filter_pattern="pub%"), public),
        (sql.CommandGetDbSchemas(catalog=""), []),
        (sql.CommandGetDbSchemas(db_schema_filter_pattern=""), []),
    ):
        assert metadata(stub, engine, command).to_pylist() == expected


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, [*VIEWS, "ad_hoc", "people"]),
        ({"db_schema_filter_pattern": "data_privacy"}, VIEWS),
        ({"table_name_filter_pattern": "p%"}, ["people"]),
        ({"table_name_filter_pattern": "ad\\_hoc"}, ["ad_hoc"]),
        ({"table_name_filter_pattern": "_______"}, ["budgets", "domains", "history", "streams"]),
        ({"table_name_filter_pattern": ""}, []),
        ({"db_schema_filter_pattern": "private"}, []),
        ({"catalog": "other"}, []),
        ({"table_types": ["VIEW"]}, VIEWS),
        ({"table_types": ["TABLE"]}, ["ad_hoc", "people"]),
        ({"table_types": ["VIEW", "TABLE"]}, [*VIEWS, "ad_hoc", "people"]),
    ],
    ids=str,
)
def test_tables_are_filtered_as_asked(
    stub: FlightServiceStub,
    engine: CannedEngine,
    filters: dict[str, str],
    expected: list[str],
) -> None:
    command = sql.CommandGetTables(**filters)  # type: ignore[arg-type] # one field or another
    found = metadata(stub, engine, command)
    assert found["table_name"].to_pylist() == expected
    assert "table_schema" not in found.column_names


def test_a_table_shows_its_public_columns_with_their_sql_types(
    stub: FlightServiceStub, engine: CannedEngine
) -> None:
    command = sql.CommandGetTables(table_name_filter_pattern="people", include_schema=True)
    (row,) = metadata(stub, engine, command).to_pylist()
    shown = pa.ipc.read_schema(pa.py_buffer(row["table_schema"]))
    assert [(f.name, f.type, f.nullable, f.metadata[TYPE_NAME_KEY.encode()]) for f in shown] == [
        ("sex", pa.string(), True, b"VARCHAR"),
        ("age", pa.int64(), False, b"BIGINT"),
        ("hours", pa.float64(), False, b"DOUBLE"),
        ("married", pa.bool_(), False, b"BOOLEAN"),
        ("joined", pa.date32(), False, b"DATE"),
    ]


@pytest.mark.parametrize(
    "command",
    [
        sql.CommandGetPrimaryKeys(table="people"),
        sql.CommandGetExportedKeys(table="people"),
        sql.CommandGetImportedKeys(table="people"),
        sql.CommandGetCrossReference(pk_table="people", fk_table="ad_hoc"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_private_table_has_no_keys(
    stub: FlightServiceStub, engine: CannedEngine, command: Message
) -> None:
    assert metadata(stub, engine, command).num_rows == 0


def test_sql_types_are_listed_by_their_odbc_codes(
    stub: FlightServiceStub, engine: CannedEngine
) -> None:
    listed = metadata(stub, engine, sql.CommandGetXdbcTypeInfo())
    assert dict(zip(*(listed[c].to_pylist() for c in ("type_name", "data_type")), strict=True)) == {
        "BOOLEAN": -7,
        "BIGINT": -5,
        "DOUBLE": 8,
        "VARCHAR": 12,
        "DATE": 91,
        "TIMESTAMP": 93,
    }
    one = metadata(stub, engine, sql.CommandGetXdbcTypeInfo(data_type=91))
    assert one["type_name"].to_pylist() == ["DATE"]


def test_the_server_says_what_it_is(stub: FlightServiceStub, engine: CannedEngine) -> None:
    info = metadata(stub, engine, sql.CommandGetSqlInfo())
    facts = dict(zip(info["info_name"].to_pylist(), info["value"].to_pylist(), strict=True))
    assert (facts[0], facts[3], facts[4], facts[5], facts[8]) == ("Tacit", True, True, False, 0)
    some = metadata(stub, engine, sql.CommandGetSqlInfo(info=[3, 0, 9_999]))
    assert some["info_name"].to_pylist() == [0, 3]


def test_browsing_the_catalog_never_asks_for_an_answer(
    stub: FlightServiceStub, engine: CannedEngine
) -> None:
    for command in (sql.CommandGetTables(include_schema=True), sql.CommandGetSqlInfo()):
        metadata(stub, engine, command)
    assert not engine.calls
