"""Sessions through real clients: ADBC, `tacit.v1`, and the actions that Flight has for them."""

import json
import math
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import grpc
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import dbapi

from planner.measuring.candidates import Strategy
from planner.workload import RequestedTarget
from proxy.identity.interceptor import IdentityInterceptor
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol.flight_pb2_grpc import FlightServiceStub, add_FlightServiceServicer_to_server
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.scheduling.slow_clients import SlowClientGuard
from proxy.wire.flight.service import FlightSqlService
from proxy.wire.sessions.sessions import SET_SCHEMA, Sessions
from tests.support.engine_fake import COUNT_ALL, COUNT_BY_SEX, CannedEngine
from tests.support.serving import EverybodyLocal, channel_to, serving
from tests.support.worlds import people_engine, random_rows

OPTION = "adbc.flight.sql.session.option.tacit."


@contextmanager
def connected(address: str, **options: str) -> Iterator[dbapi.Connection]:
    kwargs = {f"adbc.flight.sql.rpc.call_header.{name}": value for name, value in options.items()}
    with flight_sql.connect(f"grpc://{address}", db_kwargs=kwargs, autocommit=True) as connection:
        yield connection


def asked(connection: dbapi.Connection, sql: str) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


@pytest.fixture
def engine() -> CannedEngine:
    return CannedEngine()


@pytest.fixture
def address(engine: CannedEngine) -> Iterator[str]:
    with serving(engine) as served:
        yield served


def started(sessions: Sessions) -> tuple[grpc.Server, str]:
    """A Flight SQL server whose sessions the test can see."""
    door = IdentityInterceptor(EverybodyLocal(), SlowClientGuard())
    server = grpc.server(futures.ThreadPoolExecutor(2), interceptors=[door])
    add_FlightServiceServicer_to_server(FlightSqlService(CannedEngine(), sessions), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"


def options_of(stub: FlightServiceStub) -> dict[str, str]:
    (reply,) = stub.DoAction(flight_pb2.Action(type="GetSessionOptions"))
    found = flight_pb2.GetSessionOptionsResult.FromString(reply.body).session_options
    return {name: value.string_value for name, value in found.items()}


def test_a_connection_of_adbc_has_settings_of_its_own(engine: CannedEngine, address: str) -> None:
    with connected(address) as one, connected(address) as other:
        reply = asked(one, "SET tacit.half_width = 50")
        assert (reply.num_rows, reply.schema) == (0, SET_SCHEMA)
        asked(one, COUNT_ALL)
        assert engine.requests[-1].target == RequestedTarget(half_width=50.0)
        asked(other, COUNT_ALL)
        assert engine.requests[-1].target == RequestedTarget()
        assert asked(one, "SHOW tacit.half_width").to_pylist() == [{"tacit.half_width": "50"}]
        assert asked(other, "SHOW tacit.half_width").to_pylist() == [{"tacit.half_width": None}]


def test_settings_and_one_statement_are_answered_through_adbc(
    engine: CannedEngine, address: str
) -> None:
    with connected(address) as connection:
        found = asked(connection, f"SET tacit.epsilon TO 0.1; SET DateStyle = ISO; {COUNT_BY_SEX}")
        assert found.num_rows == 3
        wanted = RequestedTarget(epsilon_cap=Fraction(1, 10))
        assert (engine.requests[-1].sql, engine.requests[-1].target) == (COUNT_BY_SEX, wanted)
        asked(connection, "RESET ALL")
        asked(connection, COUNT_ALL)
        assert engine.requests[-1].target == RequestedTarget()


def test_a_prepared_statement_is_asked_with_the_settings_of_the_moment(
    engine: CannedEngine, address: str
) -> None:
    with connected(address) as connection, connection.cursor() as prepared:
        prepared.adbc_prepare(COUNT_ALL)
        asked(connection, "SET tacit.half_width = 5")
        prepared.execute(COUNT_ALL)
        assert engine.requests[-1].target == RequestedTarget(half_width=5.0)
        asked(connection, "SET tacit.half_width = 6")
        prepared.execute(COUNT_ALL)
        assert engine.requests[-1].target == RequestedTarget(half_width=6.0)


def test_what_clients_send_around_statements_is_accepted_through_both_protocols(
    engine: CannedEngine, address: str
) -> None:
    with connected(address) as connection:
        asked(connection, "SET tacit.half_width = 5")
        for sql in ("BEGIN", "START TRANSACTION READ ONLY", "COMMIT", "ROLLBACK"):
            reply = asked(connection, sql)
            assert (reply.num_rows, reply.schema) == (0, SET_SCHEMA)
        asked(connection, f"BEGIN; {COUNT_ALL}")
        assert engine.requests[-1].sql == COUNT_ALL
        assert engine.requests[-1].target == RequestedTarget(half_width=5.0)
        asked(connection, "DISCARD ALL")
        asked(connection, COUNT_ALL)
        assert engine.requests[-1].target == RequestedTarget()
    with grpc.insecure_channel(address) as channel:
        replies = list(TacitStub(channel).Query(tacit_pb2.QueryRequest(sql="BEGIN")))
    assert pa.ipc.open_stream(b"".join(one.ipc for one in replies)).read_all().num_rows == 0
    assert len(engine.requests) == 4  # two answers, each asked for its columns before


def test_preparing_a_setting_sets_nothing(engine: CannedEngine, address: str) -> None:
    with connected(address) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_prepare("SET tacit.half_width = 5")
        asked(connection, COUNT_ALL)
        assert engine.requests[-1].target == RequestedTarget()


def test_headers_of_adbc_go_before_what_is_set(engine: CannedEngine, address: str) -> None:
    headers = {"tacit-half-width": "7", "tacit-confidence": "0.8"}
    with connected(address, **headers) as connection:
        asked(connection, "SET tacit.half_width = 50; SET tacit.epsilon = 1")
        asked(connection, COUNT_ALL)
    assert engine.requests[-1].target == RequestedTarget(
        half_width=7.0, confidence=0.8, epsilon_cap=Fraction(1)
    )


def test_a_malformed_header_of_adbc_is_refused_before_anything_is_asked(
    engine: CannedEngine, address: str
) -> None:
    with (
        connected(address, **{"tacit-epsilon": "little"}) as connection,
        pytest.raises(dbapi.Error, match=r"\[invalid_target\] The header tacit-epsilon"),
    ):
        asked(connection, COUNT_ALL)
    assert not engine.requests


def test_tacit_v1_has_sessions_too_and_its_messages_go_first(engine: CannedEngine) -> None:
    with channel_to(engine) as channel:
        stub = TacitStub(channel)
        (empty,) = stub.Query(tacit_pb2.QueryRequest(sql="SET tacit.half_width = 50"))
        assert pa.ipc.open_stream(empty.ipc).read_all().num_rows == 0
        list(stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL)))
        assert engine.requests[-1].target == RequestedTarget(half_width=50.0)
        named = tacit_pb2.Target(half_width=9.0)
        list(
            stub.Query(
                tacit_pb2.QueryRequest(sql=COUNT_ALL, target=named),
                metadata=(("tacit-half-width", "8"), ("tacit-confidence", "0.5")),
            )
        )
        assert engine.requests[-1].target == RequestedTarget(half_width=9.0, confidence=0.5)


