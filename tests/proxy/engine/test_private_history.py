"""Where the history is private, an analyst sees the same whatever others have asked before.

Two servers with the same data, without noise, so that the numbers themselves are the same: on one
of them another analyst has asked a lot, on the other nobody has asked anything.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import grpc
import pyarrow as pa
import pytest
from google.protobuf.json_format import MessageToDict
from pyarrow import flight

from accountant.gate.open_table import open_table
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger
from cube.refusals import BudgetExhausted, CostAboveCap, LimitReached, Refused
from cube.shortfall import Shortfall
from planner.workload import RequestedTarget
from proxy.admin.limits import LimitChange, change_limit
from proxy.api.requests import LOCAL, Caller, QueryRequest, QueryResult
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.identity.presented import PresentedCredentials
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.disclosure import shown_spent
from proxy.tables.private_table import ServedTable
from proxy.wire.refusal_details import refusal_detail
from tests.support.fakes import NoNoise
from tests.support.serving import serving
from tests.support.worlds import DEFAULT, SCHEMA, people_engine, random_rows, write_csv

ANN, EVE = (Caller(Payer(name), Role.ANALYST, ("people",)) for name in ("ann", "eve"))
ROWS = random_rows(2000)
BUDGET = Fraction(200)  # so large that all of this is within its first tenth
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"

SHOWN = (
    "DP_INTERVAL_LOW(v) AS low, DP_INTERVAL_HIGH(v, 0.999) AS high, DP_STDERR(v) AS e, "
    "DP_COST(v) AS c, DP_SOURCE(v) AS s"
)
ANN_ASKED = (
    f"{DP}(half_width => 5) COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42",
    f"{DP}(half_width => 6) city, COUNT(*) AS n, SUM(visits) AS v FROM people GROUP BY city",
    f"{DP}(half_width => 3) COUNT(*) FROM people WHERE member",
    f"{DP}(half_width => 8) COUNT(*) FROM people WHERE age > 3",
)
STATEMENTS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE city = 'Paris' AND age >= 42",
    "SELECT COUNT(*) + 3 AS n FROM people WHERE false",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 100 ORDER BY n DESC",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city LIMIT 0",
    f"{DP}(half_width => 40, confidence => 0.9) SUM(visits) AS v, {SHOWN} FROM people",
    "SELECT AVG(visits) AS a, DP_INTERVAL_LOW(a) AS low, DP_STDERR(a) AS e FROM people",
    "SELECT VARIANCE(visits) AS v, DP_INTERVAL_HIGH(v) AS high FROM people",
    "SELECT MEDIAN(visits) AS m, DP_INTERVAL_LOW(m) AS low FROM people",
    f"{DP}(relative => 0.05) COUNT(*) AS n FROM people WHERE city = 'Rome'",
    f"{DP}(half_width => 2) AVG(visits) AS a FROM people WHERE city = 'Rome'",
    f"{DP}(consistency => 'exact') city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city)",
    "EXPLAIN PRIVACY SELECT COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42",
    "EXPLAIN PRIVACY SELECT city, COUNT(*), AVG(visits) FROM people GROUP BY city",
    "SELECT statistic, level FROM (SELECT DP_CHI2_TEST(city, member) FROM people)",
    f"{DP}(epsilon => 0) COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42",
    f"{DP}(epsilon => 0.01) COUNT(*) FROM people WHERE member",
    f"{DP}(epsilon => 0.2) COUNT(*) FROM people WHERE member",
    f"{DP}(epsilon => 0.03, relative => 0.05) COUNT(*) AS n FROM people WHERE city = 'Oslo'",
    f"{DP}(half_width => 0.001) COUNT(*) FROM people",
    f"{DP}(half_width => 0.001, fallback => 'model') COUNT(*) FROM people",
    "SELECT * FROM data_privacy.budgets",
    "SELECT * FROM data_privacy.losses",
    "SELECT * FROM data_privacy.history",
    "SELECT * FROM estimate_remaining_dp_aggregates('people')",
    "CREATE SYNTHETIC TABLE made FROM people WITH (epsilon => 0)",
    "EXPLAIN PRIVACY CREATE SYNTHETIC TABLE made FROM people WITH (epsilon => 1)",
)
BATCH = "SELECT COUNT(*) FROM people WHERE member; SELECT COUNT(*) AS n FROM people"


class EverybodyIs:
    """Everybody is one caller, whatever they show."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def identify(self, presented: PresentedCredentials) -> Caller:  # noqa: ARG002 - the protocol names it
        return self._caller


