"""COUNT(DISTINCT unit) where a unit has several rows: from SQL to the audit."""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.refusals import (
    BudgetExhausted,
    ConfigurationInvalid,
    InvalidRequest,
    Refused,
    UnknownName,
    UnsupportedSql,
)
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, BatchRequest, Caller, QueryRequest, QueryResult
from proxy.bootstrap import Service, build
from proxy.config.settings import load
from tests.support.commands import command_runner

N_CUSTOMERS, N_ROWS_MAX = 1_500, 4
NATS = np.log(20)  # at confidence .95, of a Laplace answer: its half-width times its weight
ORDERS = """[ledger]
path = "orders.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = {rows_max}
{more}
budget = "{budget}"
n_records_max = 20000
half_width = 100
history = "{history}"
[tables.orders.columns.channel]
kind = "category"
levels = ["web", "shop", "phone"]
[tables.orders.columns.hour]
kind = "integer"
low = 0
high = 23
"""
CHANNELS = ("web", "shop", "phone")
ALL = "SELECT COUNT(DISTINCT customer) AS n FROM orders"
BY_CHANNEL = "SELECT channel, COUNT(DISTINCT customer) AS n FROM orders GROUP BY channel"


def orders() -> list[tuple[int, str, int]]:
    """Up to four orders of each customer: none is left out."""
    rng = np.random.default_rng(4)
    return [
        (customer, CHANNELS[rng.integers(3)], int(rng.integers(24)))
        for customer in range(N_CUSTOMERS)
        for _ in range(rng.integers(1, N_ROWS_MAX + 1))
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"{customer},{channel},{hour}" for customer, channel, hour in orders()]
    (tmp_path / "orders.csv").write_text("\n".join(["customer,channel,hour", *lines]) + "\n")
    return tmp_path


@contextmanager
def served(
    folder: Path,
    *,
    more: str = "",
    budget: str = "100",
    history: str = "shared",
    rows_max: int = N_ROWS_MAX,
) -> Iterator[Service]:
    text = ORDERS.format(more=more, budget=budget, history=history, rows_max=rows_max)
    (folder / "tacit.toml").write_text(text)
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


def answer(service: Service, sql: str, half_width: float | None = None) -> QueryResult:
    target = RequestedTarget(half_width=half_width)
    return service.engine.answer(QueryRequest(sql=sql, caller=LOCAL, target=target))


