"""Raising a measurement: what it costs, what it refuses, and what noise it has."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accountant.gate.gate import Gate, StalePlan
from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import LatticeNoise, SystemNoise
from cube.axis import IntegerAxis
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Partition, QueryBlock, counting
from cube.refusals import BudgetExhausted, CostAboveCap, TooLarge
from cube.schema import Schema
from tests.support.auditing import audited
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples
from tests.support.fakes import KnownTable, NoNoise, PlantedNoise
from tests.support.seven_people import ADULTS, BY_SEX, FRESH, HALF, QUARTER, RAISE, SCHEMA, buy

P_VALUE_MIN = 1e-9  # a sound gate fails one run in a billion
N_ROWS = 10_000


@pytest.fixture
def gate(ledger: Ledger, table: KnownTable) -> Gate:
    """A gate that has sold `FRESH` for a quarter of its budget of 1."""
    gate = open_table(ledger, SCHEMA, Fraction(1), table, SystemNoise())
    buy(gate, FRESH)
    return gate


def test_a_raise_costs_the_difference_and_stays_on_its_lattice(
    ledger: Ledger, table: KnownTable, gate: Gate
) -> None:
    (before,) = gate.measurements()
    assert gate.price([RAISE]).epsilon == Fraction(1, 4)
    (raised,) = gate.measure([RAISE], Payer("ann"), epsilon_cap=Fraction(1, 4))
    assert gate.budget().spent == Fraction(1, 2)
    assert tuple(gate.measurements()) == (before, raised)
    assert (before.supersedes, raised.supersedes) == (None, 0)
    assert (raised.weight, raised.lattice_bits) == (HALF, before.lattice_bits)
    assert raised.noise_scale == 2.0
    assert len(table.scopes_read) == 2, "the exact answers are read again"
    (report,) = audited(Path(ledger._store.name)).tables
    assert report.spent == report.recomputed == Fraction(1, 2)
    buy(gate, PlannedMeasurement(BY_SEX, Weight.at_least(1), raised_from=1))
    assert gate.budget().left == 0


def test_a_raised_value_is_the_exact_answer_plus_the_noise_on_the_lattice(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, Fraction(1), table, NoNoise())
    buy(gate, FRESH)
    buy(gate, RAISE)
    assert [list(found.values) for found in gate.measurements()] == [[1.0, 3.0]] * 2


def test_the_noise_that_is_refined_is_the_noise_that_was_drawn(
    ledger: Ledger, table: KnownTable
) -> None:
    """Whatever the exact answers; it may have been drawn by another process."""
    seen: list[tuple[int, ...]] = []

    class Watched(PlantedNoise):
        def refined_laplace(
            self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
        ) -> tuple[int, ...]:
            seen.append(tuple(drawn))
            assert (coarse.weight, fine.weight) == (QUARTER, HALF)
            return super().refined_laplace(coarse, fine, drawn)

    buy(open_table(ledger, SCHEMA, Fraction(1), table, PlantedNoise(-12345)), FRESH)
    buy(open_table(ledger, SCHEMA, Fraction(1), table, Watched(0)), RAISE)
    assert seen == [(-12345, -12345)]


def test_raises_are_there_again_after_a_restart(tmp_path: Path, table: KnownTable) -> None:
    path = tmp_path / "again.ledger"
    with open_ledger(path) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(1), table, SystemNoise())
        buy(gate, FRESH)
        buy(gate, RAISE)
        before, budget = gate.measurements(), gate.budget()
    with open_ledger(path) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(1), table, SystemNoise())
        assert gate.budget() == budget
        for old, new in zip(before, gate.measurements(), strict=True):
            assert new.lattice_values == old.lattice_values
            assert (new.supersedes, new.weight) == (old.supersedes, old.weight)
            assert new.noise_scale == old.noise_scale
            assert fingerprint(new.block) == fingerprint(old.block)
        with pytest.raises(StalePlan):
            buy(gate, RAISE)
        buy(gate, PlannedMeasurement(BY_SEX, Weight.at_least(1), raised_from=1))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[QueryBlock, list[int]]]:
    """Blocks, and the growing weights each is bought at and raised to."""
    units = st.lists(st.integers(2**34, 2**38), min_size=1, max_size=3, unique=True).map(sorted)
    return draw(st.lists(st.tuples(blocks(whole=True), units), min_size=1, max_size=3))


@settings(deadline=None, max_examples=examples(30))
@given(histories())
def test_what_is_paid_after_raises_is_the_table_cost_of_the_last_weights(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[QueryBlock, list[int]]]
) -> None:
    """Brute force: every cell's coefficients, times the weight that each row has in the end."""
    wanted = [(block, units) for block, units in wanted if not block.query.is_constant]
    axes = tuple(IntegerAxis(name=name, low=0, high=SIZES[name] - 1) for name in sorted(SIZES))
    schema = Schema(table="cube", axes=axes, n_records_max=30)
    table = KnownTable(schema, np.zeros((3, len(axes)), dtype=np.int64))
    paid = np.zeros(int(np.prod(list(SIZES.values()))), dtype=object)
    with open_ledger(tmp_path_factory.mktemp("raises") / "ledger") as ledger:
        gate = open_table(ledger, schema, Fraction(10**6), table, NoNoise())
        for block, weights in wanted:
            place: int | None = None
            for units in weights:
                planned = PlannedMeasurement(block, Weight(units), place)
                price = gate.price([planned])
                buy(gate, planned, cap=price.epsilon)
                place = len(gate.measurements()) - 1
            paid += weights[-1] * np.abs(np.array(dense_rows(block), dtype=object)).sum(axis=0)
        recomputed = ledger.history("cube").cost.table_cost()
        assert recomputed.exact
        assert recomputed.units == paid.max()
        assert gate.budget().spent == Fraction(int(paid.max()), UNITS_PER_EPSILON)
    assert audited(Path(ledger._store.name)).problem is None


