"""Tables about the same people: what both spend counts, for the gate, the audit and the reader."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import BudgetJoined
from accountant.ledger.opening import open_ledger
from cube.refusals import BudgetExhausted, ConfigurationInvalid, LedgerMismatch, LimitReached
from planner.workload import RequestedTarget
from proxy.admin.ledger_admin import LimitChange, change_limit, limits_of
from proxy.api.requests import LOCAL, BudgetStatus, QueryRequest
from proxy.bootstrap import Service, build
from proxy.cli import app as cli
from proxy.config.settings import load
from proxy.reporting.report import ReportFormat, make_report, read_report
from tests.support.audited import rewritten, to

HEAD = '[ledger]\npath = "a.ledger"\n'
SHARED = '[budgets.people]\nepsilon = "2"\n'
TABLE = """[tables.{name}]
source = "{file}.csv"
unit = "customer"
{budget}
n_records_max = 1000
half_width = 10
[tables.{name}.columns.age]
kind = "integer"
low = 0
high = 9
"""
OWN, OF_PEOPLE = 'budget = "2"', 'budget = "people"'


def table(name: str, budget: str, file: str = "") -> str:
    return TABLE.format(name=name, budget=budget, file=file or name)


TWO = (table("customers", OF_PEOPLE), table("orders", OF_PEOPLE))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in ("customers", "orders"):
        lines = [f"{customer},{(customer * len(file)) % 10}" for customer in range(200)]
        (tmp_path / f"{file}.csv").write_text("customer,age\n" + "\n".join(lines) + "\n")
    return tmp_path


@contextmanager
def served(folder: Path, tables: Sequence[str] = TWO, budgets: str = SHARED) -> Iterator[Service]:
    (folder / "tacit.toml").write_text(HEAD + budgets + "".join(tables))
    service = build(load(folder / "tacit.toml"))
    try:
        yield service
    finally:
        service.close()


COUNT = {
    "customers": "SELECT COUNT(*) AS n FROM customers",
    "orders": "SELECT COUNT(*) AS n FROM orders",
    "people": "SELECT COUNT(*) AS n FROM people",
}


def ask(service: Service, table: str, half_width: float) -> None:
    target = RequestedTarget(half_width=half_width)
    service.engine.answer(QueryRequest(sql=COUNT[table], caller=LOCAL, target=target))


def status(service: Service) -> dict[str, BudgetStatus]:
    return {one.table: one for one in service.budgets()}


def own_spending(service: Service, table: str) -> int:
    return service.ledger.history(table).units_spent


def test_what_one_table_spends_the_other_has_not(folder: Path) -> None:
    with served(folder) as service:
        ask(service, "customers", 3)
        first = status(service)
        assert first["customers"].spent == first["orders"].spent > Fraction(9, 10)
        assert own_spending(service, "orders") == 0
        ask(service, "orders", 4)
        with pytest.raises(BudgetExhausted) as refused:
            ask(service, "orders", 2)
        left = status(service)["orders"].left
        assert refused.value.shortfall.epsilon_left == left < Fraction(1, 2)
        with pytest.raises(BudgetExhausted):
            ask(service, "customers", 2)
        both = own_spending(service, "orders") + own_spending(service, "customers")
        assert status(service)["orders"].spent == Fraction(both, 2**40)


def test_a_restart_changes_nothing_and_the_audit_adds_up(folder: Path) -> None:
    with served(folder) as service:
        ask(service, "customers", 3)
        ask(service, "orders", 5)
        before = status(service)
    with served(folder) as service:
        assert status(service) == before
        verdict = verify(service.ledger.entries())
    assert verdict.problem is None
    shared = verdict.shared_budgets["people"]
    assert [one.table for one in shared] == ["customers", "orders"]
    assert sum(one.spent for one in shared) == before["orders"].spent


def test_the_report_marks_a_shared_budget_where_tables_stand_together(folder: Path) -> None:
    with served(folder) as service:
        ask(service, "customers", 3)
        ask(service, "orders", 3)
        entries = list(service.ledger.entries())
    page = make_report(
        entries, ReportFormat.HTML, verdict=verify(entries, has_columns=True)
    ).decode()
    overview = page[page.index('<section id="overview">') : page.index('<section id="table-1">')]
    assert overview.count("(shared: people)") == 2
    parts = re.findall(r'class="bar"><span><span style="width:([0-9.]+)%', overview)
    assert len(set(parts)) == 1, "the same of both: what they have spent together"


def test_the_auditor_convicts_a_ledger_whose_tables_spend_more_together(folder: Path) -> None:
    with served(folder) as service:
        ask(service, "customers", 3)
        ask(service, "orders", 5)
        entries = list(service.ledger.entries())
    charge = max(one.seq for one in entries if one.kind == "charge")
    opened = next(one.seq for one in entries if one.table == "orders")
    each_its_own = rewritten(entries, opened, lambda body: body.pop("shared_budget"))
    assert verify(each_its_own).problem is None
    too_much = rewritten(entries, charge, to(2 * 2**40, "units_after"))
    assert "the table's budget of" in str(verify(too_much).problem)
    with open_ledger(folder / "a.ledger") as ledger, pytest.raises(ValueError, match="leaves"):
        ledger.append("orders", lambda _history: BudgetJoined("others"))


def test_a_limit_on_one_table_is_a_limit_on_the_budget(folder: Path) -> None:
    """What is spent on the other table counts, and the other table is bound by it, too."""
    with served(folder) as service:
        ask(service, "customers", 5)
        by_local = LimitChange(subject="analyst:local", epsilon="1")
        change_limit(service.ledger, "orders", by_local, by="owner")
        (limit,) = limits_of(service.ledger, "orders")
        spent = status(service)["orders"].spent
        assert limit.spent == spent > Fraction(1, 2)
        for name in ("orders", "customers"):
            with pytest.raises(LimitReached) as refused:
                ask(service, name, 2.5)
            assert refused.value.shortfall.epsilon_left == 1 - spent
        entries = list(service.ledger.entries())
        assert verify(entries).problem is None
        limits = [one.seq for one in entries if one.kind == "limit_set"]
        ask(service, "orders", 9)
        entries = list(service.ledger.entries())
        all_spent = status(service)["orders"].spent
    report = read_report(entries, verify(entries, has_columns=True))
    orders = next(one for one in report.tables if one.name == "orders")
    ((use,),) = [allowance.used for allowance in orders.allowances]
    assert use[1] == all_spent
    assert orders.left == 2 - all_spent
    lower = rewritten(entries, limits[0], to("3/5", "epsilon"))
    assert "analyst:local spends" in str(verify(lower).problem)


def test_the_auditor_says_the_sum_of_the_deltas(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A unit is in both tables: each may fail it."""
    with_delta = [one.replace("half_width", "delta = 1e-9\nhalf_width") for one in TWO]
    made = "CREATE SYNTHETIC TABLE s_{0} FROM {0} WITH (epsilon => 0.9, delta => 1e-9)"
    with served(folder, with_delta) as service:
        for name in ("customers", "orders"):
            service.engine.answer(QueryRequest(sql=made.format(name), caller=LOCAL))
    with pytest.raises(SystemExit):
        cli.main(["audit", "verify", str(folder / "a.ledger")])
    said = capsys.readouterr().out
    assert "customers, orders, private but for a probability of 2e-09." in " ".join(said.split())


