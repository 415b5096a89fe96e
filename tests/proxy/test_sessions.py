"""Settings: SET, RESET and SHOW, headers, and which of several wishes counts."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import grpc
import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_manager import dbapi
from hypothesis import example, given
from hypothesis import strategies as st

from accountant.limits import Payer
from cube.refusals import InvalidSql, InvalidTarget, Refused, TooLarge, UnknownName, UnsupportedSql
from planner.strategy import Strategy
from planner.workload import RequestedTarget
from proxy.answers import LOCAL, Caller
from proxy.flight_sql import FlightSqlService
from proxy.identity.calls import note_caller
from proxy.identity.door import Door
from proxy.patience import Patience
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol.flight_pb2_grpc import (
    FlightServiceStub,
    add_FlightServiceServicer_to_server,
)
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.session_statements import (
    IGNORED,
    N_SETTINGS_MAX,
    SETTING_NAMES,
    Ignored,
    ResetAll,
    Set,
    Show,
    split_settings,
)
from proxy.sessions import (
    HEADERS,
    IDLE_SECONDS_MAX,
    N_SESSIONS_MAX,
    SET_SCHEMA,
    Asked,
    Sessions,
    header_target,
)
from tests.support.engine_fake import COUNT_ALL, COUNT_BY_SEX, CannedEngine
from tests.support.serving import EverybodyLocal, channel_to, serving
from tests.support.worlds import people_engine, random_rows

HALF = Set("half_width", Fraction(50))


class Call:
    """The part of a gRPC call's context that a session is found by."""

    def __init__(
        self, peer: str, metadata: Iterable[tuple[str, str]] = (), caller: Caller = LOCAL
    ) -> None:
        self._peer = peer
        self._metadata = tuple(metadata)
        context: Any = self
        note_caller(context, caller)

    def peer(self) -> str:
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata


def run(sessions: Sessions, sql: str, peer: str = "a", **headers: str) -> Asked:
    metadata = [(name.replace("_", "-"), value) for name, value in headers.items()]
    call: Any = Call(peer, metadata)
    return sessions.run(sql, call)


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


# The text.


@pytest.mark.parametrize(
    ("sql", "commands"),
    [
        ("SET tacit.half_width = 50", [HALF]),
        ("set SESSION Tacit.HALF_width to 50;", [HALF]),
        ("SET tacit.half_width = '50' ; ;", [HALF]),
        ('SET "tacit"."half_width"=+5e1', [HALF]),
        ("-- first\nSET/**/tacit . half_width/* ; */=50.0 -- ;", [HALF]),
        ("SET tacit.epsilon = 0.1", [Set("epsilon", Fraction(1, 10))]),
        ("SET tacit.confidence TO .9", [Set("confidence", Fraction(9, 10))]),
        ("SET tacit.confidence = DEFAULT", [Set("confidence", None)]),
        ("RESET tacit.epsilon", [Set("epsilon", None)]),
        ("RESET ALL", [ResetAll()]),
        ("SHOW tacit.epsilon", [Show("epsilon")]),
        ("SET application_name = 'it''s; here'", [Ignored()]),
        ("SET TIME ZONE 'Europe/Oslo'", [Ignored()]),
        ("SET TimeZone TO 'UTC'; SET search_path = \"$user\", public;", [Ignored(), Ignored()]),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", [Ignored()]),
        ("SET NAMES 'utf8'; RESET client_encoding", [Ignored(), Ignored()]),
        ("SET extra_float_digits = 3; SET tacit.half_width = 50;", [Ignored(), HALF]),
    ],
)
def test_settings_are_read_as_postgresql_would(sql: str, commands: list[object]) -> None:
    assert split_settings(sql) == (tuple(commands), "")


