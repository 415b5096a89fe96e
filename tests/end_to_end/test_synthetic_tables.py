"""Synthetic tables through real clients: the ADBC driver and `tacit.v1`."""

import io
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa
import pytest
import structlog
from adbc_driver_flightsql import dbapi
from adbc_driver_manager import NotSupportedError, OperationalError, ProgrammingError

from proxy.api.requests import LOCAL, Caller
from proxy.engine.engine import Engine
from proxy.identity.presented import PresentedCredentials
from proxy.monitoring.logs import configure_logs
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.refusal_details import EPSILON_KEY
from proxy.shared.tokens import new_token, token_hash
from proxy.synthetic_tables import make as making
from proxy.synthetic_tables.request import MadeTable, Progress, Watch
from tests.support.identities import bearer, refusal
from tests.support.serving import serving
from tests.support.synthetic import ANN, BOB, EVE, spent, synthetic_engine

MAKE = "CREATE SYNTHETIC TABLE s FROM people WITH (epsilon => 1, rows => 300, columns => (city))"
ORDER = tacit_pb2.CreateSyntheticRequest(
    table="people", name="s", epsilon="1", rows=300, columns=["city", "member"]
)
PATIENCE_SECONDS = 30.0
TOKENS = {caller.payer.analyst: new_token() for caller in (ANN, BOB, EVE)}
CALLERS = {token_hash(TOKENS[caller.payer.analyst]): caller for caller in (ANN, BOB, EVE)}


class KnownByToken:
    """Ann, bob and eve are known by their tokens; whoever shows none owns everything."""

    def identify(self, presented: PresentedCredentials) -> Caller:
        return LOCAL if presented.token_hash is None else CALLERS[presented.token_hash]


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with synthetic_engine(tmp_path) as engine:
        yield engine


@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    with serving(engine, authenticator=KnownByToken(), synthetic=engine.synthetic) as address:
        yield address


@pytest.fixture
def cursor(address: str) -> Iterator[Any]:
    with dbapi.connect(f"grpc://{address}", autocommit=True) as opened, opened.cursor() as cursor:
        yield cursor


@pytest.fixture
def stub(address: str) -> Iterator[TacitStub]:
    with grpc.insecure_channel(address) as channel:
        yield TacitStub(channel)


def shown_as(name: str) -> tuple[tuple[str, str], ...]:
    return bearer(TOKENS[name])


def code_of(call: Callable[[], object]) -> str:
    """The code that a call is refused with."""
    return refusal(call)[1].removeprefix("[").partition("]")[0]


# ADBC.


def test_a_statement_makes_a_table_that_is_then_a_table(cursor: Any, engine: Engine) -> None:
    assert cursor.adbc_execute_schema(MAKE).names[:3] == ["name", "source", "method"]
    assert not engine.synthetic.known(LOCAL)
    cursor.execute(MAKE)
    assert cursor.fetchone()[:4] == ("s", "people", "pairwise", 300)
    cursor.execute("SELECT * FROM s")
    assert cursor.fetch_arrow_table().num_rows == 300
    cursor.execute("DROP SYNTHETIC TABLE s")
    with pytest.raises((OperationalError, ProgrammingError), match="unknown_name"):
        cursor.execute("SELECT * FROM s")


def test_a_statement_may_be_sent_as_an_update(cursor: Any, engine: Engine) -> None:
    cursor.executescript(MAKE)
    assert [record.name for record in engine.synthetic.known(LOCAL)] == ["s"]
    cursor.executescript("DROP SYNTHETIC TABLE s")
    assert not engine.synthetic.known(LOCAL)
    before = spent(engine)
    with pytest.raises(NotSupportedError, match="only answers SELECT"):
        cursor.executescript("SELECT COUNT(*) FROM people")
    assert spent(engine) == before


def test_a_table_is_in_the_catalog_of_those_who_may_know_of_it(cursor: Any, address: str) -> None:
    cursor.execute(MAKE)
    cursor.fetchall()

    def listed(name: str) -> dict[str, Any]:
        header = {"adbc.flight.sql.authorization_header": f"Bearer {TOKENS[name]}"}
        with dbapi.connect(f"grpc://{address}", db_kwargs=header, autocommit=True) as connection:
            (catalog,) = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        tables = [
            one for schema in catalog["catalog_db_schemas"] for one in schema["db_schema_tables"]
        ]
        return {table["table_name"]: table for table in tables if table["table_type"] != "VIEW"}

    (column,) = listed("bob")["s"]["table_columns"]
    assert (column["column_name"], column["xdbc_type_name"]) == ("city", "VARCHAR")
    assert listed("eve").keys() == {"staff"}


