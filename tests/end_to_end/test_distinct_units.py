"""COUNT(DISTINCT unit) where a unit has several rows: what is answered, and for how much."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from tests.support.configured import ask, spent
from tests.support.customers import (
    ALL,
    BY_CHANNEL,
    CHANNELS,
    N_CUSTOMERS,
    N_ROWS_MAX,
    NATS,
    SURE,
    orders,
    served,
    truth,
    write_orders,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_orders(tmp_path)
    return tmp_path


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