def test_explaining_keeps_no_setting_and_a_setting_alone_cannot_be_explained(
    engine: CannedEngine,
) -> None:
    with channel_to(engine) as channel:
        stub = TacitStub(channel)
        stub.Explain(tacit_pb2.ExplainRequest(sql=f"SET tacit.half_width = 5; {COUNT_ALL}"))
        assert engine.requests[-1].target == RequestedTarget(half_width=5.0)
        stub.Plan(tacit_pb2.PlanRequest(sql=COUNT_ALL))
        assert engine.requests[-1].target == RequestedTarget()
        with pytest.raises(grpc.RpcError) as caught:
            stub.Explain(tacit_pb2.ExplainRequest(sql="SET tacit.half_width = 5"))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "nothing to plan" in (caught.value.details() or "")


def test_the_documented_name_of_a_header_is_the_one_adbc_takes() -> None:
    prefix = DatabaseOptions.RPC_CALL_HEADER_PREFIX.value
    assert f"{prefix}tacit-half-width" == "adbc.flight.sql.rpc.call_header.tacit-half-width"


def test_session_options_of_adbc_are_the_same_settings(engine: CannedEngine, address: str) -> None:
    with connected(address) as connection:
        driver = connection.adbc_connection
        driver.set_options(**{f"{OPTION}half_width": "50"})
        asked(connection, "SET tacit.epsilon = 0.1")
        asked(connection, COUNT_ALL)
        expected = RequestedTarget(half_width=50.0, epsilon_cap=Fraction(1, 10))
        assert engine.requests[-1].target == expected
        assert driver.get_option(f"{OPTION}epsilon") == "0.1"
        assert json.loads(driver.get_option("adbc.flight.sql.session.options")) == {
            "tacit.half_width": "50",
            "tacit.epsilon": "0.1",
        }
        for name, value in (("halfwidth", "50"), ("half_width", "wide"), ("confidence", "2")):
            with pytest.raises(dbapi.Error, match=f"tacit.{name}"):
                driver.set_options(**{OPTION + name: value})
        asked(connection, COUNT_ALL)
        assert engine.requests[-1].target == expected