@pytest.mark.parametrize(
    ("plan", "error", "why"),
    [
        ([replace(RAISE, block=ADULTS)], ValueError, "as if it had other rows"),
        ([replace(RAISE, raised_from=7)], ValueError, "does not exist"),
        ([replace(RAISE, weight=QUARTER)], ValueError, "not larger"),
        ([replace(RAISE, weight=Weight(1))], ValueError, "not larger"),
        (
            [RAISE, replace(RAISE, weight=Weight.at_least(1))],
            ValueError,
            "raises the same measurement twice",
        ),
        ([FRESH, replace(RAISE, weight=Weight.at_least(4096))], TooLarge, "rounded too coarsely"),
        ([replace(RAISE, weight=Weight.at_least(2))], BudgetExhausted, r"costs epsilon 1\.75"),
    ],
)
def test_an_impossible_raise_is_refused_before_anything_is_charged_or_read(
    gate: Gate, table: KnownTable, plan: list[PlannedMeasurement], error: type[Exception], why: str
) -> None:
    n_reads = len(table.scopes_read)
    with pytest.raises(error, match=why):
        buy(gate, *plan)
    assert len(table.scopes_read) == n_reads
    assert gate.budget().spent == Fraction(1, 4)
    assert len(gate.measurements()) == 1
    assert gate.complete_pending() == 0


def test_a_cap_is_held_against_the_difference(gate: Gate, table: KnownTable) -> None:
    with pytest.raises(CostAboveCap):
        buy(gate, RAISE, cap=Fraction(1, 4) - Fraction(1, UNITS_PER_EPSILON))
    assert len(table.scopes_read) == 1
    buy(gate, RAISE, cap=Fraction(1, 4))


