"""What a report reads from a ledger, against the ledger's own sums."""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.cost.zcdp_account import GaussianAccount
from accountant.gate.opening import Funds, open_table
from accountant.ledger.entries import Entry
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer, Subject, SubjectKind, Window
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.query import Factor, QueryBlock, counting
from cube.schema import RowsByLevel, Schema
from cube.statistic import Distance, PlannedStatistic
from proxy.reporting.model import LedgerReport, TableReport
from proxy.reporting.report import read_report
from proxy.shared.amounts import of_units
from tests.proxy.reporting.ledgers import SCRIPT, UNIT, judged, write_year
from tests.support.fakes import KnownTable
from tests.support.gaussian import BILLIONTH, TERMS, with_gaussian_noise
from tests.support.growing_table import DAY, KIND, N_DAYS, GrowingTable
from tests.support.seven_people import BUDGET, BY_SEX, HALF, QUARTER, RECORDS, SCHEMA, buy


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, list[Entry]]]:
    path: Path = tmp_path_factory.mktemp("year") / "year.ledger"
    entries = write_year(path)
    with open_ledger(path) as ledger:
        yield ledger, entries


@pytest.fixture(scope="module")
def report(year: tuple[Ledger, list[Entry]]) -> LedgerReport:
    _, entries = year
    return read_report(entries, judged(entries))


@pytest.fixture(scope="module")
def people(report: LedgerReport) -> TableReport:
    return report.tables[0]


def test_totals_are_the_ledgers_own_and_the_auditors(
    year: tuple[Ledger, list[Entry]], report: LedgerReport
) -> None:
    ledger, entries = year
    assert {table.name for table in report.tables} == set(ledger.tables())
    found = {table.table: table for table in judged(entries).tables}
    for table in report.tables:
        history = ledger.history(table.name)
        assert table.units_spent == history.units_spent
        assert table.budget == history.budget == found[table.name].budget
        assert table.spent == found[table.name].spent
        assert table.left == table.budget - table.spent
        assert table.n_measurements == len(history.measurements)
        assert table.n_raised == len(history.superseded)
        assert table.n_pending == len(history.pending)


def test_analysts_and_months_add_up_to_the_table(people: TableReport) -> None:
    for accounts in (people.analysts, people.months):
        assert sum(account.units for account in accounts) == people.units_spent
        assert sum(account.n_charges for account in accounts) == len(people.purchases)
        assert sum(account.answers.n for account in accounts) == people.answers.n


def test_analysts_and_groups_paid_what_the_ledger_says(
    year: tuple[Ledger, list[Entry]], people: TableReport
) -> None:
    history = year[0].history("people")
    for kind, accounts in (
        (SubjectKind.ANALYST, people.analysts),
        (SubjectKind.GROUP, people.groups),
    ):
        for account in accounts:
            assert account.units == history.spent_by(Subject(kind, account.name))
    assert [account.name for account in people.groups] == ["ops", "sales"]


def test_limits_show_what_the_ledger_would_count(
    year: tuple[Ledger, list[Entry]], people: TableReport
) -> None:
    history = year[0].history("people")
    assert {one.limit for one in people.allowances} == set(history.limits.values())
    for allowance in people.allowances:
        since = allowance.limit.window.start(year[1][-1].at)
        assert allowance.used
        for subject, used in allowance.used:
            assert used == of_units(history.spent_by(subject, since))
    each = next(one for one in people.allowances if one.limit.subject.name == "")
    names = [subject.name for subject, _ in each.used]
    assert names == [SCRIPT, "ann"], "bob has a limit of his own"


def test_the_dearest_cell_of_every_column_paid_what_the_rows_cost(
    year: tuple[Ledger, list[Entry]], people: TableReport
) -> None:
    cost = year[0].history("people").cost.table_cost()
    assert cost.exact
    assert [column.column for column in people.columns] == ["age", "income", "since"]
    for column in people.columns:
        assert column.is_exact
        assert max(column.at_most) == cost.units


def test_every_change_of_the_rules_is_there_in_order(
    year: tuple[Ledger, list[Entry]], report: LedgerReport
) -> None:
    rules = {
        "table_opened", "table_declared", "budget_set", "limit_set", "access_granted",
        "access_revoked",
    }  # fmt: skip
    expected = [entry.seq for entry in year[1] if entry.kind in rules]
    assert [change.seq for change in report.changes] == expected
    raised = next(change for change in report.changes if "before" in change.detail)
    assert raised.detail == "at most ε 1/3 a month; before: at most ε 0.2 a month"


def test_credentials_are_shown_in_the_state_they_were_in(report: LedgerReport) -> None:
    assert [state for _, state in report.credentials] == ["in force", "revoked"]


