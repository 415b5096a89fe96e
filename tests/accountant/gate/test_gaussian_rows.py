"""Rows with Gaussian noise at the gate: priced cell by cell, raised, replayed, and audited."""

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accountant.auditor.verify import verify
from accountant.cost.summed_costs import TableCost
from accountant.cost.zcdp_account import GaussianAccount, best_terms
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.charged import ChargedBlock, ChargedGaussian
from accountant.ledger.entries import Entry
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import GaussianNoise, SystemNoise
from cube.axis import IntegerAxis
from cube.measurement import (
    UNITS_PER_EPSILON,
    GaussianTerms,
    Measurement,
    PlannedMeasurement,
    Precision,
    Weight,
)
from cube.query import Partition, QueryBlock, counting
from cube.refusals import InvalidRequest
from cube.schema import Schema
from tests.support.audited import Change, assert_not_opened, problem_with, to
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples
from tests.support.fakes import KnownTable, NoNoise
from tests.support.gaussian import BILLIONTH, COUNTS, RHO, TERMS, with_gaussian_noise
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


def test_noise_of_rows_and_of_statistics_are_not_mistaken_for_each_other() -> None:
    of_rows = GaussianNoise.for_precision(FINE)
    of_statistics = GaussianNoise.for_rho(RHO, 1)
    ChargedBlock(BY_SEX, of_rows)
    ChargedGaussian(COUNTS, of_statistics)
    with pytest.raises(TypeError, match="needs a precision"):
        ChargedBlock(BY_SEX, of_statistics)
    with pytest.raises(TypeError, match="paid for in rho"):
        ChargedGaussian(COUNTS, of_rows)


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


def test_rows_and_statistics_share_the_constant(gate: Gate, ledger: Ledger) -> None:
    buy(gate, rows())
    asked = with_gaussian_noise(COUNTS)
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=asked)
    account = GaussianAccount(TERMS, RHO.units)
    assert payment.units == account.units - CONSTANT
    assert gate.history.units_spent == account.units + units_of(FINE)
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    assert verdict.tables[0].gaussian == Fraction(account.units, UNITS_PER_EPSILON)


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


def test_what_is_foreseen_is_what_is_measured_but_for_its_values(gate: Gate) -> None:
    for planned in (rows(), rows(FINER, 0), PlannedMeasurement(BY_SEX, QUARTER)):
        foreseen = gate.history.raises.foreseen(planned)
        buy(gate, planned)
        bought = gate.measurements()[-1]
        assert foreseen.noise_scale == pytest.approx(bought.noise_scale, rel=1e-9)
        assert foreseen.lattice_values == (0, 0)
        weight, bits, _, _, supersedes = said(bought)
        assert (foreseen.weight, foreseen.lattice_bits) == (weight, bits)
        assert foreseen.supersedes == supersedes


