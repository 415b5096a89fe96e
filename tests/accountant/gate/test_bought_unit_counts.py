"""Counts of units, bought: what they cost, how they are raised, what the auditor says."""

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.limits import Subject, SubjectKind
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Factor, QueryBlock, counting
from cube.refusals import BudgetExhausted, CostAboveCap, SourceUnavailable, TooLarge
from cube.schema import Schema
from cube.statistic import PlannedUnitCount, UnitCount
from tests.support.audited import assert_not_opened, problem_with, to
from tests.support.counted_units import (
    ANN,
    BY_CITY,
    CITY,
    EVERYBODY,
    HALF,
    HOUR,
    LATE_BY_CITY,
    QUARTER,
    Orders,
    bought,
    gate_on,
)
from tests.support.fakes import FailingSource, NoNoise


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with gate_on(tmp_path) as opened:
        yield opened


def test_a_count_costs_its_weight_for_each_group_of_a_unit(gate: Gate) -> None:
    assert bought(gate, PlannedUnitCount(UnitCount(EVERYBODY, 3), QUARTER)) == QUARTER.units
    assert bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER)) == 2 * QUARTER.units
    assert bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 9), QUARTER)) == 3 * QUARTER.units
    row = PlannedMeasurement(EVERYBODY, QUARTER)
    count = PlannedUnitCount(UnitCount(LATE_BY_CITY, 9), HALF)
    assert bought(gate, count, rows=[row]) == (3 + 2 * 2) * QUARTER.units
    assert gate.history.unit_counts.units == 10 * QUARTER.units
    assert len(gate.measurements()) == 1


def test_a_raise_costs_the_difference_and_finds_the_same_counts(tmp_path: Path) -> None:
    """Without noise every value is exact, also after a restart."""
    count = UnitCount(BY_CITY, 2)
    with gate_on(tmp_path, NoNoise()) as gate:
        assert bought(gate, PlannedUnitCount(count, QUARTER)) == 2 * QUARTER.units
        first = gate.history.unit_counts.measurements[0]
    with gate_on(tmp_path, NoNoise()) as gate:
        again = PlannedUnitCount(count, HALF, raised_from=0)
        assert bought(gate, again) == 2 * (HALF.units - QUARTER.units)
        _, raised = gate.history.unit_counts.measurements
        assert raised.supersedes == 0
        assert raised.values.tolist() == first.values.tolist()
        assert sum(raised.values) == 2 + 1 + 2
        assert set(gate.history.unit_counts.latest.values()) == {1}


def test_what_cannot_be_raised_is_refused_before_it_is_charged(gate: Gate) -> None:
    bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER))
    spent = gate.budget().spent
    wrong = [
        PlannedUnitCount(UnitCount(BY_CITY, 1), HALF, raised_from=0),
        PlannedUnitCount(UnitCount(EVERYBODY, 2), HALF, raised_from=0),
        PlannedUnitCount(UnitCount(BY_CITY, 2, only_cut=True), HALF, raised_from=0),
        PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER, raised_from=0),
        PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=7),
    ]
    for asked in wrong:
        with pytest.raises(StalePlan):
            gate.charge([], ANN, epsilon_cap=None, statistics=[asked])
    right = PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=0)
    with pytest.raises(ValueError, match="raises the same measurement twice"):
        gate.charge([], ANN, epsilon_cap=None, statistics=[right, right])
    gate.charge([], ANN, epsilon_cap=None, statistics=[right])
    with pytest.raises(StalePlan):  # while the first waits
        gate.charge([], ANN, epsilon_cap=None, statistics=[right])
    assert gate.budget().spent == spent + 2 * (HALF.exact - QUARTER.exact)