def test_refusals_are_told_with_their_codes(cursor: Any, engine: Engine) -> None:
    for sql, code in (
        (MAKE.replace("epsilon => 1", "epsilon => 11"), "budget_exhausted"),
        (MAKE.replace("rows => 300", "rows => 10000000"), "too_large"),
        (MAKE.replace(" s ", " people "), "name_taken"),
        (MAKE.replace("FROM people", "FROM nobody"), "unknown_name"),
        (MAKE.replace("epsilon =>", "epsilon"), "sql_syntax"),
        (MAKE.replace("rows => 300", "method => 'gan'"), "invalid_request"),
    ):
        with pytest.raises(Exception, match=rf"\[{code}\]"):
            cursor.execute(sql)
    assert spent(engine) == 0


# tacit.v1.


def test_the_steps_of_a_table_are_told_and_last_its_receipt(
    stub: TacitStub, engine: Engine
) -> None:
    call = stub.CreateSynthetic(ORDER)
    *steps, last = list(call)
    assert len(steps) >= 3
    assert all(step.step and not step.HasField("table") for step in steps)
    for values in ([s.done for s in (*steps, last)], [s.epsilon_spent for s in (*steps, last)]):
        assert values == sorted(values)
    assert last.done == 1
    assert (last.table.name, last.table.rows, last.table.source) == ("s", 300, "people")
    assert last.receipt.epsilon_spent == last.table.epsilon_spent == float(spent(engine)) > 0
    assert last.receipt.budget.epsilon_left == pytest.approx(10 - last.table.epsilon_spent)
    trailers = dict(call.trailing_metadata())
    assert float(trailers[EPSILON_KEY]) == last.table.epsilon_spent


def test_a_preview_is_of_what_is_charged_and_charges_nothing(
    stub: TacitStub, engine: Engine
) -> None:
    reply = stub.PreviewSynthetic(ORDER)
    assert sum(step.epsilon for step in reply.steps) == pytest.approx(reply.epsilon)
    assert reply.epsilon <= 1 + 1e-9
    assert reply.budget.epsilon_left == 10
    assert spent(engine) == 0


def test_rows_are_read_as_arrow_and_drawn_again(stub: TacitStub, engine: Engine) -> None:
    list(stub.CreateSynthetic(ORDER))
    before = spent(engine)

    def rows(name: str) -> pa.Table:
        request = tacit_pb2.ReadSyntheticRequest(name=name)
        stream = b"".join(reply.ipc for reply in stub.ReadSynthetic(request))
        with pa.ipc.open_stream(stream) as reader:
            return reader.read_all()

    assert rows("s").num_rows == 300
    request = tacit_pb2.ResampleSyntheticRequest(table="s", rows=20, seed=9)
    made = stub.ResampleSynthetic(request)
    assert (made.name, made.rows, made.seed) == ("people_1", 20, 9)
    assert rows("people_1").schema == rows("s").schema
    assert spent(engine) == before
    bad = tacit_pb2.ResampleSyntheticRequest(table="s", seed=-1)
    assert code_of(lambda: stub.ResampleSynthetic(bad)) == "invalid_request"


def test_the_settings_of_a_network_travel(stub: TacitStub, engine: Engine) -> None:
    order = tacit_pb2.CreateSyntheticRequest(
        table="people",
        name="s",
        epsilon="1",
        method="privbayes",
        rows=20,
        columns=["city", "visits"],
        score="i",
        degree=0,
        hierarchies=True,
        theta=2.5,
        structure_share="0.25",
    )
    *_, last = stub.CreateSynthetic(order)
    assert "score => 'I', degree => 0, hierarchies => true" in last.table.options
    assert "theta => 2.5, structure_share => 0.25" in last.table.options
    before = spent(engine)
    for degree in (9, -1):
        bad = tacit_pb2.CreateSyntheticRequest(table="people", method="privbayes", degree=degree)
        assert code_of(partial(stub.PreviewSynthetic, bad)) == "invalid_target"
    for named in (
        tacit_pb2.CreateSyntheticRequest(table="people", score="R"),
        tacit_pb2.CreateSyntheticRequest(table="people", degree=0),
        tacit_pb2.CreateSyntheticRequest(table="people", hierarchies=False),
    ):
        _, said = refusal(partial(stub.PreviewSynthetic, named))
        assert "The method auto has no " in said
        assert "Use method => 'privbayes', or leave the setting out." in said
    assert spent(engine) == before