def test_requests_at_once_do_not_spend_what_is_left_twice(folder: Path) -> None:
    """Each of two tables could pay for one more answer; only one of them gets it."""
    with served(folder) as service:
        ask(service, "customers", 3)
        barrier, outcomes = threading.Barrier(2), []

        def press(name: str, half_width: float) -> None:
            barrier.wait()
            try:
                ask(service, name, half_width)
                outcomes.append("answered")
            except BudgetExhausted:
                outcomes.append("refused")

        asked = [("orders", 3.2), ("customers", 1.6)]
        threads = [threading.Thread(target=press, args=one) for one in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["answered", "refused"]
        assert Fraction(3, 2) < status(service)["orders"].spent <= 2


def test_two_tables_may_read_one_file_if_they_share_a_budget(folder: Path) -> None:
    again = (table("people", OF_PEOPLE, "customers"), table("customers", OF_PEOPLE))
    with served(folder, again) as service:
        ask(service, "people", 3)
        assert status(service)["customers"].spent > Fraction(9, 10)
        assert verify(service.ledger.entries()).problem is None


def test_a_table_joins_a_budget_later_and_never_leaves_it(folder: Path) -> None:
    with served(folder, (table("customers", OWN),), "") as service:
        ask(service, "customers", 3)
        spent = status(service)["customers"].spent
    with served(folder) as service:
        assert status(service)["orders"].spent == spent
        assert verify(service.ledger.entries()).problem is None
    alone = (table("customers", OWN), table("orders", OF_PEOPLE))
    with (
        pytest.raises(LedgerMismatch, match="spends from the shared budget"),
        served(folder, alone),
    ):
        pass


@pytest.mark.parametrize(
    ("tables", "budgets", "said"),
    [
        (TWO, "", "tables.customers.budget: names no budget of \\[budgets\\]"),
        (TWO, '[budgets.people]\nepsilon = "0"\n', "budgets.people.epsilon: should be a positive"),
        (TWO, '[budgets.9]\nepsilon = "1"\n', "budgets.9: should have a name that begins"),
        (TWO, SHARED + 'renews = "never"\n', "budgets.people.renews: should be one of day, week"),
        (
            (TWO[0], table("orders", OF_PEOPLE + '\nbudget_renews = "day"')),
            SHARED,
            "orders.budget_renews: is for a table with a budget of its own",
        ),
        (
            (table("orders", OWN + '\nbudget_renews = "decade"'),),
            "",
            "orders.budget_renews: should be one of day, week, month, quarter, year",
        ),
        (
            (TWO[0], TWO[1].replace('unit = "customer"\n', "")),
            SHARED,
            "tables.orders.unit: should name the column",
        ),
        ((table("a", OWN, "orders"), table("b", OWN, "orders")), "", "their spending adds up"),
        (
            (table("a", OF_PEOPLE + '\nseparate_budget = "x"', "orders"),),
            SHARED,
            "separate_budget: is for a table with a budget of its own",
        ),
    ],
)
def test_what_is_wrong_with_budgets_is_said(
    folder: Path, tables: Sequence[str], budgets: str, said: str
) -> None:
    (folder / "tacit.toml").write_text(HEAD + budgets + "".join(tables))
    with pytest.raises(ConfigurationInvalid, match=said):
        load(folder / "tacit.toml")


def test_why_a_budget_is_separate_stands_in_the_ledger(folder: Path) -> None:
    view = (
        '[tables.b]\nview = "SELECT customer, CAST(age AS BIGINT) AS age FROM c"\n'
        'unit = "customer"\nbudget = "1"\n'
        'separate_budget = "other customers"\nn_records_max = 900\nhalf_width = 9\n'
        '[tables.b.sources]\nc = "customers.csv"\n'
        '[tables.b.columns.age]\nkind = "integer"\nlow = 0\nhigh = 9\n'
    )
    with served(folder, (table("customers", OWN), view), "") as service:
        declared = service.ledger.history("b").declaration
        assert declared is not None
        assert '"separate_budget":"other customers"' in declared.replace(": ", ":")
