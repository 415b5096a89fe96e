"""Gaussian noise that another ledger asks for: what it costs the holder, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.cost.zcdp_account import GaussianAccount, best_terms
from accountant.gate import Asked, Gate, open_table
from accountant.gate.asked import AskedRows, AskedStatistic, Raised
from accountant.ledger import ChargedBlock, ChargedGaussian, Ledger, Payer, open_ledger
from accountant.noise import GaussianNoise, LatticeNoise, SystemNoise
from cube.measurement import (
    UNITS_PER_EPSILON,
    GaussianTerms,
    PlannedMeasurement,
    Precision,
    Rho,
    Weight,
)
from cube.query import Factor, Partition, QueryBlock, counting
from cube.refusals import InvalidRequest, TooLarge
from cube.statistic import Distance, GaussianCounts
from tests.support.fakes import KnownTable
from tests.support.square_tables import records_of, schema_of

COUNTS = np.array([[5, 70], [11, 0], [400, 9]], dtype=np.int64)
SCHEMA = schema_of({"a": 3, "b": 2})
ONE, OTHER = Payer("one"), Payer("other")
EVERYTHING = QueryBlock(counting())
BY_A = QueryBlock(counting(), Partition(("a",), np.arange(3)))
THRICE = QueryBlock(counting([Factor(("b",), np.array([1, 3]))]))
TERMS = best_terms(Fraction(1, 10**9), Fraction(2))
OPENING = Fraction(GaussianAccount(TERMS).units, UNITS_PER_EPSILON)
PRECISION, RHO = Precision.at_least(Fraction(1, 400)), Rho.at_most(Fraction(1, 500))
DISTANCE = Distance(BY_A, (20, 20, 300))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "holder.ledger") as ledger:
        yield ledger


@pytest.fixture
def gate(ledger: Ledger) -> Gate:
    source = KnownTable(SCHEMA, records_of(COUNTS))
    return open_table(ledger, SCHEMA, Fraction(4), source, SystemNoise())


def rows(
    name: str,
    block: QueryBlock = BY_A,
    noise: GaussianNoise | LatticeNoise | None = None,
    raised: Raised | None = None,
) -> Asked:
    noise = noise or GaussianNoise.for_precision(PRECISION)
    return Asked(name, "", (AskedRows(ChargedBlock(block, noise), raised),))


def statistic(name: str, charged: ChargedGaussian) -> Asked:
    return Asked(name, "", (), (AskedStatistic(charged),))


def distance(name: str) -> Asked:
    return statistic(name, ChargedGaussian(DISTANCE, GaussianNoise.for_rho(RHO, 1)))


def told(
    gate: Gate, asked: Asked, payer: Payer = ONE, terms: GaussianTerms | None = TERMS
) -> tuple[tuple[int, ...], ...]:
    agreed = Asked.read(replace(asked, generation=gate.state).text)
    priced = gate.price_for(agreed, payer, terms).epsilon
    before = gate.budget().spent
    seq = gate.charge_for(agreed, payer, terms)
    assert gate.budget().spent - before in {priced, 0}
    gate.complete(seq)
    found = gate.told(seq)
    assert found is not None
    return (*found.values, found.released)


def of_rows(precision: Precision, size: int = 1) -> Fraction:
    """What a row costs at these terms, by hand: whole units, rounded up."""
    units = TERMS.order * precision.exact * size**2 * UNITS_PER_EPSILON
    return Fraction(-(-units.numerator // units.denominator), UNITS_PER_EPSILON)


def test_rows_cost_the_holders_order_and_its_constant_once(gate: Gate, ledger: Ledger) -> None:
    first = told(gate, rows("r1"))
    assert gate.budget().spent == OPENING + of_rows(PRECISION)
    assert told(gate, rows("r1")) == first
    told(gate, rows("r2", THRICE))
    assert gate.budget().spent == OPENING + of_rows(PRECISION) + of_rows(PRECISION, 3)
    noisy = gate.history.measurements[0]
    assert np.abs(noisy.values - COUNTS.sum(axis=1)).max() < 8 * noisy.deviation
    assert not np.array_equal(noisy.values, COUNTS.sum(axis=1))
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    assert verdict.tables[0].recomputed == gate.budget().spent
    assert verdict.tables[0].delta == TERMS.delta


def test_a_distance_costs_its_rho_wherever_a_record_is(gate: Gate, ledger: Ledger) -> None:
    first = told(gate, distance("r1"))
    account = GaussianAccount(TERMS, RHO.units)
    assert gate.budget().spent == Fraction(account.units, UNITS_PER_EPSILON)
    assert told(gate, distance("r1")) == first
    assert verify(ledger.entries()).problem is None


def test_a_table_that_has_gaussian_noise_keeps_its_terms(gate: Gate) -> None:
    """Its own analysts began with it; what its owner expects has changed since."""
    own = PlannedMeasurement(EVERYTHING, PRECISION, terms=TERMS)
    gate.measure([own], OTHER, epsilon_cap=None)
    before = gate.budget().spent
    told(gate, rows("r1"), terms=best_terms(TERMS.delta, Fraction(1)))
    assert gate.payments()[-1].charge.terms == TERMS
    assert gate.budget().spent - before == of_rows(PRECISION)
    n_entries = gate.position
    with pytest.raises(InvalidRequest, match="with another delta"):
        told(gate, rows("r2"), terms=best_terms(Fraction(1, 10**8), Fraction(2)))
    assert gate.position == n_entries


def test_a_raise_is_another_value_at_its_own_price(gate: Gate, ledger: Ledger) -> None:
    told(gate, rows("r1"))
    (more,) = told(gate, rows("r2", raised=Raised("r1", 0)))[:1]
    assert gate.budget().spent == OPENING + 2 * of_rows(PRECISION)
    last = gate.history.measurements[-1]
    assert last.supersedes == 0
    assert last.precision.units == 2 * PRECISION.units
    assert last.lattice_values != more  # what is told was drawn; the average is everybody's own
    told(gate, rows("r3", raised=Raised("r2", 0)))
    assert gate.history.measurements[-1].precision.units == 3 * PRECISION.units
    assert verify(ledger.entries()).problem is None


def test_a_row_that_somebody_else_raised_gets_the_same_noise_for_the_same_price(gate: Gate) -> None:
    told(gate, rows("r1"))
    twice = Precision(2 * PRECISION.units)
    block = gate.history.measurements[0].block
    gate.measure([PlannedMeasurement(block, twice, 0, TERMS)], OTHER, epsilon_cap=None)
    before = gate.budget().spent
    told(gate, rows("r2", raised=Raised("r1", 0)))
    assert gate.budget().spent - before == of_rows(PRECISION)
    assert gate.history.measurements[-1].supersedes is None


def test_without_a_delta_no_gaussian_noise_is_drawn(gate: Gate) -> None:
    n_entries = gate.position
    for asked in (rows("r1"), distance("r1")):
        with pytest.raises(InvalidRequest, match="has to declare a delta"):
            told(gate, asked, terms=None)
    assert gate.position == n_entries


HONEST = GaussianNoise.for_precision(PRECISION)
WIDE = QueryBlock(counting([Factor(("b",), np.array([1, 2**40]))]))
OF_LAPLACE = LatticeNoise.for_weight(Weight.at_least(0.5), Fraction(1))
HOSTILE = {
    "twice the scale": rows("r2", noise=replace(HONEST, scale_in_steps=2 * HONEST.scale_in_steps)),
    "a scale in the last bit": rows(
        "r2", noise=replace(HONEST, scale_in_steps=float(np.nextafter(HONEST.scale_in_steps, 1e99)))
    ),
    "another lattice": rows(
        "r2",
        noise=replace(HONEST, lattice_bits=0, scale_in_steps=HONEST.noise_scale),
    ),
    "no room": rows("r2", WIDE),
    "other axes": rows("r2", QueryBlock(counting([Factor(("z",), np.array([0, 1]))]))),
    "never measured": rows("r2", raised=Raised("never", 0)),
    "another place": rows("r2", raised=Raised("r1", 1)),
    "other rows": rows("r2", EVERYTHING, raised=Raised("r1", 0)),
    "Laplace noise raised": rows("r2", raised=Raised("laplace", 0)),
    "raised with Laplace noise": rows("r2", noise=OF_LAPLACE, raised=Raised("r1", 0)),
    "more than the most": rows(
        "r2", noise=GaussianNoise.for_precision(Precision.at_least(8)), raised=Raised("r1", 0)
    ),
    "a distance with twice the scale": statistic(
        "r2",
        ChargedGaussian(
            DISTANCE,
            replace(
                GaussianNoise.for_rho(RHO, 1),
                scale_in_steps=2 * GaussianNoise.for_rho(RHO, 1).scale_in_steps,
            ),
        ),
    ),
    "counts beside the history": statistic(
        "r2", ChargedGaussian(GaussianCounts(BY_A), GaussianNoise.for_rho(RHO, 1))
    ),
}


@pytest.mark.parametrize("way", HOSTILE)
def test_what_does_not_fit_charges_nothing(gate: Gate, way: str) -> None:
    told(gate, rows("r1"))
    told(gate, rows("laplace", noise=OF_LAPLACE))
    before = gate.position
    agreed = replace(HOSTILE[way], generation=gate.state)
    with pytest.raises((InvalidRequest, TooLarge)):
        gate.price_for(agreed, ONE, TERMS)
    with pytest.raises((InvalidRequest, TooLarge)):
        gate.charge_for(Asked.read(agreed.text), ONE, TERMS)
    assert gate.position == before


@pytest.mark.parametrize("asked", [rows("r1"), distance("r1")], ids=["rows", "distance"])
def test_less_noise_than_is_paid_for_cannot_be_asked_for(asked: Asked) -> None:
    charged = asked.rows[0].charged.noise if asked.rows else GaussianNoise.for_rho(RHO, 1)
    for factor in (0.5, 1 - 2**-30):
        text = asked.text.replace(charged.noise_scale.hex(), (charged.noise_scale * factor).hex())
        assert text != asked.text
        with pytest.raises(InvalidRequest, match="is damaged"):
            Asked.read(text)


def test_the_most_noise_that_can_be_paid_for_is_drawn(gate: Gate, ledger: Ledger) -> None:
    """What is charged must be measured, or it would wait for ever: also noise beyond 64 bits."""
    told(gate, rows("r1", noise=GaussianNoise.for_precision(Precision(1))))
    far = Distance(QueryBlock(counting([Factor(("b",), np.array([1, 2**40]))])), (0,))
    told(gate, statistic("r2", ChargedGaussian(far, GaussianNoise.for_rho(Rho(1), 2**40))))
    assert not gate.history.pending
    assert verify(ledger.entries()).problem is None


def test_a_statistic_of_a_larger_sensitivity_gets_more_noise(gate: Gate) -> None:
    """A request with the noise of a smaller one cannot even be read."""
    wide = Distance(THRICE, (7,))
    charged = ChargedGaussian(wide, GaussianNoise.for_rho(RHO, 3))
    text = statistic("r1", charged).text.replace(
        charged.noise.noise_scale.hex(), GaussianNoise.for_rho(RHO, 1).noise_scale.hex()
    )
    with pytest.raises(InvalidRequest, match="is damaged"):
        Asked.read(text)
    told(gate, statistic("r1", charged))
    assert gate.budget().spent == Fraction(GaussianAccount(TERMS, RHO.units).units, 2**40)
