"""Where the history is private, nothing that anybody bought, of whatever kind, is seen by another.

For each kind of entry that a purchase may write there is a table where others bought it, and one
where nobody asked anything. Both are without noise, so that the numbers themselves are the same. An
analyst looks at every view, calls both services and the PostgreSQL wire, and is told the same.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import psycopg
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from accountant.gate.opening import open_table
from accountant.ledger.credentials import Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from proxy.admin.ledger_admin import LimitChange, change_limit
from proxy.api.marginals import MarginalSet, MarginalsRequest
from proxy.api.requests import LOCAL, BatchRequest, Caller, QueryRequest
from proxy.config.settings import load
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.engine.system_views import VIEW_SCHEMAS
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.sources.opening import Extracted, table_rows
from proxy.synthetic_tables.record import SYNTHETIC_VIEW
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from tests.proxy.wire.test_private_history import EverybodyIs, queried
from tests.support.customers import ORDERS, write_orders
from tests.support.fakes import NoNoise
from tests.support.postgres_wire import AnybodyLocal, postgres_serving
from tests.support.private_history import told
from tests.support.serving import serving

ANN, EVE = (Caller(Payer(name), Role.ANALYST, ("orders",)) for name in ("ann", "eve"))
BUDGET: Final = "2000"  # so large that all of this is within its first tenth
VIEW = "SELECT * FROM data_privacy."
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
UNITS = "SELECT COUNT(DISTINCT customer) AS n FROM orders WHERE channel = 'shop' AND hour >= 17"
CUT = "SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders"
BY_HOUR = f"{DP}(half_width => 8) channel, hour, COUNT(*) AS n FROM orders GROUP BY channel, hour"
SYNTHETIC = "CREATE SYNTHETIC TABLE made FROM orders WITH (epsilon => 4, rows => 100{more})"


def asks(*statements: str, caller: Caller = ANN) -> Callable[[Engine], None]:
    def ask(engine: Engine) -> None:
        for sql in statements:
            engine.answer(QueryRequest(sql=sql, caller=caller))

    return ask


def bought_together(engine: Engine) -> None:
    text = ("SELECT COUNT(*) FROM orders WHERE hour > 20", "SELECT SUM(hour) FROM orders")
    engine.plan_batch(BatchRequest(sql="; ".join(text), buy=True, caller=ANN))


def margins(engine: Engine) -> None:
    sets = (MarginalSet(("channel", "hour")),)
    list(engine.marginals(MarginalsRequest(table="orders", sets=sets, budget=Fraction(1)), LOCAL))


# What writes each kind of entry of a purchase, and a text that the ledger has then.
KINDS: Final[dict[str, tuple[Callable[[Engine], None], str]]] = {
    "rows": (asks("SELECT COUNT(*) FROM orders WHERE hour = 3"), '"blocks":[{'),
    "a raise": (
        asks(*(f"{DP}(half_width => {h}) COUNT(*) FROM orders" for h in (50, 9))),
        '"raised_from"',
    ),
    "Gaussian noise": (
        asks(SYNTHETIC.format(more=", delta => 1e-6"), "DROP SYNTHETIC TABLE made", caller=LOCAL),
        '"rho_units"',
    ),
    "units": (asks(UNITS), '"statistics":[{'),
    "units, raised": (
        asks(UNITS, UNITS.replace("SELECT", f"{DP}(half_width => 30)", 1)),
        '"statistics":[{',
    ),
    "units that were cut": (asks(CUT), '"only_cut"'),
    "distances": (
        asks(SYNTHETIC.format(more=""), "DROP SYNTHETIC TABLE made", caller=LOCAL),
        "charge",
    ),
    "choices": (
        asks(
            SYNTHETIC.format(more=", method => 'privbayes', degree => 1"),
            "DROP SYNTHETIC TABLE made",
            caller=LOCAL,
        ),
        '"candidates":',
    ),
    "an independence test": (
        asks("SELECT DP_CHI2_TEST(channel, hour) FROM orders"),
        '"blocks":[{',
    ),
    "a batch": (bought_together, '"blocks":[{'),
    "marginals": (margins, '"blocks":[{'),
}
# What Eve sends; nothing of it was asked before, or all of it was.
ALONE: Final = (
    *(VIEW + view for view in (*VIEW_SCHEMAS, SYNTHETIC_VIEW)),
    "SELECT * FROM estimate_remaining_dp_aggregates('orders')",
    "SELECT COUNT(*) AS n, SUM(n_rows) AS rows, MAX(epsilon) AS e FROM data_privacy.history",
    "SELECT query FROM data_privacy.history WHERE columns LIKE '%hour%'",
    "SELECT relname, relkind FROM pg_catalog.pg_class ORDER BY 1",
    "SELECT table_name FROM information_schema.tables ORDER BY 1",
    *(
        f"EXPLAIN{form} {sql}"
        for form in (" PRIVACY", "")
        for sql in (UNITS, CUT, BY_HOUR, "SELECT AVG(hour) FROM orders WHERE hour > 20")
    ),
    "EXPLAIN PRIVACY " + SYNTHETIC.format(more=""),
    SYNTHETIC.format(more=""),
    UNITS.replace("SELECT", f"{DP}(epsilon => 0)", 1),
    CUT.replace("SELECT", f"{DP}(epsilon => 0)", 1),
    f"{DP}(epsilon => 0) COUNT(*) FROM orders WHERE hour = 3",
    f"{DP}(half_width => 0.0001) COUNT(DISTINCT customer) AS n FROM orders",
    f"{DP}(half_width => 0.0001, fallback => 'history') COUNT(DISTINCT customer) AS n FROM orders",
    f"{DP}(half_width => 0.0001, fallback => 'model') COUNT(*) AS n FROM orders",
    "SELECT * FROM orders",
    "SELECT * FROM made",
    "DROP SYNTHETIC TABLE made",
)
ANSWERED: Final = (
    UNITS,
    (
        f"{DP}(half_width => 90) COUNT(DISTINCT customer) AS v, DP_COST(v) AS c, "
        "DP_STDERR(v) AS e, DP_SOURCE(v) AS s, DP_INTERVAL_LOW(v) AS low "
        "FROM orders WHERE channel = 'shop'"
    ),
    CUT,
    "SELECT channel, COUNT(DISTINCT customer) AS n FROM orders GROUP BY channel",
    "SELECT COUNT(*) AS n FROM orders WHERE hour = 3",
    "SELECT SUM(hour) AS s, DP_COST(s) AS c FROM orders",
)


@contextmanager
def orders(folder: Path, sharing: Sharing) -> Iterator[tuple[Engine, Ledger]]:
    """Orders of customers, with noise of 0, and limits of everybody."""
    folder.mkdir()
    write_orders(folder)
    first, *lines = (folder / "orders.csv").read_text().splitlines()
    lines = [f"{line},{int(line[-1]) % 3 == 0}" for line in lines]
    (folder / "orders.csv").write_text("\n".join([f"{first},gift", *lines]) + "\n")
    text = ORDERS.format(more="delta = 1e-6", budget=BUDGET, history=sharing, rows_max=4)
    (folder / "tacit.toml").write_text(f'{text}[tables.orders.columns.gift]\nkind = "boolean"\n')
    (table,) = load(folder / "tacit.toml").tables
    with open_ledger(folder / "orders.ledger") as ledger:
        rows = table_rows(table.schema, table.location, ledger.key, None, "", Extracted.OPENED)
        gate = open_table(ledger, table.schema, table.funds, rows, NoNoise())
        change_limit(
            ledger, "orders", LimitChange(subject="each_analyst", epsilon="900"), by="olga"
        )
        served = ServedTable(
            table.schema,
            table.default,
            gate,
            table.strategy,
            gaussian=table.gaussian,
            sharing=table.sharing,
        )
        yield Engine({"orders": served}, store=SyntheticStore(folder / "made")), ledger


class EverybodyIsByPassword(AnybodyLocal):
    """The same on the PostgreSQL wire."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def identify(self, presented: object) -> Caller:  # noqa: ARG002 - the protocol names it
        return self._caller