@pytest.mark.parametrize(
    ("planned", "why"),
    [
        (rows(FINE, 0), "not larger"),
        (rows(FINER, 1), "noise of another kind"),
        (rows(FINER, 7), "does not exist"),
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
    with pytest.raises(StalePlan, match="already been raised"):
        buy(gate, rows(FINER, 0))
    buy(gate, rows(Precision(2 * FINER.units), 1))
    assert gate.measurements()[-1].supersedes == 1


def test_a_raise_that_waits_is_known_at_the_precision_that_it_leads_to(gate: Gate) -> None:
    buy(gate, rows())
    payment = gate.charge([rows(FINER, 0)], ANN, epsilon_cap=None)
    charge = gate.history.pending[payment.seq]
    [waiting] = gate.history.raises.planned(charge)
    assert (waiting.weight, waiting.raised_from, waiting.terms) == (FINER, 0, TERMS)
    with pytest.raises(StalePlan, match="is pending"):
        buy(gate, rows(Precision(2 * FINER.units), 0))
    assert gate.complete(payment.seq) is not None
    assert gate.measurements()[-1].weight == FINER


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


histories = st.lists(
    st.tuples(
        blocks(whole=True).filter(lambda block: not block.query.is_constant),
        st.lists(st.integers(1, 2**90), min_size=1, max_size=3, unique=True).map(sorted),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=examples(30))
@given(histories)
def test_what_is_paid_for_both_kinds_after_raises_is_the_cost_of_the_dearest_cell(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[QueryBlock, list[int], bool]]
) -> None:
    """Brute force: every cell's coefficients, times weights or, squared, times each increment."""
    axes = tuple(IntegerAxis(name=name, low=0, high=SIZES[name] - 1) for name in sorted(SIZES))
    schema = Schema(table="cube", axes=axes, n_records_max=30)
    source = KnownTable(schema, np.zeros((3, len(axes)), dtype=np.int64))
    paid = [Fraction(0)] * int(np.prod(list(SIZES.values())))
    with open_ledger(tmp_path_factory.mktemp("mixed") / "ledger") as ledger:
        gate = open_table(ledger, schema, Fraction(10**9), source, NoNoise())
        for block, precisions, is_gaussian in wanted:
            sizes = [sum(map(abs, column)) for column in zip(*dense_rows(block), strict=True)]
            place: int | None = None
            for before, units in itertools.pairwise([0, *precisions]):
                if is_gaussian:
                    bought = PlannedMeasurement(block, Precision(units), place, TERMS)
                    rate = TERMS.order * Fraction(units - before, 2**60)
                    added = [Fraction(math.ceil(rate * size**2)) for size in sizes]
                else:
                    weight = Weight(units // 2**52 + len(precisions))
                    bought = PlannedMeasurement(block, weight)
                    added = [weight.units * size for size in sizes]
                price = gate.price([bought])
                buy(gate, bought, cap=price.epsilon)
                place = len(gate.measurements()) - 1
                paid = [one + more for one, more in zip(paid, added, strict=True)]
        constant = CONSTANT if gate.history.gaussian.terms else 0
        assert gate.history.cost.table_cost() == TableCost(int(max(paid)), exact=True)
        assert gate.history.units_spent == max(paid) + constant
        verdict = verify(ledger.entries())
        assert verdict.problem is None
        assert verdict.tables[0].exact
        assert verdict.tables[0].recomputed == gate.budget().spent


def test_raised_values_have_the_noise_of_their_precision_independent_of_the_step(
    tmp_path: Path,
) -> None:
    """A sound gate fails once in a billion runs; a deviation 10 % off is rejected."""
    n_rows = 10_000
    wide = Schema(
        table="wide", axes=(IntegerAxis(name="x", low=1, high=n_rows),), n_records_max=10**6
    )
    records = np.repeat(np.arange(n_rows, dtype=np.int64), 3)[:, np.newaxis]
    block = QueryBlock(counting(), Partition(("x",), np.arange(n_rows, dtype=np.int64)))
    with open_ledger(tmp_path / "wide.ledger") as ledger:
        gate = open_table(ledger, wide, Fraction(1), KnownTable(wide, records), SystemNoise())
        buy(gate, PlannedMeasurement(block, FINE, None, TERMS))
        buy(gate, PlannedMeasurement(block, FINER, 0, TERMS))
        buy(gate, PlannedMeasurement(block, Precision(2 * FINER.units), 1, TERMS))
        found = gate.measurements()
    earlier, raised, again = (one.values - 3 for one in found)
    for one in found:
        squares = float(np.square((one.values - 3) / one.deviation).sum())
        for factor, is_right in ((1.0, True), (1.1, False), (0.9, False)):
            assert (two_sided(squares * factor**2, n_rows) > 1e-9) is is_right
    assert stats.kstest(again / found[2].deviation, stats.norm.cdf).pvalue > 1e-9
    for fine, coarse in ((raised, earlier), (again, raised)):
        assert stats.pearsonr(fine, coarse - fine).pvalue > 1e-9
    assert stats.pearsonr(raised, again - raised).pvalue < 1e-9, "the other way round they depend"


def two_sided(total: float, n_rows: int) -> float:
    """How unlikely a sum of squares of standard normal variables is."""
    law = stats.chi2(n_rows)
    return 2 * min(float(law.cdf(total)), float(law.sf(total)))


CHARGE, TOLD, RAISE = 3, 4, 5  # entries of the ledger below
BLOCK = ("blocks", 0)
COARSE_SCALE = GaussianNoise.for_precision(FINE).noise_scale


def cheaper(body: dict[str, object]) -> None:
    body["units_after"] = units_of(FINE) + CONSTANT - 1


LIES: list[tuple[int, Change, str]] = [
    (CHARGE, to(FINE.units // 2, *BLOCK, "precision_units"), "smaller than the paid"),
    (CHARGE, to((COARSE_SCALE / 2).hex(), *BLOCK, "noise_scale"), "smaller than the paid"),
    (CHARGE, to(0, *BLOCK, "precision_units"), "below 1|a precision must be"),
    (CHARGE, to(2**103 + 1, *BLOCK, "precision_units"), "a precision"),
    (CHARGE, lambda body: body.pop("normal"), "must have terms if it pays for Gaussian noise"),
    (RAISE, to("1/999999999", "normal", "delta"), "differ from the table's"),
    (RAISE, to("300", "normal", "order"), "differ from the table's"),
    (RAISE, to(1, *BLOCK, "raised_from"), "does not exist"),
    (RAISE + 2, to(0, *BLOCK, "raised_from"), "raised twice|already been raised"),
    (RAISE, to(2**103 - FINE.units + 1, *BLOCK, "precision_units"), "a precision"),
    (TOLD, to([[4, 2, 1]], "lattice_values"), "each charged row|values for"),
]
FOR_THE_AUDITOR_ALONE: list[tuple[int, Change, str]] = [
    (CHARGE, to(7, *BLOCK, "weight_units"), "the field 'weight_units' is unknown"),
    (CHARGE, to(2 * FINE.units, *BLOCK, "precision_units"), "the rows cost"),
    (CHARGE, to("1/1000000001", "normal", "delta"), "rows cost"),
    (CHARGE, cheaper, "the rows cost"),
    (RAISE, to(FINER.units, *BLOCK, "precision_units"), "the rows cost"),
]


@pytest.fixture
def entries(gate: Gate, ledger: Ledger) -> list[Entry]:
    buy(gate, rows())
    buy(gate, rows(FINER, 0))
    buy(gate, rows(Precision(2 * FINER.units), 1))
    return list(ledger.entries())


@pytest.mark.parametrize(("seq", "change", "said"), [*LIES, *FOR_THE_AUDITOR_ALONE])
def test_the_auditor_finds_a_lie_about_gaussian_rows(
    entries: list[Entry], seq: int, change: Change, said: str
) -> None:
    assert re.search(f"entry {seq}: .*({said})", problem_with(entries, seq, change))


@pytest.mark.parametrize(("seq", "change"), [(seq, change) for seq, change, _ in LIES])
def test_the_server_does_not_open_such_a_ledger_either(
    entries: list[Entry], seq: int, change: Change
) -> None:
    assert_not_opened(entries, seq, change)
