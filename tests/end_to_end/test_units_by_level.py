"""Orders of customers, of whom few count on each day: from the configuration to the audit."""

import json
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from cube.refusals import LedgerMismatch
from proxy.bootstrap import Service
from proxy.reporting.report import ReportFormat, make_report
from tests.support.configured import ask, configured, spent

N_CUSTOMERS, M, K = 500, 2, 12
BY = f"rows_per_unit_max_by = {{ day = {M} }}"
ORDERS = """[ledger]
path = "orders.ledger"
[tables.orders]
source = "orders.csv"
unit = "customer"
rows_per_unit_max = {n_rows}
{by}
budget = "100"
n_records_max = 20000
half_width = 200
strategy = "query"
{delta}
[tables.orders.columns.channel]
kind = "category"
levels = ["web", "shop", "phone"]
[tables.orders.columns.day]
kind = "date"
low = 2026-10-01
high = 2026-10-10
[tables.orders.columns.amount]
kind = "measure"
low = 0
high = 100
step = 5
"""
ONE_DAY = (
    "SELECT channel, COUNT(*) AS n FROM orders WHERE day = DATE '2026-10-0{}' GROUP BY channel"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Orders of customers, of whom some have many on a day."""
    rng = np.random.default_rng(1)
    lines = ["customer,channel,day,amount"]
    for customer in range(N_CUSTOMERS):
        for _ in range(rng.geometric(0.1)):
            channel = ("web", "web", "shop", "phone")[rng.integers(4)]
            day = f"2026-10-{rng.integers(1, 11):02}"
            lines.append(f"{customer},{channel},{day},{5 * rng.integers(21)}")
    (tmp_path / "orders.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def served(
    folder: Path, by: str = BY, n_rows: int = K, delta: str = ""
) -> AbstractContextManager[Service]:
    """The table, with its ledger in the folder."""
    return configured(folder, ORDERS.format(n_rows=n_rows, by=by, delta=delta))


def test_days_cost_their_rows_until_a_unit_can_have_no_more(folder: Path) -> None:
    """Two rows a day, twelve in all: the seventh day is free, as no unit has rows on seven."""
    one_row = np.log(20) / 200
    with served(folder) as service:
        for day in range(1, 10):
            ask(service, ONE_DAY.format(day))
            expected = min(K, M * day) * one_row
            assert float(spent(service)) == pytest.approx(expected, rel=0.01)
        ask(service, "SELECT COUNT(*) AS n FROM orders WHERE day >= DATE '2026-10-10'")
        assert float(spent(service)) == pytest.approx(K * one_row, rel=0.01)


def test_the_auditor_finds_what_was_charged_and_the_report_says_what_counts(folder: Path) -> None:
    statements = (
        ONE_DAY.format(1),
        ONE_DAY.format(2),
        "SELECT SUM(amount) AS s FROM orders WHERE day < DATE '2026-10-05'",
        "SELECT day, COUNT(*) AS n FROM orders GROUP BY day",
        "CREATE SYNTHETIC TABLE s FROM orders WITH (epsilon => 3, delta => 1e-9)",
        "CREATE SYNTHETIC TABLE p FROM orders WITH (epsilon => 1, method => 'privbayes')",
    )
    with served(folder, delta="delta = 1e-9") as service:
        before = Fraction(0)
        for place, sql in enumerate(statements):
            ask(service, sql)
            limit = {4: 3, 5: 1}.get(place)
            assert limit is None or spent(service) - before <= limit
            before = spent(service)
        verdict = verify(service.ledger.entries(), has_columns=True)
        (table,) = verdict.tables
        assert verdict.problem is None
        assert not verdict.notes
        assert table.spent == before
        assert float(table.recomputed) == pytest.approx(float(table.spent), rel=0.2)
        assert table.columns is not None
        along = {one.column: one for one in table.columns}
        assert all(most <= before * 2**40 for one in along.values() for most in one.at_most)
        page = make_report(service.ledger.entries(), ReportFormat.HTML, verdict=verdict).decode()
        seen = " ".join(page.split())
        assert "at most 12 rows of each customer are kept, and at most 2 for each day" in seen
        assert "Along day is shown what so many rows have paid" in seen
        told = json.loads(make_report(service.ledger.entries(), ReportFormat.JSON, verdict=verdict))
        assert told["tables"][0]["declaration"]["rows_per_unit_max_by"] == {"day": M}
        (unit,) = ask(
            service,
            "SELECT levels FROM data_privacy.domains WHERE column_name = 'customer'",
        )
        assert unit["levels"] == (
            f"at most {K} rows of each customer count, of them at most {M} for each day"
        )


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("", "rows_per_unit_max_by = {day = 2}"),
        ("rows_per_unit_max_by = { day = 3 }", "rows_per_unit_max_by = {day = 2}"),
        ("rows_per_unit_max_by = { channel = 4 }", "rows_per_unit_max_by = {day = 2}"),
    ],
)
def test_another_bound_is_refused(folder: Path, by: str, said: str) -> None:
    with served(folder):
        pass
    with pytest.raises(LedgerMismatch, match=said.replace("{", r"\{")), served(folder, by):
        pass
    with served(folder) as service:
        assert spent(service) == 0


def test_a_ledger_without_the_bound_is_not_given_one(folder: Path) -> None:
    with served(folder, by=""):
        pass
    with pytest.raises(LedgerMismatch, match="no rows_per_unit_max_by"), served(folder):
        pass


def test_answers_are_about_the_rows_that_are_kept(folder: Path) -> None:
    """Of right versions, one run in a million is further off than this."""
    lines = (folder / "orders.csv").read_text().splitlines()[1:]
    of_day: dict[tuple[str, str], int] = {}
    for line in lines:
        customer, _, day, _ = line.split(",")
        of_day[customer, day] = min(M, of_day.get((customer, day), 0) + 1)
    of_unit: dict[str, int] = {}
    for (customer, _), n in of_day.items():
        of_unit[customer] = min(K, of_unit.get(customer, 0) + n)
    with served(folder) as service:
        sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width=10) COUNT(*) AS n FROM orders"
        (found,) = ask(service, sql)
    assert abs(float(str(found["n"])) - sum(of_unit.values())) < 10 * np.log(1e6) / np.log(20)
    assert sum(of_unit.values()) < len(lines) - 500, "the bounds left many out"