def test_the_step_stays_below_a_sixty_fourth_of_the_scale(
    ledger: Ledger, table: KnownTable
) -> None:
    """And below a thousandth of a record from the beginning: a tiny weight may be raised far."""
    gate = open_table(ledger, SCHEMA, Fraction(10**6), table, SystemNoise())
    buy(gate, replace(FRESH, weight=Weight.at_least(Fraction(1, 2**20))))
    with pytest.raises(TooLarge, match="rounded too coarsely"):
        gate.price([replace(RAISE, weight=Weight.at_least(16))])
    gate.price([replace(RAISE, weight=Weight(2**44 - 1))])


@pytest.mark.parametrize("planted", [2**63 - 1, -(2**63), 2**62])
def test_a_value_that_may_have_been_clamped_is_not_raised(
    ledger: Ledger, table: KnownTable, planted: int
) -> None:
    gate = open_table(ledger, SCHEMA, Fraction(1), table, PlantedNoise(planted))
    buy(gate, FRESH)
    with pytest.raises(TooLarge, match="limit of the stored range"):
        buy(gate, RAISE)
    assert gate.budget().spent == Fraction(1, 4)


def test_a_measurement_is_raised_once(gate: Gate, table: KnownTable) -> None:
    buy(gate, RAISE)
    n_reads = len(table.scopes_read)
    for weight in (HALF, Weight.at_least(Fraction(3, 4))):
        with pytest.raises(StalePlan, match="already been raised"):
            buy(gate, replace(RAISE, weight=weight))
    assert len(table.scopes_read) == n_reads
    assert gate.budget().spent == Fraction(1, 2)


def test_of_two_raises_of_one_measurement_one_is_paid_and_the_other_planned_again(
    gate: Gate,
) -> None:
    outcomes: list[str] = []

    def ask() -> None:
        try:
            buy(gate, RAISE)
            outcomes.append("raised")
        except StalePlan:
            outcomes.append("stale")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["raised"] + ["stale"] * 7
    assert gate.budget().spent == Fraction(1, 2)


def two_sided(total: float) -> float:
    """The sum of the magnitudes of Laplace variables of scale 1 is a gamma variable."""
    law = stats.gamma(N_ROWS)
    return 2 * min(float(law.cdf(total)), float(law.sf(total)))


def test_raised_answers_have_the_noise_of_their_weight_independent_of_the_step(
    tmp_path: Path,
) -> None:
    wide = Schema(
        table="wide", axes=(IntegerAxis(name="x", low=1, high=N_ROWS),), n_records_max=10**6
    )
    records = np.repeat(np.arange(N_ROWS, dtype=np.int64), 3)[:, np.newaxis]
    rows = QueryBlock(counting(), Partition(("x",), np.arange(N_ROWS, dtype=np.int64)))
    with open_ledger(tmp_path / "wide.ledger") as ledger:
        gate = open_table(ledger, wide, Fraction(1), KnownTable(wide, records), SystemNoise())
        buy(gate, PlannedMeasurement(rows, QUARTER))
        buy(gate, PlannedMeasurement(rows, HALF, raised_from=0))
        buy(gate, PlannedMeasurement(rows, QUARTER))
        earlier, raised, anew = (found.values - 3 for found in gate.measurements())
    magnitudes = np.abs(raised) * float(HALF.exact)
    assert stats.kstest(magnitudes, stats.expon().cdf).pvalue > P_VALUE_MIN
    for factor, is_right in ((1.0, True), (1.1, False), (0.9, False)):
        assert (two_sided(magnitudes.sum() * factor) > P_VALUE_MIN) == is_right
    # Steps and what comes of them are uncorrelated; of two fresh draws they are not.
    assert stats.spearmanr(raised, earlier - raised).pvalue > P_VALUE_MIN
    assert stats.spearmanr(np.abs(raised), np.abs(earlier - raised)).pvalue > P_VALUE_MIN
    assert stats.spearmanr(anew, earlier - anew).pvalue < P_VALUE_MIN