def test_closing_a_connection_of_adbc_ends_its_session() -> None:
    sessions = Sessions()
    server, address = started(sessions)
    try:
        with connected(address) as connection:
            asked(connection, "SET tacit.half_width = 50")
            assert len(sessions) == 1
        assert len(sessions) == 0
    finally:
        server.stop(None).wait()


def test_options_may_be_numbers_and_each_stands_for_itself(engine: CannedEngine) -> None:
    request = flight_pb2.SetSessionOptionsRequest()
    options = request.session_options
    options["tacit.half_width"].int64_value = 50
    options["tacit.epsilon"].double_value = 0.1
    options["tacit.confidence"].bool_value = True
    options["search_path"].string_value = "public"
    options["catalog"].string_value = "tacit"
    with channel_to(engine) as channel:
        stub = FlightServiceStub(channel)
        action = flight_pb2.Action(type="SetSessionOptions", body=request.SerializeToString())
        (reply,) = stub.DoAction(action)
        errors = flight_pb2.SetSessionOptionsResult.FromString(reply.body).errors
        assert {name: error.value for name, error in errors.items()} == {
            "tacit.confidence": flight_pb2.SetSessionOptionsResult.INVALID_VALUE,
            "catalog": flight_pb2.SetSessionOptionsResult.INVALID_NAME,
        }
        assert options_of(stub) == {"tacit.half_width": "50", "tacit.epsilon": "0.1"}
        for name in list(options):
            del options[name]
        options["tacit.half_width"].ClearField("string_value")  # an option without a value
        unset = flight_pb2.Action(type="SetSessionOptions", body=request.SerializeToString())
        assert [reply.body for reply in stub.DoAction(unset)] == [b""]
        assert options_of(stub) == {"tacit.epsilon": "0.1"}
        (reply,) = stub.DoAction(flight_pb2.Action(type="CloseSession"))
        closed = flight_pb2.CloseSessionResult.FromString(reply.body)
        assert closed.status == flight_pb2.CloseSessionResult.CLOSED
        assert options_of(stub) == {}
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.DoAction(flight_pb2.Action(type="SetSessionOptions", body=b"\xff")))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_the_documented_way_to_connect_works(engine: CannedEngine, address: str) -> None:
    with flight_sql.connect(
        f"grpc://{address}",
        db_kwargs={"adbc.flight.sql.rpc.call_header.tacit-half-width": "50"},
        conn_kwargs={"adbc.flight.sql.session.option.tacit.epsilon": "0.1"},
        autocommit=True,
    ) as connection:
        asked(connection, COUNT_ALL)
    expected = RequestedTarget(half_width=50.0, epsilon_cap=Fraction(1, 10))
    assert engine.requests[-1].target == expected


def test_the_statement_goes_before_the_header_and_that_before_the_session(tmp_path: Path) -> None:
    """A whole engine: what an answer costs is ln(1 / (1 - confidence)) / half_width."""
    headers = {"tacit-half-width": "30"}
    asking = "SELECT {} COUNT(*) AS n, DP_COST(n) AS cost FROM people WHERE city = '{}'"
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 25)"
    with (
        people_engine(tmp_path, random_rows(500), strategy=Strategy.QUERY) as engine,
        serving(engine) as address,
    ):
        with connected(address) as connection:
            asked(connection, "SET tacit.half_width = 40")
            costs = [asked(connection, asking.format("", "Oslo"))["cost"][0].as_py()]
        with connected(address, **headers) as connection:
            asked(connection, "SET tacit.half_width = 40")
            for wish, city in (("", "Rome"), (options, "Paris")):
                # Nobody is in two cities: only what goes beyond the dearest so far is paid.
                found = asked(connection, asking.format(wish, city))
                costs.append(costs[-1] + found["cost"][0].as_py())
    assert costs == pytest.approx([math.log(20) / width for width in (40, 30, 25)], rel=1e-3)


def test_a_cap_of_nothing_asks_for_what_is_free(tmp_path: Path) -> None:
    count = "SELECT COUNT(*) AS n FROM people"
    with (
        people_engine(tmp_path, random_rows(500)) as engine,
        serving(engine) as address,
        connected(address) as connection,
    ):
        with pytest.raises(dbapi.Error, match="cost_above_cap"):
            asked(connection, f"SET tacit.epsilon = 0; {count}")
        first = asked(connection, f"RESET tacit.epsilon; {count}")
        assert asked(connection, f"SET tacit.epsilon = 0; {count}").equals(first)