@contextmanager
def world(
    folder: Path, *, is_busy: bool, sharing: Sharing = Sharing.PRIVATE, budget: Fraction = BUDGET
) -> Iterator[Engine]:
    folder.mkdir()
    with people_engine(folder, ROWS, budget=budget, sharing=sharing, noise=NoNoise()) as engine:
        for sql in ANN_ASKED if is_busy else ():
            engine.answer(QueryRequest(sql=sql, caller=ANN))
        yield engine


def rounded(value: object) -> object:
    """A value with its floats to six digits: sums are added in another order."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return value


def told(call: Callable[[], object]) -> object:
    """What a call gives, or what it is refused with."""
    try:
        return rounded(call())
    except Refused as refusal:
        return (refusal.code, refusal.explain(), MessageToDict(refusal_detail(refusal)))
    except grpc.RpcError as error:
        return (error.code(), error.details(), tuple(error.trailing_metadata()))
    except pa.ArrowException as error:
        return str(error).partition("gRPC client debug context")[0]


def queried(stub: TacitStub, sql: str) -> object:
    call = stub.Query(tacit_pb2.QueryRequest(sql=sql))
    replies = list(call)
    data = pa.ipc.open_stream(b"".join(reply.ipc for reply in replies)).read_all()
    carried = {key.decode(): json.loads(text) for key, text in (data.schema.metadata or {}).items()}
    trailing = {key: value for key, value in call.trailing_metadata() if "epsilon" in key}
    return (data.to_pylist(), carried, MessageToDict(replies[-1].receipt), trailing)


def flown(client: flight.FlightClient, sql: str) -> object:
    descriptor = flight.FlightDescriptor.for_command(_statement(sql))
    info = client.get_flight_info(descriptor)
    reader = client.do_get(info.endpoints[0].ticket)
    metadata = [chunk.app_metadata and chunk.app_metadata.to_pybytes() for chunk in reader]
    return (info.total_records, getattr(info, "app_metadata", b""), metadata)


def _statement(sql: str) -> bytes:
    from google.protobuf.any_pb2 import Any as AnyMessage  # noqa: PLC0415 - of this helper alone

    from proxy.protocol import flight_sql_pb2  # noqa: PLC0415 - the same

    envelope = AnyMessage()
    envelope.Pack(flight_sql_pb2.CommandStatementQuery(query=sql))
    return envelope.SerializeToString()


def everything_seen(engine: Engine, statements: Sequence[str]) -> list[object]:
    """What Eve is told over the wire, in answer to one thing after the other."""
    prior = [tacit_pb2.PriorPoint(value=k, probability=0.001) for k in range(1000)]
    paris = "SELECT COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42"
    target = tacit_pb2.Target(half_width=30)
    with (
        serving(engine, authenticator=EverybodyIs(EVE), synthetic=engine.synthetic) as address,
        grpc.insecure_channel(address) as channel,
        flight.connect(f"grpc://{address}") as client,
    ):
        stub = TacitStub(channel)
        calls: list[Callable[[], object]] = [
            lambda: MessageToDict(stub.GetBudget(tacit_pb2.GetBudgetRequest())),
            lambda: explained(stub, STATEMENTS[0]),
            lambda: planned(stub, tacit_pb2.PlanRequest(sql=BATCH, buy=True, target=capped(0.01))),
            *(lambda sql=sql: queried(stub, sql) for sql in statements),
            *(lambda sql=sql: flown(client, sql) for sql in STATEMENTS[:3]),
            lambda: planned(stub, tacit_pb2.PlanRequest(sql=BATCH, buy=True)),
            lambda: MessageToDict(
                stub.BestReport(
                    tacit_pb2.BestReportRequest(
                        sql=paris, prior=prior, loss="squared", target=target
                    )
                )
            ),
            lambda: MessageToDict(stub.ListTables(tacit_pb2.ListTablesRequest())),
            lambda: [
                MessageToDict(one)
                for one in stub.Marginals(tacit_pb2.MarginalsRequest(table="people"))
            ],
            lambda: MessageToDict(stub.GetBudget(tacit_pb2.GetBudgetRequest())),
        ]
        return [told(call) for call in calls]


def capped(epsilon: float) -> tacit_pb2.Target:
    return tacit_pb2.Target(epsilon=str(epsilon))


def explained(stub: TacitStub, sql: str) -> object:
    reply = stub.Explain(tacit_pb2.ExplainRequest(sql=sql))
    return (_rows(reply.ipc), reply.epsilon, MessageToDict(reply.budget))


def planned(stub: TacitStub, request: tacit_pb2.PlanRequest) -> object:
    reply, call = stub.Plan.with_call(request)
    trailing = {key: value for key, value in call.trailing_metadata() if "epsilon" in key}
    return (_rows(reply.ipc), reply.epsilon, reply.n_measurements, reply.bought, trailing)


def _rows(ipc: bytes) -> object:
    return pa.ipc.open_stream(ipc).read_all().to_pylist()


def seen_in_both(
    folder: Path, sharing: Sharing, statements: Sequence[str]
) -> list[tuple[object, object]]:
    seen = []
    for is_busy in (False, True):
        with world(folder / str(is_busy), is_busy=is_busy, sharing=sharing) as engine:
            seen.append(everything_seen(engine, statements))
    return list(zip(*seen, strict=True))


def test_what_others_asked_is_seen_nowhere(tmp_path: Path) -> None:
    for quiet, busy in seen_in_both(tmp_path, Sharing.PRIVATE, STATEMENTS):
        assert busy == quiet


def test_the_comparison_has_teeth(tmp_path: Path) -> None:
    """With a shared history nearly everything differs, so that being the same means something."""
    statements = [sql for sql in STATEMENTS if "Paris" in sql or "data_privacy" in sql]
    pairs = seen_in_both(tmp_path, Sharing.SHARED, statements)
    differ = [quiet != busy for quiet, busy in pairs]
    assert sum(differ) > len(differ) * 2 / 3


def ask(engine: Engine, sql: str, caller: Caller) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql, caller=caller))


def test_an_owner_sees_what_there_is(tmp_path: Path) -> None:
    with world(tmp_path / "w", is_busy=True) as engine:
        release = ask(engine, ANN_ASKED[0], LOCAL)
        assert release.receipt is not None
        assert release.receipt.epsilon_spent == 0
        assert release.receipt.columns[0].source == "history"
        assert release.receipt.budget.n_measurements > 0
        assert ask(engine, "SELECT * FROM data_privacy.history", LOCAL).data.num_rows > 0
        assert ask(engine, "SELECT * FROM data_privacy.history", EVE).data.num_rows == 0


def test_what_the_history_knows_is_charged_to_nobody_whatever_is_shown(tmp_path: Path) -> None:
    with world(tmp_path / "w", is_busy=True) as engine:
        before = engine.budgets(LOCAL)[0].spent
        release = ask(engine, ANN_ASKED[0], EVE)
        assert release.receipt is not None
        assert release.receipt.epsilon_spent > 0
        assert engine.budgets(LOCAL)[0].spent == before


def test_a_refusal_for_want_of_budget_names_no_more_than_the_price_of_asking_alone(
    tmp_path: Path,
) -> None:
    with world(tmp_path / "w", is_busy=False, budget=Fraction(1, 10)) as engine:
        ask(engine, f"{DP}(half_width => 40) COUNT(*) FROM people", ANN)
        request = QueryRequest(
            sql=f"{DP}(half_width => 32) COUNT(*) FROM people WHERE city = 'Oslo'", caller=EVE
        )
        with pytest.raises(BudgetExhausted) as caught:
            engine.answer(request)
        price = engine.explain(request).epsilon
        assert caught.value.shortfall == Shortfall(
            table="people", epsilon_needed=price, epsilon_left=None
        )
        assert "epsilon 0.0936167," in caught.value.message
        assert "half_width" not in caught.value.message
        assert "Free" not in caught.value.explain()
        assert "pays for" not in caught.value.explain()


@pytest.mark.parametrize("allowed", ["0.05", "0.02"])
def test_a_limit_of_others_is_named_to_nobody_by_word_or_number(
    tmp_path: Path, allowed: str
) -> None:
    """What is left of a group's limit says what its other members have spent."""
    eve, ann = (replace(one, payer=replace(one.payer, groups=("sales",))) for one in (EVE, ANN))
    found = []
    for is_busy in (False, True):
        with limited(tmp_path / str(is_busy), Fraction(allowed)) as engine:
            if is_busy:
                ask(engine, f"{DP}(half_width => 400) COUNT(*) FROM people WHERE member", ann)
            with pytest.raises(LimitReached) as caught:
                ask(engine, f"{DP}(half_width => 32) COUNT(*) FROM people", eve)
            found.append(MessageToDict(refusal_detail(caught.value)))
    assert found[0] == found[1]
    assert found[0]["shortfall"].keys() == {"table", "epsilonNeeded"}
    assert "sales" not in str(found)