def by_postgres(connection: psycopg.Connection[tuple[object, ...]], sql: str) -> object:
    """The rows, and every notice."""
    notices: list[str | None] = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    try:
        return connection.execute(sql).fetchall(), notices
    except psycopg.Error as error:
        return error.sqlstate, str(error), error.diag.message_hint, notices


def as_dict(method: Callable[[Any], Message], request: Message) -> object:
    found = MessageToDict(method(request))
    found.pop("pValue", None)  # docs/threat_model.md, "Chance": it says how noisy the counts are
    return found


def calls_of(stub: TacitStub) -> Iterator[Callable[[], object]]:
    """The methods that are about what was bought, in the form in which Eve calls them."""
    yield lambda: MessageToDict(stub.ListTables(tacit_pb2.ListTablesRequest()))
    yield lambda: MessageToDict(stub.GetBudget(tacit_pb2.GetBudgetRequest()))
    yield lambda: MessageToDict(stub.ListLimits(tacit_pb2.ListLimitsRequest(table="orders")))
    yield lambda: MessageToDict(stub.ListSynthetic(tacit_pb2.ListSyntheticRequest()))
    yield lambda: [
        MessageToDict(one) for one in stub.Marginals(tacit_pb2.MarginalsRequest(table="orders"))
    ]
    yield lambda: [MessageToDict(one) for one in stub.AuditReport(tacit_pb2.AuditReportRequest())]
    made = tacit_pb2.CreateSyntheticRequest(table="orders", name="made")
    yield lambda: MessageToDict(stub.PreviewSynthetic(made))
    yield lambda: [MessageToDict(one) for one in stub.CreateSynthetic(made)]
    test = tacit_pb2.TestIndependenceRequest(table="orders", x="channel", y="hour")
    yield partial(as_dict, stub.TestIndependence, test)
    for sql in (UNITS, CUT, BY_HOUR):
        yield partial(as_dict, stub.Explain, tacit_pb2.ExplainRequest(sql=sql))
        yield partial(as_dict, stub.Plan, tacit_pb2.PlanRequest(sql=f"{sql}; {UNITS}"))
    prior = [tacit_pb2.PriorPoint(value=k, probability=0.001) for k in range(1000)]
    best = tacit_pb2.BestReportRequest(sql=UNITS, prior=prior, loss="squared")
    yield lambda: MessageToDict(stub.BestReport(best))


