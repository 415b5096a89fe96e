"""A budget that renews, on a server whose ledger's clock is moved: refused, then there anew."""

from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.clock import ClockGuard
from cube.refusals import BudgetExhausted
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest
from proxy.bootstrap import Service, build
from proxy.config.settings import load

CONFIG = """
[ledger]
path = "a.ledger"
[budgets.people]
epsilon = "1"
renews = "{renews}"
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
LAST, FIRST = "2026-12-31T23:59:59.999+00:00", "2027-01-01T00:00:00.000+00:00"


def served(folder: Path, renews: str = "quarter") -> Service:
    for file in ("customers", "orders"):
        lines = [f"{customer},{(customer * len(file)) % 10}" for customer in range(200)]
        (folder / f"{file}.csv").write_text("customer,age\n" + "\n".join(lines) + "\n")
    (folder / "tacit.toml").write_text(CONFIG.format(renews=renews))
    return build(load(folder / "tacit.toml"))


def at(service: Service, moment: str) -> None:
    """Let it be this moment, whatever the ledger's last entry was."""
    service.ledger._clock = lambda: moment
    service.ledger._guard = _Believing()


class _Believing(ClockGuard):
    def stamp(self, now: str, last: str) -> str:
        return max(now, last)


def count(service: Service, table: str, half_width: float = 3.2) -> None:
    target = RequestedTarget(half_width=half_width)
    service.engine.answer(QueryRequest(sql=COUNT[table], caller=LOCAL, target=target))


def test_what_a_quarter_has_not_left_the_next_has(tmp_path: Path) -> None:
    service = served(tmp_path)
    try:
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
        spent = Fraction(service.ledger.history("orders").units_used_since(""), 2**40)
        assert Fraction(3, 2) < spent < 2
        entries = list(service.ledger.entries())
    finally:
        service.close()
    assert verify(entries).problem is None