def ask(service: Service, sql: str, half_width: float | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer(service, sql, half_width).data.to_pylist()
    return found


def spent(service: Service) -> float:
    (budget,) = service.budgets()
    return float(budget.spent)


def truth(*, late: bool = False) -> dict[str, int]:
    """How many customers have an order of each channel; perhaps of those from noon on."""
    found = defaultdict(set)
    for customer, channel, hour in orders():
        if hour >= 12 or not late:
            found[channel].add(customer)
    return {channel: len(found[channel]) for channel in CHANNELS}


ANN = Caller(Payer("ann"), Role.ANALYST, ("orders",))
SURE = float(np.log(1e7) / NATS)  # times a half-width: right answers are beyond once in 10 million


def test_the_customers_of_a_table_are_counted_and_counted_again_for_nothing(folder: Path) -> None:
    """One customer adds one, whatever it ordered: the price of a count where rows are units."""
    with served(folder) as service:
        (first,) = ask(service, ALL)
        assert spent(service) == pytest.approx(NATS / 100, rel=1e-4)
        assert abs(first["n"] - N_CUSTOMERS) < 100 * SURE
        assert ask(service, ALL) == [first]
        assert ask(service, ALL, half_width=150) == [first]
        assert spent(service) == pytest.approx(NATS / 100, rel=1e-4)


def test_a_narrower_target_costs_the_difference_also_after_a_restart(folder: Path) -> None:
    with served(folder) as service:
        ask(service, ALL)
    with served(folder) as service:
        (found,) = ask(service, ALL, half_width=5)
        assert spent(service) == pytest.approx(NATS / 5, rel=0.01)
        assert abs(found["n"] - N_CUSTOMERS) < 5 * SURE
        assert ask(service, ALL) == [found]
        (_, raised) = service.engine._tables["orders"].gate.history.unit_counts.measurements
        assert raised.supersedes == 0


@pytest.mark.parametrize(("more", "reach"), [("", 3), ("groups_per_unit_max = 2", 2)])
def test_a_customer_counts_in_as_many_groups_as_are_paid_for(
    folder: Path, more: str, reach: int
) -> None:
    with served(folder, more=more) as service:
        found = {row["channel"]: row["n"] for row in ask(service, BY_CHANNEL, half_width=5)}
        assert spent(service) == pytest.approx(reach * NATS / 5, rel=1e-4)
    if reach == len(CHANNELS):
        assert all(abs(found[name] - n) < 5 * SURE for name, n in truth().items())
    else:  # in the most two of the channels that they ordered by
        groups = defaultdict(set)
        for customer, channel, _ in orders():
            groups[customer].add(channel)
        kept = sum(min(2, len(channels)) for channels in groups.values())
        assert abs(sum(found.values()) - kept) < 3 * 5 * SURE
        assert sum(truth().values()) > kept + 200


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT channel, COUNT(DISTINCT customer) AS n {late} GROUP BY channel",
        "SELECT channel, COUNT(DISTINCT customer) FILTER (WHERE hour >= 12) AS n {all}",
        "SELECT channel, COUNT(DISTINCT CASE WHEN hour >= 12 THEN customer END) AS n {all}",
        "SELECT o.channel, COUNT(DISTINCT o.Customer) AS n {renamed}",
        "SELECT channel, APPROX_COUNT_DISTINCT(customer) AS n {late} GROUP BY 1",
        "SELECT * FROM (SELECT channel, COUNT(DISTINCT customer) AS n {late} {by}) AS t",
    ],
)
def test_customers_under_a_condition(folder: Path, sql: str) -> None:
    late, every = "FROM orders WHERE hour >= 12", "FROM orders GROUP BY channel"
    renamed = "FROM orders AS o WHERE o.hour >= 12 GROUP BY ALL"
    sql = sql.format(late=late, all=every, by="GROUP BY channel", renamed=renamed)
    with served(folder) as service:
        found = {row["channel"]: row["n"] for row in ask(service, sql, half_width=10)}
        assert spent(service) == pytest.approx(3 * NATS / 10, rel=1e-4)
    assert all(abs(found[name] - n) < 10 * SURE for name, n in truth(late=True).items())


def test_counts_of_rows_and_of_customers_in_one_statement_are_one_charge(folder: Path) -> None:
    """The price is the sum: a customer pays for the rows that they have, and for their groups."""
    sql = (
        "SELECT channel, COUNT(*) AS rows, COUNT(DISTINCT customer) AS n, "
        "DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high FROM orders GROUP BY channel "
        "HAVING COUNT(DISTINCT customer) > 10 ORDER BY n DESC"
    )
    with served(folder) as service:
        found = ask(service, sql)
        assert spent(service) == pytest.approx((N_ROWS_MAX + 3) * NATS / 100, rel=0.01)
        (payment,) = service.engine._tables["orders"].gate.payments()
        assert (len(payment.charge.blocks), len(payment.charge.statistics)) == (1, 1)
        assert [row["n"] for row in found] == sorted((row["n"] for row in found), reverse=True)
        for row in found:
            assert row["high"] - row["n"] == pytest.approx(100, rel=1e-3)
            assert row["n"] - row["low"] == pytest.approx(100, rel=1e-3)
        assert ask(service, sql) == found
        verdict = verify(service.ledger.entries())
        (table,) = verdict.tables
        assert verdict.problem is None
        assert table.recomputed == table.spent
        assert float(table.unit_counts) == pytest.approx(3 * NATS / 100, rel=1e-4)


