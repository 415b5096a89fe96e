"""Orders of customers, from the configuration to the audit: every cost is that of a unit."""

from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.cost import history_cost, summed_costs
from cube.refusals import LedgerMismatch
from planner.workload import RequestedTarget
from proxy.api.marginals import MarginalSet, MarginalsRequest
from proxy.api.requests import LOCAL
from proxy.bootstrap import Service
from tests.support.configured import ask, configured, spent

N_CUSTOMERS, N_ROWS_MAX = 2_000, 5
ORDERS = """[ledger]
path = "orders.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = {n_rows}
budget = "100"
n_records_max = 20000
half_width = 200
delta = 1e-9
[tables.orders.columns.channel]
kind = "category"
levels = ["web", "shop", "phone"]
[tables.orders.columns.hour]
kind = "integer"
low = 0
high = 23
[tables.orders.columns.amount]
kind = "measure"
low = 0
high = 100
step = 5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Orders of customers, of whom some have many."""
    rng = np.random.default_rng(1)
    lines = ["customer,channel,hour,amount"]
    for customer in range(N_CUSTOMERS):
        for _ in range(rng.geometric(0.3)):
            channel = ("web", "web", "shop", "phone")[rng.integers(4)]
            lines.append(f"{customer},{channel},{rng.integers(24)},{5 * rng.integers(21)}")
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def served(folder: Path, n_rows: int = N_ROWS_MAX) -> AbstractContextManager[Service]:
    """The table, with its ledger in the folder."""
    return configured(folder, ORDERS.format(n_rows=n_rows))


def kept() -> int:
    """How many orders are kept: the rows of each customer, at most five."""
    rng = np.random.default_rng(1)
    n_kept = 0
    for _ in range(N_CUSTOMERS):
        n_rows = int(rng.geometric(0.3))
        n_kept += min(n_rows, N_ROWS_MAX)
        for _ in range(n_rows):
            rng.integers(4)
            rng.integers(24)
            rng.integers(21)
    return n_kept


def test_a_statement_costs_a_unit_what_its_rows_cost(folder: Path) -> None:
    """Five times what it costs where a row is a unit; a second time it is free."""
    price = {}
    for n_rows in (N_ROWS_MAX, 10):
        own = folder / str(n_rows)
        own.mkdir()
        (own / "orders.csv").write_text((folder / "orders.csv").read_text())
        with served(own, n_rows) as service:
            for _ in range(2):
                assert len(ask(service, "SELECT COUNT(*) AS n FROM orders")) == 1
            price[n_rows] = spent(service)
    assert price[10] == pytest.approx(2 * price[N_ROWS_MAX])
    assert float(price[N_ROWS_MAX]) == pytest.approx(N_ROWS_MAX * np.log(20) / 200, rel=0.01)


def test_the_key_of_the_unit_is_in_every_row(folder: Path) -> None:
    with served(folder) as service:
        (rows,) = ask(service, "SELECT COUNT(customer) AS n, COUNT(*) AS m FROM orders")
        assert rows["n"] == rows["m"]


def test_answers_are_about_the_rows_that_are_kept_also_after_a_restart(folder: Path) -> None:
    """Of right versions, one run in a million is further off than this."""
    sql = "SELECT COUNT(*) AS n FROM orders"
    with served(folder) as service:
        (first,) = ask(
            service, f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width=10) {sql[7:]}"
        )
        paid = spent(service)
    with served(folder) as service:
        (again,) = ask(service, sql)
        assert spent(service) == paid
    assert again["n"] == first["n"]
    assert abs(float(str(first["n"])) - kept()) < 10 * np.log(1e6) / np.log(20)


@pytest.mark.parametrize(
    "options", ["", ", delta => 1e-9", ", evaluate => 0.2", ", target => (channel)"]
)
def test_a_synthetic_table_costs_a_unit_no_more_than_its_epsilon(
    folder: Path, options: str
) -> None:
    with served(folder) as service:
        ask(service, f"CREATE SYNTHETIC TABLE s FROM orders WITH (epsilon => 2{options})")
        limit = 2.2 if "evaluate" in options else 2
        assert 0.9 * limit < spent(service) <= Fraction(limit)


def test_marginals_cost_a_unit_no_more_than_their_budget(folder: Path) -> None:
    with served(folder) as service:
        request = MarginalsRequest(
            table="orders",
            sets=(MarginalSet(("channel",)), MarginalSet(("hour",))),
            target=RequestedTarget(),
            budget=Fraction(1),
        )
        for _ in service.engine.marginals(request, LOCAL):
            pass
        assert Fraction(99, 100) < spent(service) <= 1


def test_the_auditor_counts_units_by_itself_and_convicts_a_ledger_that_does_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = (
        "SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel",
        "SELECT SUM(amount) AS s FROM orders WHERE hour < 12",
        "CREATE SYNTHETIC TABLE s FROM orders WITH (epsilon => 3, delta => 1e-9)",
        "CREATE SYNTHETIC TABLE p FROM orders WITH (epsilon => 1, method => 'privbayes')",
    )
    with served(folder) as service:
        for sql in statements:
            ask(service, sql)
        verdict = verify(service.ledger.entries())
        (table,) = verdict.tables
        assert verdict.problem is None
        assert table.spent == spent(service)
        assert table.recomputed <= table.spent
        assert float(table.recomputed) == pytest.approx(float(table.spent), rel=0.2)
    with pytest.raises(LedgerMismatch, match="rows_per_unit_max = 5"), served(folder, 4):
        pass
    cheated = folder / "cheated"
    cheated.mkdir()
    (cheated / "orders.csv").write_text((folder / "orders.csv").read_text())
    forget_units(monkeypatch)
    with served(cheated) as service:
        ask(service, statements[0])
        verdict = verify(service.ledger.entries())
    assert verdict.problem is not None
    assert "were charged" in verdict.problem


def forget_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that prices every row as if units had one."""
    for module, name in ((summed_costs, "row_cost"), (history_cost, "most_of")):
        priced = getattr(module, name)

        def counting_once(
            planned: object, *, rows_per_unit: int, by: object, priced: Any = priced
        ) -> object:
            assert rows_per_unit == N_ROWS_MAX
            assert by is None
            return priced(planned)

        monkeypatch.setattr(module, name, counting_once)