def test_budgets_and_limits_count_them(gate: Gate) -> None:
    bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 3), QUARTER))
    assert gate.history.spent_by(Subject(SubjectKind.ANALYST, "ann")) == 3 * QUARTER.units
    many = PlannedUnitCount(UnitCount(BY_CITY, 3), Weight(4 * UNITS_PER_EPSILON))
    with pytest.raises(BudgetExhausted):
        gate.charge([], ANN, epsilon_cap=None, statistics=[many])
    with pytest.raises(CostAboveCap):
        gate.charge([], ANN, epsilon_cap=QUARTER.exact, statistics=[replace(many, weight=QUARTER)])


def test_what_could_not_be_stored_is_refused_before_it_is_charged(gate: Gate) -> None:
    heavy = Factor(("hour",), np.array([0, 2**40], dtype=np.int64))
    asked = PlannedUnitCount(UnitCount(QueryBlock(counting([heavy])), 1), Weight(2**42))
    with pytest.raises(TooLarge):
        gate.charge([], ANN, epsilon_cap=None, statistics=[asked])
    assert gate.budget().spent == 0


def test_a_count_that_could_not_be_read_is_read_later_once(tmp_path: Path) -> None:
    with gate_on(tmp_path) as gate:
        broken = FailingSource(Orders({1: ((0, 0),)}), 1, "secret")
        failing = open_table(gate._ledger, schema_named("pets"), Fraction(1), broken, SystemNoise())
        asked = PlannedUnitCount(UnitCount(EVERYBODY, 1), QUARTER)
        payment = failing.charge([], ANN, epsilon_cap=None, statistics=[asked])
        with pytest.raises(SourceUnavailable):
            failing.complete(payment.seq)
        assert failing.complete_pending() == 1
        assert len(failing.history.unit_counts.measurements) == 1
        assert failing.budget().spent == QUARTER.exact


def schema_named(name: str) -> Schema:
    return Schema(
        table=name, axes=(CITY, HOUR), n_records_max=100_000, unit="person", rows_per_unit_max=3
    )


def test_the_auditor_adds_up_by_itself_and_convicts_what_is_charged_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gate_on(tmp_path) as gate:
        row = PlannedMeasurement(EVERYBODY, QUARTER)
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER), rows=[row])
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=0))
        (table,) = verify(gate._ledger.entries()).tables
        assert table.recomputed == table.spent == 3 * QUARTER.exact + 2 * HALF.exact
        assert table.unit_counts == 2 * HALF.exact
        assert table.exact
    cheated = tmp_path / "cheated"
    cheated.mkdir()
    monkeypatch.setattr(UnitCount, "reach", lambda _count, _rows: 1)
    with gate_on(cheated) as gate:
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER))
        problem = verify(gate._ledger.entries()).problem
    assert problem is not None
    assert "counts of units" in problem


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("groups_max", 3, "as if it had other groups"),
        ("only_cut", True, "as if it had other groups"),
        ("only_cut", False, "only_cut, if given"),
        ("raised_from", 1, "does not exist"),
        ("groups_max", 0, "groups_max"),
        ("weight_units", QUARTER.units, "smaller than the paid weight"),
        ("noise_scale", (8.0).hex(), "smaller than|does not refine"),
        ("kind", "distance", "distance|fields|field"),
    ],
)
def test_the_auditor_finds_a_raise_that_is_none(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    with gate_on(tmp_path) as gate:
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER))
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=0))
        entries = list(gate._ledger.entries())
    last = max(entry.seq for entry in entries if entry.kind == "charge")
    assert re.search(said, problem_with(entries, last, to(value, "statistics", 0, field)))
    assert_not_opened(entries, last, to(value, "statistics", 0, field))


@pytest.mark.parametrize("only_cut", [False, True])
def test_a_charge_is_read_back_as_it_was_written(gate: Gate, *, only_cut: bool) -> None:
    bought(gate, PlannedUnitCount(UnitCount(LATE_BY_CITY, 2, only_cut), QUARTER))
    (payment,) = gate.payments()
    kind, text = write(payment.charge)
    again = read_text(kind, text)
    assert write(again) == (kind, text)
    assert '"kind":"unit_count"' in text
    assert ("only_cut" in text) == only_cut