PER_CUSTOMER = (
    "SELECT COUNT(*) / COUNT(DISTINCT customer) AS n, DP_INTERVAL_LOW(n) AS low, "
    "DP_INTERVAL_HIGH(n) AS high FROM orders"
)


def test_orders_of_each_customer_have_an_interval(folder: Path) -> None:
    """As wide as two independent noises make it; to a first order, their variances add up."""
    right = len(orders()) / N_CUSTOMERS
    with served(folder) as service:
        (found,) = ask(service, PER_CUSTOMER)
        assert found["low"] < found["n"] < found["high"]
        assert ask(service, PER_CUSTOMER) == [found]
        narrow = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width=0.02) {PER_CUSTOMER[7:]}"
        (found,) = ask(service, narrow)
        width = (found["high"] - found["low"]) / 2
        assert abs(found["n"] - right) < 3 * width
        assert width <= 0.02
        (row,) = service.engine._tables["orders"].gate.measurements()[-1:]
        (count,) = service.engine._tables["orders"].gate.history.unit_counts.measurements[-1:]
        deviation = np.hypot(row.deviation, right * count.deviation) / N_CUSTOMERS
        assert width == pytest.approx(NATS / np.sqrt(2) * deviation, rel=0.15)
        assert verify(service.ledger.entries()).problem is None


def test_a_share_of_customers_by_group_has_an_interval(folder: Path) -> None:
    sql = (
        "SELECT channel, 100.0 * COUNT(DISTINCT customer) FILTER (WHERE hour >= 12) "
        "/ COUNT(DISTINCT customer) AS late, DP_STDERR(late) AS error FROM orders GROUP BY channel"
    )
    with served(folder) as service:
        for row in ask(service, sql, half_width=3):
            right = 100 * truth(late=True)[row["channel"]] / truth()[row["channel"]]
            assert abs(row["late"] - right) < 8 * row["error"] < 30


def test_keys_with_more_groups_than_a_customer_has_orders_cost_its_orders(folder: Path) -> None:
    sql = "SELECT hour, COUNT(DISTINCT customer) AS n FROM orders GROUP BY hour"
    with served(folder) as service:
        assert len(ask(service, sql)) == 24
        assert spent(service) == pytest.approx(N_ROWS_MAX * NATS / 100, rel=1e-4)


def test_what_no_cell_satisfies_is_free(folder: Path) -> None:
    with served(folder) as service:
        assert ask(service, f"{ALL} WHERE hour > 99") == [{"n": 0.0}]
        assert spent(service) == 0


def test_explain_says_what_it_would_cost_and_charges_nothing(folder: Path) -> None:
    with served(folder) as service:
        (row,) = ask(service, f"EXPLAIN PRIVACY {BY_CHANNEL}")
        assert (row["candidate"], row["source"]) == ("units", "measured")
        assert row["epsilon"] == pytest.approx(3 * NATS / 100, rel=1e-4)
        assert spent(service) == 0
        ask(service, BY_CHANNEL)
        assert spent(service) == pytest.approx(row["epsilon"])
        (row,) = ask(service, f"EXPLAIN PRIVACY {BY_CHANNEL}")
        assert (row["candidate"], row["source"], row["epsilon"]) == (None, "history", 0.0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders",
        "SELECT COUNT(DISTINCT CASE WHEN WAS_CUT(customer) THEN customer END) AS n FROM orders",
        "SELECT COUNT(DISTINCT CASE WHEN was_cut(customer) THEN customer END) n FROM orders o",
        "SELECT COUNT(DISTINCT CASE WHEN hour > -1 AND was_cut(customer) THEN customer END) n {}",
    ],
)
def test_how_many_customers_had_orders_left_out_is_a_count_like_any_other(
    folder: Path, sql: str
) -> None:
    with served(folder, rows_max=2) as service:
        n_orders = Counter(customer for customer, _, _ in orders())
        n_cut = sum(n > 2 for n in n_orders.values())
        (row,) = ask(service, sql.format("FROM orders"), half_width=10)
        assert spent(service) == pytest.approx(NATS / 10, rel=1e-4)
        assert abs(row["n"] - n_cut) < 10 * SURE
        assert 200 < n_cut < 1200
        (every,) = ask(service, ALL, half_width=10)
        assert abs(every["n"] - N_CUSTOMERS) < 10 * SURE
        assert spent(service) == pytest.approx(2 * NATS / 10, rel=1e-4)
        assert verify(service.ledger.entries()).problem is None


