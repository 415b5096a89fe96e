"""COUNT(DISTINCT unit) on a table that grows: what was counted up to one horizon stays true."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from cube.refusals import InvalidRequest
from planner.workload import RequestedTarget
from tests.end_to_end import test_growing as growing
from tests.end_to_end.test_growing import Order, ask, counts, kept, orders, served
from tests.support.audited import assert_not_opened, problem_with, to

SEPTEMBER, OCTOBER = dt.date(2026, 9, 30), dt.date(2026, 10, 20)
BY_CITY = "SELECT city, COUNT(DISTINCT customer) AS n FROM orders {} GROUP BY city"
folder = growing.folder


def people(rows: Sequence[Order]) -> dict[str, int]:
    """How many customers there are of each city."""
    found = defaultdict(set)
    for customer, _, city in rows:
        found[city].add(customer)
    return {city: len(found[city]) for city in ("Oslo", "Bergen")}


def test_customers_are_counted_up_to_the_horizon(folder: Path) -> None:
    """What was counted up to September is asked again for nothing, by saying so."""
    rows = orders(growing.N_DAYS)
    with served(folder) as service:
        found = ask(service, BY_CITY.format(""))
        assert counts(found.data) == people(kept(rows, SEPTEMBER))
        again = ask(service, BY_CITY.format(""))
        assert again.data.equals(found.data)
        assert again.receipt is not None
        assert again.receipt.epsilon_spent == 0
        assert service.engine._tables["orders"].gate.advance(50, "owner")
        later = ask(service, BY_CITY.format(""))
        assert counts(later.data) == people(kept(rows, OCTOBER))
        assert people(kept(rows, OCTOBER)) != people(kept(rows, SEPTEMBER))
    with served(folder) as service:
        then = ask(service, BY_CITY.format("WHERE day <= '2026-09-30'"))
        assert then.data.equals(found.data)
        assert then.receipt is not None
        assert then.receipt.epsilon_spent == 0
        assert verify(service.ledger.entries()).problem is None


def test_a_count_of_earlier_days_is_raised_after_the_horizon_moved(folder: Path) -> None:
    """Its noise is found again: the customers of September are the same."""
    rows = orders(growing.N_DAYS)
    with served(folder) as service:
        ask(service, BY_CITY.format(""), RequestedTarget(half_width=20))
        gate = service.engine._tables["orders"].gate
        assert gate.advance(50, "owner")
        narrow = ask(service, BY_CITY.format("WHERE day < '2026-10-01'"))
        assert counts(narrow.data) == people(kept(rows, SEPTEMBER))
        assert [one.supersedes for one in gate.history.unit_counts.measurements] == [None, 0]


def test_bounded_rows_of_earlier_days_are_raised_after_the_horizon_moved(folder: Path) -> None:
    """A customer counts with at most two orders of these days, whatever they order later."""
    rows = kept(orders(growing.N_DAYS), SEPTEMBER)
    truth = sum(min(2, one) for one in Counter(customer for customer, _, _ in rows).values())
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rows_per_unit => 2) COUNT(*) AS n FROM orders"
    with served(folder) as service:
        ask(service, sql, RequestedTarget(half_width=20))
        gate = service.engine._tables["orders"].gate
        assert gate.advance(50, "owner")
        then = ask(service, f"{sql} WHERE day < '2026-10-01'")
        assert [round(row["n"]) for row in then.data.to_pylist()] == [truth]
        assert [one.supersedes for one in gate.history.unit_counts.measurements] == [None, 0]
        assert verify(service.ledger.entries()).problem is None


def test_who_had_rows_left_out_is_not_counted_while_a_table_grows(folder: Path) -> None:
    """It changes with later rows."""
    sql = "SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)) AS n FROM orders"
    with served(folder) as service:
        with pytest.raises(InvalidRequest, match="grows"):
            ask(service, sql)
        (budget,) = service.budgets()
        assert budget.spent == 0


def test_the_auditor_convicts_a_count_of_customers_beyond_the_horizon(folder: Path) -> None:
    everybody = {"constant": "0", "terms": [{"factors": [], "scale": "1"}]}
    with served(folder) as service:
        ask(service, "SELECT COUNT(DISTINCT customer) AS n FROM orders")
        entries = tuple(service.ledger.entries())
    (charge,) = (entry.seq for entry in entries if entry.kind == "charge")
    beyond = to(everybody, "statistics", 0, "block")
    assert "beyond the 30 readable levels" in problem_with(entries, charge, beyond)
    assert_not_opened(entries, charge, beyond)
    cut = to(True, "statistics", 0, "only_cut")
    assert "rows left out" in problem_with(entries, charge, cut)
    assert_not_opened(entries, charge, cut)


@pytest.mark.parametrize("has_rows", [False, True])
def test_accepted_changes_forget_what_was_counted_and_keep_what_it_cost(
    folder: Path, *, has_rows: bool
) -> None:
    """A raise would find other noise than there was: customers are counted anew, and paid anew."""
    rows = orders(growing.N_DAYS)
    narrow = RequestedTarget(half_width=5)
    with served(folder) as service:
        ask(service, BY_CITY.format(""), narrow)
        if has_rows:
            ask(service, growing.BY_CITY, narrow)
        before = service.budgets()[0].spent
    late = [*rows, *((growing.N_UNITS + one, dt.date(2026, 9, 12), "Oslo") for one in range(9))]
    growing.write(folder, late)
    config = str(folder / "tacit.toml")
    accept = ("accept-changes", "orders", "--period", "2026-09", "--config", config)
    assert growing.tacit("table", *accept) == 0
    with served(folder) as service:
        assert service.budgets()[0].spent >= before
        found = ask(service, BY_CITY.format(""))
        right = people(kept(rows, SEPTEMBER))
        assert counts(found.data) == {**right, "Oslo": right["Oslo"] + 9}
        known = service.engine._tables["orders"].gate.history.unit_counts
        assert [one.supersedes for one in known.measurements] == [None, None]
        assert service.budgets()[0].spent > before
        assert verify(service.ledger.entries()).problem is None
        again = ask(service, BY_CITY.format(""))
        assert again.data.equals(found.data)