def everything_seen(engine: Engine) -> list[object]:
    """What Eve is told, first without asking for an answer, then in answers."""
    with (
        serving(engine, authenticator=EverybodyIs(EVE), synthetic=engine.synthetic) as address,
        grpc.insecure_channel(address) as channel,
        postgres_serving(engine, EverybodyIsByPassword(EVE)) as postgres,
        psycopg.connect(f"postgresql://eve@{postgres}/tacit", autocommit=True) as connection,
    ):
        stub = TacitStub(channel)
        seen: list[object] = [told(partial(queried, stub, sql)) for sql in ALONE]
        seen += [told(partial(by_postgres, connection, sql)) for sql in ALONE]
        seen += [told(call) for call in calls_of(stub)]
        seen += [told(partial(queried, stub, sql)) for sql in ANSWERED]
        seen += [told(partial(by_postgres, connection, sql)) for sql in ANSWERED]
        seen += [told(partial(queried, stub, sql)) for sql in ALONE]
    return seen


def seen_after(folder: Path, kind: str, sharing: Sharing = Sharing.PRIVATE) -> list[object]:
    buy, marker = KINDS[kind] if kind else (lambda _: None, "")
    with orders(folder, sharing) as (engine, ledger):
        buy(engine)
        assert any(marker in entry.body for entry in ledger.entries())
        return everything_seen(engine)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    return seen_after(tmp_path_factory.mktemp("quiet") / "w", "")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_purchase_of_any_kind_is_seen_by_its_buyer_alone(
    kind: str, quiet: list[object], tmp_path: Path
) -> None:
    busy = seen_after(tmp_path / "busy", kind)
    assert [two for one, two in zip(quiet, busy, strict=True) if one != two] == []


def seen_in_views(engine: Engine) -> dict[str, int]:
    """How many rows each view about the past has for Eve."""
    views = ("history", "losses", SYNTHETIC_VIEW)
    return {
        view: engine.answer(QueryRequest(sql=VIEW + view, caller=EVE)).data.num_rows
        for view in views
    }


@pytest.mark.parametrize("sharing", Sharing)
def test_counts_of_units_are_history_as_rows_are(sharing: Sharing, tmp_path: Path) -> None:
    with orders(tmp_path / "w", sharing) as (engine, _):
        asks(UNITS, CUT, "SELECT COUNT(*) FROM orders WHERE hour = 3")(engine)
        n_seen = 0 if sharing is Sharing.PRIVATE else 3
        assert seen_in_views(engine) == {"history": n_seen, "losses": 0, SYNTHETIC_VIEW: 0}