def test_a_law_is_told_with_what_it_rests_on(stub: TacitStub, engine: Engine) -> None:
    list(stub.CreateSynthetic(ORDER))
    before = spent(engine)
    request = tacit_pb2.SyntheticLawRequest(
        name="s", of=["city"], given=[tacit_pb2.GivenValue(column="member", value="true")]
    )
    *pieces, last = stub.SyntheticLaw(request)
    assert last.basis.way == "counted"
    assert 1 <= last.basis.n_rows <= 300
    with pa.ipc.open_stream(b"".join(reply.ipc for reply in pieces)) as reader:
        told = reader.read_all()
    assert told.column_names == ["city", "share"]
    assert sum(told["share"].to_pylist()) == pytest.approx(1)
    assert spent(engine) == before
    assert code_of(lambda: list(stub.SyntheticLaw(request, metadata=shown_as("eve")))) == (
        "unknown_name"
    )


def test_tables_are_listed_with_the_private_ones_and_by_themselves(stub: TacitStub) -> None:
    list(stub.CreateSynthetic(ORDER, metadata=shown_as("ann")))
    (listed,) = stub.ListSynthetic(tacit_pb2.ListSyntheticRequest()).tables
    assert (listed.made_by, listed.source, listed.n_charges > 0) == ("ann", "people", True)
    assert [column.name for column in listed.columns] == ["city", "member"]
    tables = stub.ListTables(tacit_pb2.ListTablesRequest()).tables
    assert [(table.name, table.synthetic_of) for table in tables] == [
        ("people", ""),
        ("staff", ""),
        ("s", "people"),
    ]
    assert tables[-1].columns[0].levels == "Oslo, Paris, Rome, NULL"


def test_who_may_not_know_of_the_source_is_told_of_nothing(stub: TacitStub) -> None:
    list(stub.CreateSynthetic(ORDER))
    eve = shown_as("eve")
    assert not stub.ListSynthetic(tacit_pb2.ListSyntheticRequest(), metadata=eve).tables
    read, drop = tacit_pb2.ReadSyntheticRequest(name="s"), tacit_pb2.DropSyntheticRequest(name="s")
    for call in (
        lambda: stub.ReadSynthetic(read, metadata=eve),
        lambda: stub.DropSynthetic(drop, metadata=eve),
        lambda: stub.CreateSynthetic(ORDER, metadata=eve),
        lambda: stub.PreviewSynthetic(ORDER, metadata=eve),
    ):
        assert code_of(call) == "unknown_name"
    assert code_of(lambda: stub.DropSynthetic(drop, metadata=shown_as("bob"))) == "not_allowed"


def test_a_header_caps_what_a_table_may_cost(stub: TacitStub, engine: Engine) -> None:
    capped = (("tacit-epsilon", "0.5"),)
    assert code_of(lambda: stub.CreateSynthetic(ORDER, metadata=capped)) == "cost_above_cap"
    assert spent(engine) == 0


@pytest.fixture
def halting(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Makes the making wait, once columns are measured, until the event is set."""
    go_on, make = threading.Event(), making.make

    def halted(table: Any, request: Any, payer: Any, watch: Watch) -> MadeTable:
        def pause(step: Progress) -> None:
            watch(step)
            if step.name.startswith("scor"):
                go_on.wait(PATIENCE_SECONDS)

        return make(table, request, payer, pause)

    monkeypatch.setattr(making, "make", halted)
    yield go_on
    go_on.set()


def test_a_call_that_is_cancelled_leaves_no_table_and_what_was_bought(
    stub: TacitStub, engine: Engine, halting: threading.Event
) -> None:
    call = stub.CreateSynthetic(ORDER)
    for progress in call:
        if progress.step.startswith("scor"):
            call.cancel()
            break
    halting.set()
    for thread in threading.enumerate():
        if thread.name == "tacit-synthesis":
            thread.join(PATIENCE_SECONDS)
    paid = spent(engine)
    assert 0 < paid < 1
    assert not stub.ListSynthetic(tacit_pb2.ListSyntheticRequest()).tables
    from_history = tacit_pb2.CreateSyntheticRequest(
        table="people", name="s", columns=["city", "member"]
    )
    *_, last = stub.CreateSynthetic(from_history)
    assert last.table.epsilon_spent == 0
    assert not any(column.unknown for column in last.table.columns)
    assert spent(engine) == paid