def test_rows_are_not_told_by_whether_others_were_left_out(folder: Path) -> None:
    with served(folder) as service:
        for sql in (
            "SELECT COUNT(*) AS n FROM orders WHERE WAS_CUT(customer)",
            "SELECT COUNT(*) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders",
            "SELECT COUNT(DISTINCT customer) FILTER (WHERE NOT WAS_CUT(customer)) FROM orders",
            "SELECT COUNT(DISTINCT customer) AS n FROM orders WHERE WAS_CUT(customer)",
        ):
            with pytest.raises(Refused):
                ask(service, sql)
        assert spent(service) == 0


def test_a_relative_target_is_searched_for(folder: Path) -> None:
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(relative=0.05) {ALL[7:]}"
    with served(folder) as service:
        (row,) = ask(service, sql)
        assert abs(row["n"] - N_CUSTOMERS) < 0.05 * N_CUSTOMERS * 1.2 * SURE
        assert spent(service) < 2.5 * NATS / (0.05 * N_CUSTOMERS)
        price = spent(service)
        assert ask(service, sql) == [row]
        assert spent(service) == price


def test_the_views_show_what_was_counted(folder: Path) -> None:
    with served(folder) as service:
        ask(service, BY_CHANNEL)
        ask(service, "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel")
        ask(service, f"{ALL.replace('AS n', 'FILTER (WHERE WAS_CUT(customer)) AS n')}")
        rows = ask(service, "SELECT query, n_rows FROM data_privacy.history ORDER BY query")
        assert rows == [
            {"query": "COUNT(*) GROUP BY channel", "n_rows": 3},
            {"query": "COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer))", "n_rows": 1},
            {"query": "COUNT(DISTINCT customer) GROUP BY channel", "n_rows": 3},
        ]