@pytest.mark.parametrize("name", sorted(IGNORED))
def test_everything_on_the_list_of_what_is_ignored_is_ignored(name: str) -> None:
    equals = " = " if " " not in name and name not in ("names", "transaction") else " "
    assert split_settings(f"SET {name}{equals}'anything'") == ((Ignored(),), "")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) FROM people",
        "  SELECT ';' -- SET tacit.half_width = 1",
        "EXPLAIN PRIVACY SELECT 1",
        "SELECT 1; SET tacit.half_width = 50",
        "settle; everything",
        '"set" tacit.half_width = 50',
        "'set'",
        "",
        ";",
        "/* /* SET */ SET tacit.half_width = 50 */",
    ],
)
def test_anything_else_is_left_as_it_was_written(statement: str) -> None:
    assert split_settings(statement) == ((), statement)
    if statement.strip("; "):
        assert split_settings(f"SET tacit.half_width = 50; {statement}") == (
            (HALF,),
            statement.lstrip(),
        )


@pytest.mark.parametrize(
    ("sql", "refusal", "says"),
    [
        ("SET LOCAL tacit.half_width = 5", UnsupportedSql, "there are no"),
        ("SET tacit.half_widht = 5", UnknownName, "Did you mean 'tacit.half_width'"),
        ("SET half_width = 5", UnknownName, "Did you mean 'tacit.half_width'"),
        ("RESET tacit.everything", UnknownName, "tacit.half_width"),
        ("SHOW work_mem", UnknownName, "Settings here are tacit.half_width"),
        ("SHOW search_path", UnsupportedSql, "has no effect"),
        ("SET ROLE admin", UnknownName, "'role'"),
        ("SET tacit.half_width = much", InvalidTarget, "tacit.half_width must be a decimal"),
        ("SET tacit.half_width = 1, 2", InvalidTarget, "one number, or DEFAULT"),
        ("SET tacit.half_width = - '1'", InvalidTarget, "one number, or DEFAULT"),
        ("SET tacit.epsilon = 1e999999999", InvalidTarget, "decimal number"),
        ("SET tacit.half_width = 0x10", InvalidTarget, "one number"),
        ("SET tacit.half_width 5", InvalidSql, "SET does not parse near 5"),
        ("SET", InvalidSql, "near the end"),
        ("SET tacit.", InvalidSql, "near the end"),
        ("RESET tacit.epsilon = 1", InvalidSql, "RESET does not parse"),
        ("SHOW ALL, tacit.epsilon", InvalidSql, "SHOW does not parse"),
        ("SHOW tacit.epsilon; SELECT 1", UnsupportedSql, "SHOW is answered alone"),
        ("SET tacit.epsilon = 1; SHOW tacit.epsilon", UnsupportedSql, "SHOW is answered alone"),
        ("SET application_name = 'open", InvalidSql, "may be left open"),
        ("SET application_name = E'\\'; SELECT 1 --'", InvalidSql, "read as words"),
        ("SET application_name = $$;$$", InvalidSql, "read as words"),
        ("SET /* /* */ */ tacit.epsilon = 1", InvalidSql, "read as words"),
        ("SET tacit.epsilon = 1;" * (N_SETTINGS_MAX + 1), TooLarge, "settings"),
        ("SET search_path = " + "a, " * 1000, TooLarge, "words and signs"),
    ],
)
def test_what_is_no_setting_is_refused_with_the_way_out(
    sql: str, refusal: type[Refused], says: str
) -> None:
    with pytest.raises(refusal) as caught:
        split_settings(sql)
    assert says in caught.value.explain()


@given(st.text(alphabet="sSeEtT .;=-/*'\"$0159\\tacithlfwd_\n", max_size=60))
@example("set" + "/*" * 30)
def test_any_text_at_all_is_read_or_refused(tail: str) -> None:
    for sql in (tail, f"SET {tail}", f"SET tacit.half_width = 5;{tail}"):
        try:
            commands, rest = split_settings(sql)
        except Refused:
            continue
        assert sql.endswith(rest)
        assert commands or rest == sql


@given(st.lists(st.sampled_from(["/*a*/", "-- b\n", " ", "/* * / */", "/*", "*/"]), max_size=3000))
def test_long_runs_of_comments_are_read_once(gaps: list[str]) -> None:
    sql = "".join(gaps) + "SELECT 1"
    try:
        commands, rest = split_settings(sql)
    except Refused:
        return
    assert (commands, rest) == ((), sql)


