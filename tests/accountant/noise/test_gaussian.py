"""Gaussian noise: sensitivity, exact loss, and the law of draws; wrong laws are rejected."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from accountant.exact.exact_answers import exact_answers, exact_distance
from accountant.noise.lattice_noise import (
    LATTICE_BITS_MAX,
    GaussianNoise,
    SystemNoise,
    sensitivity_of,
)
from accountant.source import CellCounts
from cube.axis import CategoryAxis
from cube.measurement import PRECISION_UNITS_MAX, RHO_UNITS_MAX, Precision, Rho
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term
from cube.schema import Schema
from cube.statistic import Distance, GaussianCounts
from tests.support.examples import examples

rhos = st.one_of(
    st.integers(1, RHO_UNITS_MAX).map(Rho),
    st.integers(0, 63).map(lambda bits: Rho(2**bits)),
)
SENSITIVITIES = st.one_of(st.just(1), st.integers(1, 2**45))

N_SAMPLES = 200_000
P_VALUE_MIN = 1e-9  # a sound source fails one run in a billion
SCALE_ERROR_CAUGHT = 0.05
Samples = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


paid = st.one_of(
    st.tuples(rhos, SENSITIVITIES),
    st.tuples(st.integers(1, PRECISION_UNITS_MAX).map(Precision), st.just(1)),
    st.tuples(st.integers(0, 103).map(lambda bits: Precision(2**bits)), st.just(1)),
)


@settings(deadline=None, max_examples=examples(600))
@given(paid)
def test_a_lattice_is_fine_enough_and_its_noise_is_what_the_rho_allows(
    paid: tuple[Rho | Precision, int],
) -> None:
    """Or the precision, of a row: at a sensitivity of 1."""
    rho, sensitivity = paid
    noise = GaussianNoise.for_rho(rho, sensitivity)
    moved = Fraction(sensitivity * 2**noise.lattice_bits)
    lost = (moved / Fraction(noise.scale_in_steps)) ** 2 / 2
    assert rho.exact * (1 - Fraction(1, 2**38)) < lost <= rho.exact
    assert noise.scale_in_steps >= 2**20 * (1 - 2**-30)
    assert noise.lattice_bits == 0 or noise.scale_in_steps < 2**21
    assert noise.lattice_bits <= LATTICE_BITS_MAX
    assert Fraction(noise.noise_scale) * 2**noise.lattice_bits == Fraction(noise.scale_in_steps)
    assert len(SystemNoise().discrete_gaussian(noise, 1)) == 1, "OpenDP's own account agrees"


def test_noise_smaller_than_its_rho_allows_cannot_be_stated_or_drawn() -> None:
    noise = GaussianNoise.for_rho(Rho.at_most(Fraction(1, 2)), 3)
    with pytest.raises(ValueError, match="smaller than the paid rho"):
        GaussianNoise(noise.rho, 3, noise.lattice_bits, noise.scale_in_steps * 0.999)
    with pytest.raises(ValueError, match="smaller than the paid rho"):
        GaussianNoise(noise.rho, 4, noise.lattice_bits, noise.scale_in_steps)
    with pytest.raises(ValueError, match="sensitivity must be at least 1"):
        GaussianNoise(noise.rho, 0, noise.lattice_bits, noise.scale_in_steps)
    precise = GaussianNoise.for_precision(Precision(2**90))
    with pytest.raises(ValueError, match="smaller than the paid rho"):
        GaussianNoise(precise.rho, 1, precise.lattice_bits, precise.scale_in_steps * 0.999)
    with pytest.raises(ValueError, match="the sensitivity must be 1"):
        GaussianNoise(precise.rho, 2, precise.lattice_bits, 2 * precise.scale_in_steps)
    object.__setattr__(noise, "scale_in_steps", noise.scale_in_steps * 0.999)
    with pytest.raises(ValueError, match="smaller than the paid rho"):
        SystemNoise().discrete_gaussian(noise, 1)


def narrow(name: str, size: int) -> CategoryAxis:
    return CategoryAxis(name=name, values=tuple(map(str, range(size))))


SCHEMA = Schema(table="six", axes=(narrow("age", 3), narrow("sex", 2)), n_records_max=1000)
blocks = st.tuples(
    st.lists(st.integers(-3, 3), min_size=6, max_size=6).filter(any),
    st.lists(st.integers(-1, 2), min_size=6, max_size=6).filter(
        lambda labels: max(labels) >= 0 and {*range(max(labels) + 1)} <= {*labels}
    ),
)


def cells_of(table: np.ndarray) -> CellCounts:
    levels = tuple(np.ascontiguousarray(axis) for axis in np.nonzero(table))
    return CellCounts(levels, table[levels].astype(np.int64))


@given(blocks, st.lists(st.integers(0, 4), min_size=6, max_size=6), st.data())
def test_one_record_moves_what_is_released_by_no_more_than_the_sensitivity(
    made: tuple[list[int], list[int]], counts: list[int], data: st.DataObject
) -> None:
    """In L2, for every cell of a small table, rows and distances alike."""
    coefficients, labels = (np.array(one).reshape(3, 2) for one in made)
    factor = Factor(("age", "sex"), coefficients)
    query = LinearQuery((Term(Fraction(1), (factor,)),)).primitive()[0]
    block = QueryBlock(query, Partition(("age", "sex"), labels))
    numbers = data.draw(st.lists(st.integers(-9, 9), min_size=block.n_rows, max_size=block.n_rows))
    distance = Distance(block, tuple(numbers))
    squared = sensitivity_of(GaussianCounts(block)) ** 2
    assert sensitivity_of(distance) ** 2 == squared
    before = np.array(counts).reshape(3, 2)
    attained = 0
    for row, column in itertools.product(range(3), range(2)):
        after = before.copy()
        after[row, column] += 1
        rows = [exact_answers(block, cells_of(one), SCHEMA) for one in (before, after)]
        moved = sum((new - old) ** 2 for old, new in zip(*rows, strict=True))
        old, new = (exact_distance(distance, cells_of(one), SCHEMA) for one in (before, after))
        assert max(moved, (new - old) ** 2) <= squared
        attained = max(attained, moved)
    assert attained == squared or -1 in labels, "it is as small as it can be"


@pytest.mark.parametrize("order", [1.5, 3.0, 34.0])
@pytest.mark.parametrize("shift", [1, 5, 16])
def test_the_renyi_divergence_of_the_discrete_law_is_no_more_than_was_paid(
    order: float, shift: int
) -> None:
    """Summed over all that can be drawn, on a lattice coarse enough to walk over."""
    sigma = 20
    with mpmath.workdps(50):
        paid = mpmath.mpf(order) * shift**2 / (2 * sigma**2)
        steps = range(-4000, 4001)
        weights = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in steps}
        total = mpmath.fsum(weights.values())
        terms = (
            (weights[k] / total) ** order * (weights[k - shift] / total) ** (1 - order)
            for k in steps
            if k - shift in weights
        )
        divergence = mpmath.log(mpmath.fsum(terms)) / (order - 1)
        assert divergence <= paid * (1 + mpmath.mpf(10) ** -20)
        assert divergence >= paid * mpmath.mpf("0.99")


@pytest.fixture(scope="module")
def samples() -> Samples:
    """Draws in units of their deviation."""
    noise = GaussianNoise.for_rho(Rho.at_most(Fraction(1, 7)), 1)
    drawn = SystemNoise().discrete_gaussian(noise, N_SAMPLES)
    return np.array(drawn, dtype=np.float64) / noise.scale_in_steps


def scale_p_value(samples: Samples, scale: float) -> float:
    """A chi-square test over 40 equally likely bins."""
    counts, _ = np.histogram(stats.norm.cdf(samples / scale), bins=40, range=(0, 1))
    return float(stats.chisquare(counts).pvalue)


def test_the_deviation_is_the_one_that_was_paid_for(samples: Samples) -> None:
    assert scale_p_value(samples, 1.0) > P_VALUE_MIN


@pytest.mark.parametrize("factor", [1 - SCALE_ERROR_CAUGHT, 1 + SCALE_ERROR_CAUGHT])
def test_the_check_of_the_deviation_has_teeth(samples: Samples, factor: float) -> None:
    assert scale_p_value(samples, factor) < P_VALUE_MIN


def test_draws_do_not_follow_each_other(samples: Samples) -> None:
    # The product of neighbours has mean 0 and variance 1 when they are independent.
    z_score = float((samples[1:] * samples[:-1]).sum()) / math.sqrt(N_SAMPLES - 1)
    assert 2 * stats.norm.sf(abs(z_score)) > P_VALUE_MIN


@settings(deadline=None)
@given(st.integers(-(2**40), 2**40), st.integers(-(2**70), 2**70), rhos)
def test_a_sampler_held_within_int64_leaves_no_trace(exact: int, drawn: int, rho: Rho) -> None:
    noise = GaussianNoise.for_rho(rho, 1)
    held = max(-(2**63), min(2**63 - 1, drawn))
    answer_bound = 2**62 >> noise.lattice_bits
    if abs(exact) <= answer_bound:
        unlimited = noise.on_lattice([exact], [drawn], answer_bound)
        assert noise.on_lattice([exact], [held], answer_bound) == unlimited