def test_the_report_says_what_they_cost_and_what_they_were(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(folder) as service:
        ask(service, BY_CHANNEL)
        ask(service, f"{ALL} WHERE hour < 12 OR channel = 'web'")
    run = command_runner(capsys, monkeypatch)
    ledger, written = folder / "orders.ledger", folder / "report.json"
    made = run("audit", "report", ledger, "--output", written)
    assert made.code == 0, made.err
    (table,) = json.loads(written.read_text())["tables"]
    assert float(Fraction(table["spent_on_unit_counts"])) == pytest.approx(4 * NATS / 100, rel=1e-4)
    bought = [one["bought"] for one in table["dearest_charges"]]
    assert bought[0] == "COUNT(DISTINCT customer) GROUP BY channel"
    assert bought[1].startswith("COUNT(DISTINCT customer) WHERE")
    assert "for counts of units" in run("audit", "verify", ledger).out


def test_it_is_refused_before_it_is_charged_if_it_does_not_fit(folder: Path) -> None:
    """Also where the rows beside it would fit by themselves."""
    with served(folder, budget="0.15") as service:
        sql = BY_CHANNEL.replace("AS n", "AS n, COUNT(*) AS m")
        with pytest.raises(BudgetExhausted) as refused:
            ask(service, sql)
        assert float(refused.value.shortfall.epsilon_needed) == pytest.approx(
            7 * NATS / 100, rel=0.01
        )
        assert refused.value.shortfall.fitting is not None
        assert spent(service) == 0


def test_a_private_history_shows_what_a_first_statement_costs(folder: Path) -> None:
    with served(folder, history="private") as service:
        for _ in range(2):
            found = service.engine.answer(QueryRequest(sql=BY_CHANNEL, caller=ANN))
            assert found.receipt is not None
            assert float(found.receipt.epsilon_spent) == pytest.approx(3 * NATS / 100, rel=1e-4)


def test_who_ask_the_same_at_once_pay_for_it_once(folder: Path) -> None:
    with served(folder) as service:
        failures: list[BaseException] = []

        def one() -> None:
            try:
                ask(service, BY_CHANNEL)
            except BaseException as failure:  # noqa: BLE001 - shown below
                failures.append(failure)

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert spent(service) == pytest.approx(3 * NATS / 100, rel=1e-4)


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("SELECT COUNT(DISTINCT nobody) AS n FROM orders", UnknownName),
        ("SELECT customer FROM orders GROUP BY customer", UnknownName),
        ("SELECT SUM(COUNT(DISTINCT customer)) AS n FROM orders", UnsupportedSql),
        ("SELECT COUNT(DISTINCT CASE channel WHEN 'web' THEN customer END) FROM orders", Refused),
    ],
)
def test_other_uses_of_the_unit_are_refused(folder: Path, sql: str, refusal: type[Refused]) -> None:
    with served(folder) as service:
        with pytest.raises(refusal):
            ask(service, sql)
        assert spent(service) == 0


def test_a_batch_does_not_plan_them(folder: Path) -> None:
    with served(folder) as service:
        request = BatchRequest(sql=f"{ALL}; {BY_CHANNEL}", buy=True)
        with pytest.raises(InvalidRequest, match="batch"):
            service.engine.plan_batch(request)
        assert spent(service) == 0


def test_the_bound_on_groups_is_for_units_with_several_rows(folder: Path) -> None:
    with (
        pytest.raises(ConfigurationInvalid, match="groups_per_unit_max"),
        served(folder, more="groups_per_unit_max = 5"),
    ):
        pass


def test_another_bound_on_groups_is_another_question(folder: Path) -> None:
    """The owner may change it: what was counted with the former one is not raised, nor shown."""
    with served(folder) as service:
        ask(service, BY_CHANNEL)
    with served(folder, more="groups_per_unit_max = 1") as service:
        ask(service, BY_CHANNEL)
        assert spent(service) == pytest.approx(4 * NATS / 100, rel=1e-4)
        ask(service, ALL)
        assert spent(service) == pytest.approx(5 * NATS / 100, rel=1e-4)
        assert verify(service.ledger.entries()).problem is None


def test_rows_bounded_at_each_level_cost_less_and_counts_of_customers_the_same(
    folder: Path,
) -> None:
    """One order an hour: a count of an hour's orders costs what one of its customers does."""
    with served(folder, more="rows_per_unit_max_by = {hour = 1}") as service:
        found = ask(service, "SELECT COUNT(DISTINCT customer) AS n, COUNT(*) AS m FROM orders")
        assert len(found) == 1
        assert spent(service) == pytest.approx((1 + N_ROWS_MAX) * NATS / 100, rel=0.01)
        by_hour = {(customer, hour) for customer, _, hour in orders()}
        n_orders = Counter(customer for customer, _, _ in orders())
        n_cut = sum(
            n > sum(one == customer for one, _ in by_hour) for customer, n in n_orders.items()
        )
        cut = "SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders"
        assert abs(ask(service, cut, half_width=5)[0]["n"] - n_cut) < 5 * SURE
        assert n_cut > 50
        verdict = verify(service.ledger.entries())
        (table,) = verdict.tables
        assert verdict.problem is None
        assert table.recomputed <= table.spent
