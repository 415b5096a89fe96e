"""A budget that renews, on servers whose ledger's clock is moved: refused, then there anew."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog

import tacit_client
from accountant.auditor.verify import verify
from accountant.ledger.clock import ClockGuard
from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.limits import Payer
from accountant.ledger.mending import correct_clock
from cube.refusals import BudgetExhausted
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, BudgetStatus, Caller, QueryRequest
from proxy.bootstrap import Service, build
from proxy.cli import app as cli
from proxy.config.settings import load
from proxy.monitoring.logs import configure_logs
from proxy.monitoring.metrics import Metrics
from proxy.reporting.html import to_html
from proxy.reporting.report import read_report
from proxy.reporting.tables import to_json
from tests.support.postgres_wire import postgres_serving
from tests.support.serving import serving

CONFIG = """
[ledger]
path = "a.ledger"
[budgets.people]
epsilon = "1"
renews = "quarter"
[tables.customers]
source = "customers.csv"
unit = "customer"
budget = "people"
n_records_max = 1000
half_width = 3.2
[tables.customers.columns.age]
kind = "integer"
low = 0
high = 9
[tables.orders]
source = "orders.csv"
unit = "customer"
budget = "people"
n_records_max = 1000
half_width = 3.2
[tables.orders.columns.age]
kind = "integer"
low = 0
high = 9
"""
COUNT = {
    "customers": "SELECT COUNT(*) AS n FROM customers",
    "orders": "SELECT COUNT(*) AS n FROM orders",
}
DEAR = {name: f"{sql} /*+ tacit(half_width=3.2) */" for name, sql in COUNT.items()}
LAST, FIRST = "2026-12-31T23:59:59.999+00:00", "2027-01-01T00:00:00.000+00:00"
ANN = Caller(Payer("ann"), Role.ANALYST, (EVERY_TABLE,))


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@contextmanager
def served(folder: Path, change: tuple[str, str] = ("", "")) -> Iterator[Service]:
    for file in ("customers", "orders"):
        lines = [f"{customer},{(customer * len(file)) % 10}" for customer in range(200)]
        (folder / f"{file}.csv").write_text("customer,age\n" + "\n".join(lines) + "\n")
    (folder / "tacit.toml").write_text(CONFIG.replace(*change))
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path) as service:
        yield service


class _Believing(ClockGuard):
    def stamp(self, now: str, last: str) -> str:
        return max(now, last)


def at(service: Service, moment: str) -> None:
    """Let it be this moment, whatever the ledger's last entry was."""
    service.ledger._clock = lambda: moment
    service.ledger._guard = _Believing()


def count(service: Service, table: str, half_width: float = 3.2) -> Any:
    target = RequestedTarget(half_width=half_width)
    request = QueryRequest(sql=COUNT[table], caller=LOCAL, target=target)
    return service.engine.answer(request)


def status(service: Service, table: str = "orders") -> BudgetStatus:
    return next(one for one in service.budgets() if one.table == table)


def renewed_once(service: Service) -> None:
    """One count in each of two quarters, each of which leaves too little for another."""
    at(service, LAST)
    count(service, "customers")
    at(service, FIRST)
    count(service, "orders")


def test_what_a_quarter_has_not_left_the_next_has(service: Service) -> None:
    at(service, LAST)
    count(service, "customers")
    with pytest.raises(BudgetExhausted) as refused:
        count(service, "orders")
    assert "The budget renews on 2027-01-01." in refused.value.explain()
    assert refused.value.shortfall.renews_on == "2027-01-01"
    with pytest.raises(BudgetExhausted) as never:
        count(service, "orders", 1.0)
    assert not never.value.shortfall.renews_on, "a whole quarter does not cover it"
    count(service, "customers")  # known
    at(service, FIRST)
    count(service, "orders")
    assert Fraction(3, 2) < Fraction(service.ledger.history("orders").units_used_since(""), 2**40)
    assert verify(service.ledger.entries()).problem is None


def test_clients_of_both_wires_are_refused_and_then_answered(service: Service) -> None:
    """An ADBC client and a PostgreSQL client, on a real server, over the turn of the year."""
    at(service, LAST)
    with (
        serving(service.engine) as address,
        tacit_client.connect(address) as flight,
        postgres_serving(service.engine) as wire,
    ):
        host, _, port = wire.partition(":")
        known = f"host={host} port={port} user=ann dbname=tacit sslmode=disable"
        with psycopg.connect(known, autocommit=True) as postgres:
            notices: list[str] = []
            postgres.add_notice_handler(lambda one: notices.append(one.message_primary or ""))
            postgres.execute("SET tacit.notices = on")
            first = flight.sql(DEAR["customers"])
            assert first.receipt is not None
            assert first.receipt.renewal is not None
            assert first.receipt.renewal.window == "quarter"
            assert "renews on 2027-01-01" in str(first)
            with pytest.raises(tacit_client.Refused) as refused:
                flight.sql(DEAR["orders"])
            assert refused.value.detail.renews_on == "2027-01-01"
            with pytest.raises(psycopg.Error) as by_postgres:
                postgres.execute(DEAR["orders"])
            assert "renews on 2027-01-01" in (by_postgres.value.diag.message_hint or "")
            at(service, FIRST)
            (row,) = postgres.execute(DEAR["orders"]).fetchall()
            assert isinstance(row[0], float | int)
            assert any("renews on 2027-04-01" in line for line in notices)
            (shown,) = (
                flight.sql("SELECT * FROM data_privacy.budgets WHERE table_name = 'orders'")
                .to_arrow()
                .to_pylist()
            )
            assert shown["window"] == "QUARTER"
            assert shown["spent"] < 1 < shown["spent_in_all"] == shown["spent_in_year"]
            assert shown["renews_at"].date().isoformat() == "2027-04-01"
            (left,) = (
                flight.sql(
                    "SELECT * FROM TABLE(data_privacy.estimate_remaining_dp_aggregates('orders'))"
                )
                .to_arrow()
                .to_pylist()
            )
            assert left["budget_window"] == "QUARTER"
            for form in ("TEXT", "JSON"):
                lines = postgres.execute(f"EXPLAIN (FORMAT {form}) {DEAR['orders']}").fetchall()
                assert "left this quarter; renews on 2027-04-01" in str(lines)