def test_what_a_cap_of_ones_own_covers_is_told_as_to_who_asks_alone(tmp_path: Path) -> None:
    found = []
    for is_busy in (False, True):
        with world(tmp_path / str(is_busy), is_busy=is_busy) as engine:
            with pytest.raises(CostAboveCap) as caught:
                ask(engine, f"{DP}(half_width => 3, epsilon => 0.1) COUNT(*) FROM people", EVE)
            found.append(caught.value.shortfall)
    assert found[0] == found[1]
    assert found[0].epsilon_left == Fraction(1, 10)
    assert found[0].free is None
    assert found[0].fitting is not None


@contextmanager
def limited(folder: Path, allowed: Fraction) -> Iterator[Engine]:
    """People with a private history, and a limit of a group."""
    folder.mkdir()
    path = write_csv(folder / "people.csv", ROWS)
    with open_ledger(folder / "people.ledger") as ledger:
        rows = DuckDbSource(SCHEMA, SourceLocation(path=path))
        gate = open_table(ledger, SCHEMA, BUDGET, rows, NoNoise())
        change_limit(
            ledger,
            SCHEMA.table,
            LimitChange(subject="group:sales", epsilon=str(float(allowed))),
            by="olga",
        )
        yield Engine({SCHEMA.table: ServedTable(SCHEMA, DEFAULT, gate, sharing=Sharing.PRIVATE)})