# The session.


def test_a_setting_lasts_until_it_is_set_again_or_reset() -> None:
    sessions = Sessions()
    assert run(sessions, "SET tacit.half_width = 50").target == RequestedTarget(half_width=50.0)
    both = run(sessions, "SET tacit.epsilon = 0.1").target
    assert both == RequestedTarget(half_width=50.0, epsilon_cap=Fraction(1, 10))
    assert run(sessions, "SELECT 1").target == both
    assert run(sessions, "SELECT 1", peer="b").target == RequestedTarget()
    assert run(sessions, "RESET tacit.half_width; SELECT 1").target.half_width is None
    run(sessions, "RESET ALL")
    assert run(sessions, "SELECT 1").target == RequestedTarget()
    assert len(sessions) == 0


def test_two_analysts_at_one_address_have_two_sessions() -> None:
    sessions = Sessions()
    run(sessions, "SET tacit.half_width = 50")
    other: Any = Call("a", caller=replace(LOCAL, payer=Payer("another")))
    assert sessions.run("SELECT 1", other).target == RequestedTarget()
    sessions.close(other)
    assert run(sessions, "SELECT 1").target.half_width == 50.0


def test_settings_ahead_of_a_statement_hold_for_it_and_afterwards() -> None:
    sessions = Sessions()
    first = run(sessions, "SET tacit.half_width = 50; SET tacit.confidence = 0.9; SELECT 1")
    assert first.sql == "SELECT 1"
    assert first.reply is None
    assert first.target == RequestedTarget(half_width=50.0, confidence=0.9)
    assert run(sessions, "SELECT 2").target == first.target


@pytest.mark.parametrize(
    "sql",
    [
        "SET tacit.half_width = 5; SET tacit.confidence = 2",
        "SET tacit.half_width = 5; SET tacit.nothing = 2",
        "SET tacit.half_width = -5",
        "SET tacit.half_width = 0",
        "SET tacit.epsilon = -0.1",
        "SET tacit.confidence = 1",
    ],
)
def test_nothing_of_a_refused_text_is_kept(sql: str) -> None:
    sessions = Sessions()
    with pytest.raises(Refused):
        run(sessions, sql)
    assert run(sessions, "SELECT 1").target == RequestedTarget()


def test_looking_ahead_keeps_nothing() -> None:
    sessions = Sessions()
    call: Any = Call("a")
    assert sessions.preview("SET tacit.half_width = 5; SELECT 1", call).target.half_width == 5.0
    assert run(sessions, "SELECT 1").target == RequestedTarget()


def test_setting_answers_no_rows_and_showing_answers_one() -> None:
    sessions = Sessions()
    reply = run(sessions, "SET tacit.half_width = 50").reply
    assert reply is not None
    assert reply.equals(SET_SCHEMA.empty_table())
    for sql, shown in (
        ("SHOW tacit.half_width", {"tacit.half_width": "50"}),
        ("SHOW tacit.confidence", {"tacit.confidence": None}),
        ("SHOW TACIT.epsilon", {"tacit.epsilon": None}),
    ):
        reply = run(sessions, sql).reply
        assert reply is not None
        assert reply.to_pylist() == [shown]


@given(
    value=st.decimals(min_value="1e-9", max_value="1e9", allow_nan=False, places=9).filter(bool),
    name=st.sampled_from(["half_width", "epsilon"]),
)
def test_what_is_shown_can_be_set_again_and_means_the_same(value: object, name: str) -> None:
    sessions = Sessions()
    run(sessions, f"SET tacit.{name} = {value}")
    before = run(sessions, "SELECT 1").target
    reply = run(sessions, f"SHOW tacit.{name}").reply
    assert reply is not None
    (shown,) = reply[f"tacit.{name}"].to_pylist()
    assert re.fullmatch(r"[0-9]+(\.[0-9]*[1-9])?", shown)
    run(sessions, f"SET tacit.{name} = {shown}")
    assert run(sessions, "SELECT 1").target == before


