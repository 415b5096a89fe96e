"""Rows with Gaussian noise at the gate: priced cell by cell, raised, replayed, and audited."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.cost.zcdp_account import GaussianAccount, best_terms
from accountant.gate.gate import Gate
from accountant.gate.open_table import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger
from accountant.ledger.raises import StalePlan
from accountant.noise.laplace import SystemNoise
from cube.gaussian_terms import GaussianTerms, Precision
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement, Weight
from cube.refusals import InvalidRequest
from tests.support.fakes import KnownTable, NoNoise
from tests.support.gaussian import BILLIONTH, TERMS
from tests.support.seven_people import ADULTS, BUDGET, BY_SEX, EVERYONE, QUARTER, SCHEMA, buy

ANN = Payer("ann")
FINE = Precision.at_least(Fraction(1, 1000))
FINER = Precision.at_least(Fraction(1, 300))
CONSTANT = GaussianAccount(TERMS, 0).units


def rows(precision: Precision = FINE, raised_from: int | None = None) -> PlannedMeasurement:
    return PlannedMeasurement(BY_SEX, precision, raised_from, TERMS)


def units_of(precision: Precision) -> int:
    """The cost of one squared unit."""
    units: int = math.ceil(TERMS.order * precision.exact * UNITS_PER_EPSILON)
    return units


@pytest.fixture
def gate(ledger: Ledger, table: KnownTable) -> Gate:
    return open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())


def test_a_row_is_charged_measured_raised_and_audited(gate: Gate, ledger: Ledger) -> None:
    buy(gate, rows())
    assert gate.history.units_spent == CONSTANT + units_of(FINE)
    buy(gate, rows(FINER, 0))
    more = Precision(FINER.units - FINE.units)
    assert gate.history.units_spent == CONSTANT + units_of(FINE) + units_of(more)
    first, second = gate.measurements()
    assert (first.weight, second.weight) == (FINE, FINER)
    assert (first.supersedes, second.supersedes) == (None, 0)
    assert second.deviation == pytest.approx(1 / np.sqrt(2 * float(FINER.exact)))
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    (found,) = verdict.tables
    assert found.exact
    assert found.spent == found.recomputed == gate.budget().spent
    assert found.delta == BILLIONTH
    assert (found.n_measurements, found.n_raised) == (2, 1)


def test_without_noise_both_kinds_say_the_same(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, NoNoise())
    buy(gate, rows())
    buy(gate, rows(FINER, 0), PlannedMeasurement(BY_SEX, QUARTER))
    gaussian, raised, laplace = gate.measurements()
    assert tuple(gaussian.values) == tuple(raised.values) == tuple(laplace.values)


def test_rows_of_both_kinds_are_priced_in_one_sum(gate: Gate, ledger: Ledger) -> None:
    """The counts by sex and of everyone overlap; a cell pays for both, and once the constant."""
    buy(gate, rows(), PlannedMeasurement(EVERYONE, QUARTER))
    assert gate.history.units_spent == CONSTANT + units_of(FINE) + QUARTER.units
    assert gate.history.units_of_rows == units_of(FINE) + QUARTER.units
    buy(gate, PlannedMeasurement(ADULTS, FINE, terms=TERMS))
    assert gate.history.units_of_rows == 2 * units_of(FINE) + QUARTER.units
    assert verify(ledger.entries()).problem is None


def test_the_order_is_the_tables_and_another_delta_is_refused(gate: Gate, ledger: Ledger) -> None:
    buy(gate, rows())
    tuned = GaussianTerms(BILLIONTH, Fraction(300))
    plan = [PlannedMeasurement(EVERYONE, FINE, terms=tuned)]
    assert gate.price(plan).epsilon == Fraction(units_of(FINE), UNITS_PER_EPSILON)
    buy(gate, *plan)
    assert gate.payments()[-1].charge.terms == TERMS
    other = best_terms(2 * BILLIONTH, Fraction(1))
    with pytest.raises(InvalidRequest, match="another delta"):
        buy(gate, PlannedMeasurement(EVERYONE, FINE, terms=other))
    assert verify(ledger.entries()).problem is None


@pytest.mark.parametrize(
    ("planned", "why"),
    [
        (rows(FINE, 0), "no larger"),
        (rows(FINER, 1), "noise of another kind"),
        (rows(FINER, 7), "not there"),
        (PlannedMeasurement(BY_SEX, Weight.at_least(1), 0), "noise of another kind"),
        (PlannedMeasurement(ADULTS, FINER, 0, TERMS), "other rows"),
    ],
)
def test_an_impossible_raise_is_refused(gate: Gate, planned: PlannedMeasurement, why: str) -> None:
    buy(gate, rows(), PlannedMeasurement(BY_SEX, QUARTER))
    spent = gate.budget().spent
    with pytest.raises(StalePlan, match=why):
        buy(gate, planned)
    assert gate.budget().spent == spent


def test_a_row_is_raised_once_from_each_place(gate: Gate) -> None:
    buy(gate, rows())
    buy(gate, rows(FINER, 0))
    with pytest.raises(StalePlan, match="raised since"):
        buy(gate, rows(FINER, 0))
    buy(gate, rows(Precision(2 * FINER.units), 1))
    assert gate.measurements()[-1].supersedes == 1


def test_the_ledger_is_read_back(tmp_path: Path, table: KnownTable) -> None:
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        buy(gate, rows())
        buy(gate, rows(FINER, 0), PlannedMeasurement(EVERYONE, QUARTER))
        known = [said(one) for one in gate.measurements()]
        spent, account = gate.budget().spent, gate.history.gaussian
    with open_ledger(tmp_path / "people.ledger") as ledger:
        again = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        assert [said(one) for one in again.measurements()] == known
        assert (again.budget().spent, again.history.gaussian) == (spent, account)
        buy(again, rows(Precision(2 * FINER.units), 1))
        assert verify(ledger.entries()).problem is None


def said(one: Measurement) -> tuple[object, ...]:
    return one.weight, one.lattice_bits, one.noise_scale, one.lattice_values, one.supersedes