def test_the_command_line_says_the_sum_beside_the_allowance(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renewed_once(service)
    in_all = f"{float(2 * status(service).spent):.6g} spent in the last 12 months"
    with serving(service.engine) as address:
        for arguments in (
            ("budget",),
            ("explain", COUNT["orders"]),
            ("query", COUNT["orders"]),
        ):
            with pytest.raises(SystemExit):
                cli.main([*arguments, "--server", address])
            said = " ".join(capsys.readouterr().out.split())
            assert f"renews on 2027-04-01; {in_all}" in said, arguments
        with pytest.raises(SystemExit):
            cli.main(["query", COUNT["orders"], "--server", address, "--format", "json"])
        told = json.loads(capsys.readouterr().out)
        assert told["renewal"]["window"] == "quarter"
        assert told["renewal"]["epsilon_spent_in_all"] == float(2 * status(service).spent)
    with pytest.raises(SystemExit):
        cli.main(["audit", "verify", str(tmp_path / "a.ledger")])
    said = " ".join(capsys.readouterr().out.split())
    assert "Budget people: epsilon 1 a quarter, " in said
    assert f"; renews on 2027-04-01; {in_all}" in said
    assert "1 a quarter (people)" in said


def test_no_gauge_and_no_report_shows_several_windows_as_one(service: Service) -> None:
    renewed_once(service)
    spent = status(service).spent
    metrics = Metrics(("customers", "orders"))
    metrics.show_ledger(service.budgets(), n_entries=1, is_writable=True)
    values = {
        (one.name, one.labels.get("table", "")): one.value
        for family in metrics.registry.collect()
        for one in family.samples
    }
    assert values["tacit_epsilon_left", "orders"] == float(1 - spent) > 0
    assert values["tacit_epsilon_limit", "orders"] == 1
    assert values["tacit_epsilon_spent_in_all", "orders"] == float(2 * spent)
    entries = list(service.ledger.entries())
    report = read_report(entries, verify(entries, has_columns=True))
    for table in report.tables:
        assert table.renewing is not None
        assert table.left == 1 - spent
        assert (table.renewing.spent, table.renewing.spent_in_all) == (spent, 2 * spent)
    page = to_html(report, {}).decode()
    assert "Its budget renews every quarter" in page
    assert "next on 2027-04-01" in page
    assert "lowered below" not in page
    assert "none: it renews" in page
    (told, _) = json.loads(to_json(report, {}))["tables"]
    assert told["renewal"]["renews_on"] == "2027-04-01"


def test_a_restart_and_another_window_change_nothing_that_was_spent(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        renewed_once(service)
        before = status(service)
    with served(tmp_path) as service:
        assert status(service) == before
        verdict = verify(service.ledger.entries())
    assert verdict.problem is None
    with served(tmp_path, ('renews = "quarter"', "")) as service:
        assert status(service).renewal is None
        assert status(service).spent == 2 * before.spent
        assert status(service).left == 0
        with pytest.raises(BudgetExhausted) as refused:
            count(service, "orders", 3.0)
        assert not refused.value.shortfall.renews_on
        assert verify(service.ledger.entries()).problem is None


def test_a_clock_that_was_ahead_gives_no_quarter_twice(service: Service) -> None:
    renewed_once(service)
    at(service, "2026-12-01T00:00:00.000+00:00")
    correct_clock(service.ledger, by="owner")
    assert status(service).left == 0
    with pytest.raises(BudgetExhausted):
        count(service, "orders", 3.0)
    assert verify(service.ledger.entries()).problem is None


def test_what_others_spent_of_a_private_history_is_in_no_sum(tmp_path: Path) -> None:
    private = ("half_width = 3.2", 'half_width = 3.2\nhistory = "private"')
    with served(tmp_path, private) as service:
        at(service, LAST)
        count(service, "customers")
        for shown in service.engine.budgets(ANN):
            assert shown.renewal is not None
            assert shown.renewal.next_day == "2027-01-01"
            assert (shown.renewal.spent_in_year, shown.renewal.spent_in_all) == (None, None)
        target = RequestedTarget(half_width=1.0)
        request = QueryRequest(sql=COUNT["orders"], caller=ANN, target=target)
        with pytest.raises(BudgetExhausted) as refused:
            service.engine.answer(request)
        assert "renews" not in refused.value.explain()


def test_data_that_is_replaced_has_no_allowance_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A generation spends what the quarter has left; the next quarter is there for all of them."""
    with served(tmp_path) as service:
        count(service, "orders")
    customers = (tmp_path / "customers.csv").read_text()
    (tmp_path / "customers.csv").write_text(customers.replace("\n7,", "\n700,"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        cli.main(["table", "renew", "customers", "--by", "ann"])
    told = capsys.readouterr().out
    assert "left, for all generations together; renews on" in told
    service = build(load(tmp_path / "tacit.toml"))
    try:
        with pytest.raises(BudgetExhausted):
            count(service, "customers")
        at(service, FIRST)
        count(service, "customers")
        assert verify(service.ledger.entries()).problem is None
    finally:
        service.close()