def test_only_so_many_sessions_are_held_and_the_longest_unused_goes_first() -> None:
    sessions = Sessions()
    for number in range(N_SESSIONS_MAX):
        run(sessions, "SET tacit.half_width = 50", peer=str(number))
    run(sessions, "SELECT 1", peer="0")  # so that session 1 is the longest unused
    run(sessions, "SET tacit.half_width = 50", peer="one more")
    assert len(sessions) == N_SESSIONS_MAX
    assert run(sessions, "SELECT 1", peer="0").target.half_width == 50.0
    assert run(sessions, "SELECT 1", peer="1").target.half_width is None


def test_whoever_gets_an_old_address_does_not_get_its_settings() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    run(sessions, "SET tacit.half_width = 50")
    now[0] += IDLE_SECONDS_MAX
    assert run(sessions, "SELECT 1").target.half_width == 50.0
    now[0] += IDLE_SECONDS_MAX + 1
    assert run(sessions, "SELECT 1").target.half_width is None


# Headers.


def test_a_header_goes_before_the_session_and_is_not_kept() -> None:
    sessions = Sessions()
    run(sessions, "SET tacit.half_width = 50; SET tacit.confidence = 0.9")
    once = run(sessions, "SELECT 1", tacit_half_width="7", tacit_epsilon="0.25").target
    assert once == RequestedTarget(half_width=7.0, confidence=0.9, epsilon_cap=Fraction(1, 4))
    assert run(sessions, "SELECT 1").target == RequestedTarget(half_width=50.0, confidence=0.9)


def test_other_headers_mean_nothing() -> None:
    assert header_target([("user-agent", "x"), ("tacit", "1"), ("authorization", "y")]) == (
        RequestedTarget()
    )


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ([("tacit-half-width", "wide")], "The header tacit-half-width must be a decimal number"),
        ([("tacit-half-width", "")], "The header tacit-half-width"),
        ([("tacit-half-width", "0")], "The header tacit-half-width: half_width must be"),
        ([("tacit-confidence", "95")], "The header tacit-confidence: confidence must"),
        ([("tacit-epsilon", "-1")], "The header tacit-epsilon: epsilon"),
        ([("tacit-epsilon", "nan")], "The header tacit-epsilon"),
        ([("tacit-halfwidth", "5")], "Did you mean 'tacit-half-width'"),
        ([("tacit-epsilon", "1"), ("tacit-epsilon", "2")], "tacit-epsilon is there twice"),
    ],
)
def test_a_malformed_header_is_refused_by_its_name(
    metadata: list[tuple[str, str]], says: str
) -> None:
    with pytest.raises(InvalidTarget) as caught:
        header_target(metadata)
    assert says in caught.value.explain()


# Through real clients.


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


# Flight's own actions.

OPTION = "adbc.flight.sql.session.option.tacit."


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


def started(sessions: Sessions) -> tuple[grpc.Server, str]:
    """A Flight SQL server whose sessions the test can see."""
    door = Door(EverybodyLocal(), Patience())
    server = grpc.server(futures.ThreadPoolExecutor(2), interceptors=[door])
    add_FlightServiceServicer_to_server(FlightSqlService(CannedEngine(), sessions), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"


def options_of(stub: FlightServiceStub) -> dict[str, str]:
    (reply,) = stub.DoAction(flight_pb2.Action(type="GetSessionOptions"))
    found = flight_pb2.GetSessionOptionsResult.FromString(reply.body).session_options
    return {name: value.string_value for name, value in found.items()}


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


def test_what_is_ignored_is_documented_and_nothing_else_is() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text()
    (paragraph,) = re.findall(
        r"as there is\nnothing to show: (.*?)\.\nEvery other", text, re.DOTALL
    )
    assert {name.lower() for name in re.findall(r"`([^`]+)`", paragraph)} == IGNORED
    for name, header in zip(SETTING_NAMES, HEADERS, strict=True):
        assert f"| `tacit.{name}` | `{header}` |" in text


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