@pytest.mark.parametrize(
    ("spent", "shown"), [("0", "0.2"), ("0.19", "0.2"), ("0.2", "0.4"), ("1.9", "2"), ("2", "2")]
)
def test_what_is_left_is_never_overstated(spent: str, shown: str) -> None:
    assert shown_spent(Fraction(2), Fraction(spent)) == Fraction(shown)


@contextmanager
def two_tables(folder: Path, *, is_busy: bool) -> Iterator[Engine]:
    """People, and people again under another name, with a limit for each analyst."""
    folder.mkdir()
    path = write_csv(folder / "people.csv", ROWS)
    other = path.with_name("other.csv")
    other.write_text(path.read_text() + "30,Oslo,True,3\n")
    tables = {}
    with open_ledger(folder / "both.ledger") as ledger:
        for schema, source in ((SCHEMA, path), (replace(SCHEMA, table="others"), other)):
            rows = DuckDbSource(schema, SourceLocation(path=source))
            gate = open_table(ledger, schema, BUDGET, rows, NoNoise())
            change = LimitChange(subject="each_analyst", epsilon="50", per_query="30")
            change_limit(ledger, schema.table, change, by="olga")
            tables[schema.table] = ServedTable(schema, DEFAULT, gate, sharing=Sharing.PRIVATE)
        engine = Engine(tables)
        for sql in ANN_ASKED if is_busy else ():
            engine.answer(QueryRequest(sql=sql, caller=replace(ANN, tables=("*",))))
        yield engine


def test_statements_of_two_tables_and_limits_tell_nothing_either(tmp_path: Path) -> None:
    eve = replace(EVE, tables=("*",))
    seen = []
    both = "(SELECT COUNT(*) FROM people WHERE member) - (SELECT COUNT(*) FROM others)"
    for is_busy in (False, True):
        with two_tables(tmp_path / str(is_busy), is_busy=is_busy) as engine:
            requests = [
                QueryRequest(sql=f"{options} {both} AS n", caller=eve)
                for options in ("EXPLAIN PRIVACY SELECT", "SELECT", f"{DP}(half_width => 4)")
            ]
            requests += [
                replace(requests[1], target=RequestedTarget(epsilon_cap=Fraction(cap)))
                for cap in ("0", "0.2", "1")
            ]
            found = [told(lambda one=one: _released(engine.answer(one))) for one in requests]  # type: ignore[misc]  # bound
            seen.append((found, engine.budgets(eve)))
    assert seen[0] == seen[1]
    (limit,) = seen[0][1][0].limits
    assert limit.spent == Fraction(5)
    assert limit.left == Fraction(45)


def _released(release: QueryResult) -> object:
    return (release.data.to_pylist(), str(release.receipt))


def test_an_interval_shown_is_never_narrower_than_the_true_one(tmp_path: Path) -> None:
    statements = (
        ANN_ASKED[0].replace("=> 5", "=> 50"),
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
        "SELECT AVG(visits) AS a FROM people",
        "SELECT COUNT(*) FILTER (WHERE member) / COUNT(*) AS share FROM people",
        f"{DP}(half_width => 90) 2 * SUM(visits) - COUNT(*) AS n FROM people",
    )
    with world(tmp_path / "w", is_busy=True) as engine:
        for sql in statements:
            widths = []
            for caller in (EVE, LOCAL):
                receipt = ask(engine, sql, caller).receipt
                assert receipt is not None
                (column,) = receipt.columns
                widths.append((column.low, column.high))
            (low, high), (own_low, own_high) = widths
            assert all(one <= own for one, own in zip(low, own_low, strict=True))
            assert all(one >= own for one, own in zip(high, own_high, strict=True))