def test_answers_are_added_up(people: TableReport) -> None:
    answers = people.answers
    assert (answers.n_free, answers.n_paid) == (153, 17)
    assert answers.widths == (64, 47, 39, 19, 1)
    assert answers.plain_free == of_units(3 * UNIT // 10 + UNIT // 50 + UNIT)
    assert answers.plain_paid == of_units(UNIT // 10 + UNIT // 50 + UNIT // 9)


def test_a_report_whose_sums_are_not_the_auditors_is_not_made(
    year: tuple[Ledger, list[Entry]],
) -> None:
    _, entries = year
    early = judged(entries[:20])
    with pytest.raises(RuntimeError, match="differ from the auditor's"):
        read_report(entries, replace(early, n_entries=len(entries)))


def test_statistics_cost_the_cells_and_are_named(tmp_path: Path) -> None:
    distance = PlannedStatistic(Distance(BY_SEX, (0, 0)), QUARTER)
    with open_ledger(tmp_path / "statistics.ledger") as ledger:
        people = KnownTable(SCHEMA, RECORDS)
        gate = open_table(ledger, SCHEMA, BUDGET, people, SystemNoise())
        payment = gate.charge([], Payer("ann"), epsilon_cap=None, statistics=[distance])
        gate.complete(payment.seq)
        buy(gate, PlannedMeasurement(BY_SEX, HALF))
        entries = list(ledger.entries())
        spent = gate.budget().spent
    [table] = read_report(entries, judged(entries)).tables
    assert table.spent == spent == QUARTER.exact + HALF.exact
    assert [(one.n_blocks, one.n_statistics) for one in table.purchases] == [(0, 1), (1, 0)]
    ages = {cost.column: cost for cost in table.columns}["age"]
    assert of_units(max(ages.at_most)) == of_units(max(ages.at_least)) == spent


def test_normal_noise_costs_the_table_and_no_cell_more_than_another(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "gaussian.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, KnownTable(SCHEMA, RECORDS), SystemNoise())
        asked = with_gaussian_noise(BY_SEX)
        gate.complete(gate.charge([], Payer("ann"), epsilon_cap=None, statistics=asked).seq)
        buy(gate, PlannedMeasurement(BY_SEX, QUARTER))
        entries = list(ledger.entries())
        history = gate.history
    [table] = read_report(entries, judged(entries)).tables
    assert table.units_spent == history.units_spent
    assert table.found is not None
    assert (table.found.delta, table.found.gaussian) == (
        BILLIONTH,
        of_units(history.gaussian.units),
    )
    ages = {cost.column: cost for cost in table.columns}["age"]
    assert max(ages.at_least) == history.units_of_rows == QUARTER.units


def test_rows_with_gaussian_noise_cost_the_levels_that_they_are_about(tmp_path: Path) -> None:
    """Ages weighed 0 to 5, twice: a level pays for the square of its own weight."""
    levels = np.arange(6, dtype=np.int64)
    ages = QueryBlock(counting([Factor(("age",), levels)]))
    precision = Precision.at_least(Fraction(1, 10**5))
    with open_ledger(tmp_path / "gaussian.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, KnownTable(SCHEMA, RECORDS), SystemNoise())
        buy(gate, PlannedMeasurement(ages, precision, terms=TERMS))
        buy(gate, PlannedMeasurement(ages, Precision(2 * precision.units), 0, TERMS))
        entries = list(ledger.entries())
    [table] = read_report(entries, judged(entries)).tables
    assert table.found is not None
    assert table.found.gaussian == of_units(GaussianAccount(TERMS).units), "the constant alone"
    [cost] = table.columns
    rate = TERMS.order * precision.exact * UNITS_PER_EPSILON
    paid = [2 * math.ceil(rate * level**2) for level in levels.tolist()]
    assert [cost.at_most[place] for place in range(6)] == paid
    assert cost.is_exact
    assert table.units_spent == max(paid) + GaussianAccount(TERMS).units
    assert (table.n_measurements, table.n_raised) == (2, 1)


def test_accepted_changes_that_raise_the_cost_are_in_the_sum(tmp_path: Path) -> None:
    """A unit with a row on two days has lost 3 + 2, and may lose 3 + 3 once the days changed."""
    schema = Schema(
        table="orders",
        axes=(DAY, KIND),
        n_records_max=1000,
        unit="who",
        rows_per_unit_max=2,
        rows_per_unit_max_by=RowsByLevel("day", 1),
        grows="day",
    )
    table = GrowingTable(schema=schema)
    with open_ledger(tmp_path / "a.ledger") as ledger:
        funds = Funds(Fraction(1), renews=Window.YEAR)
        gate = open_table(ledger, schema, funds, table, SystemNoise())
        gate.advance(6, "owner")
        for day, sixteenths in ((0, 3), (3, 2)):
            only = np.array([int(one == day) for one in range(N_DAYS)], dtype=np.int64)
            weight = Weight.at_least(Fraction(sixteenths, 16))
            block = QueryBlock(counting([Factor(("day",), only)]))
            gate.measure([PlannedMeasurement(block, weight)], Payer("ann"), epsilon_cap=None)
        table.records = np.append(table.records, np.array([[2, 1]], dtype=np.int64), axis=0)
        gate.accept_changes(0, 6, "owner")
        entries = list(ledger.entries())
    (found,) = read_report(entries, judged(entries)).tables
    assert found.spent == Fraction(6, 16)
    assert found.renewing is not None
    assert found.renewing.spent == Fraction(6, 16)


def test_charges_that_accepted_changes_gave_up_wait_no_longer(tmp_path: Path) -> None:
    """Of three that wait, one is of other days; the others are of changed days, and of all."""
    schema = Schema(table="orders", axes=(DAY, KIND), n_records_max=1000, grows="day")
    table = GrowingTable(schema=schema)
    with open_ledger(tmp_path / "a.ledger") as ledger:
        gate = open_table(ledger, schema, Funds(Fraction(1)), table, SystemNoise())
        gate.advance(3, "owner")
        gate.advance(6, "owner")
        for days in ((4, 5), (0, 1), range(6)):
            only = np.array([int(one in days) for one in range(N_DAYS)], dtype=np.int64)
            block = QueryBlock(counting([Factor(("day",), only)]))
            planned = PlannedMeasurement(block, Weight.at_least(Fraction(1, 16)))
            gate.charge([planned], Payer("ann"), epsilon_cap=None)
        table.records = np.append(table.records, np.array([[2, 1]], dtype=np.int64), axis=0)
        assert gate.accept_changes(0, 1, "owner")
        entries = list(ledger.entries())
    (found,) = read_report(entries, judged(entries)).tables
    assert found.found is not None
    assert found.n_pending == found.found.n_pending == 1
