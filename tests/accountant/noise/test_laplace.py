"""Laplace noise: exact loss by enumeration, and the law of draws; wrong laws are rejected."""

import importlib
import inspect
import itertools
import math
import pkgutil
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import accountant
from accountant.cost.history_cost import CostState
from accountant.noise.lattice_noise import LATTICE_BITS_MAX, LatticeNoise, SystemNoise
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.refusals import TooLarge
from tests.support.cubes import blocks, dense_rows
from tests.support.examples import examples

weights = st.one_of(
    st.integers(1, WEIGHT_UNITS_MAX).map(Weight),
    st.integers(0, 52).map(lambda bits: Weight(2**bits)),
)

N_SAMPLES = 200_000
P_VALUE_MIN = 1e-9  # a sound source fails one run in a billion
SCALE_ERROR_CAUGHT = 0.05


@settings(deadline=None)
@given(weights)
def test_a_lattice_is_fine_enough_and_its_noise_is_what_the_weight_allows(weight: Weight) -> None:
    noise = LatticeNoise.for_weight(weight)
    step = Fraction(1, 2**noise.lattice_bits)
    assert step <= Fraction(1, 2**20) / weight.exact or (step == 1 and weight.exact <= 1)
    assert noise.lattice_bits == 0 or 2 * step > Fraction(1, 2**20) / weight.exact
    assert noise.lattice_bits <= LATTICE_BITS_MAX
    loss_per_unit = 2**noise.lattice_bits / Fraction(noise.scale_in_steps)
    assert weight.exact * (1 - Fraction(1, 2**51)) < loss_per_unit <= weight.exact
    assert Fraction(noise.noise_scale) == Fraction(noise.scale_in_steps) * step


@settings(max_examples=examples(500), deadline=None)
@given(weights)
def test_opendp_agrees_that_the_noise_costs_no_more_than_its_weight(weight: Weight) -> None:
    """`SystemNoise` refuses to draw otherwise."""
    assert len(SystemNoise().discrete_laplace(LatticeNoise.for_weight(weight), 1)) == 1


def test_noise_smaller_than_its_weight_allows_cannot_be_stated_or_drawn() -> None:
    noise = LatticeNoise.for_weight(Weight(2**40))
    with pytest.raises(ValueError, match="smaller than the paid weight"):
        LatticeNoise(noise.weight, noise.lattice_bits, noise.scale_in_steps * 0.999)
    object.__setattr__(noise, "scale_in_steps", noise.scale_in_steps * 0.999)
    with pytest.raises(ValueError, match="smaller than the paid weight"):
        SystemNoise().discrete_laplace(noise, 1)


@st.composite
def coarse_plans(draw: st.DrawFn) -> list[PlannedMeasurement]:
    """Weights near 2**-20, where the lattice is coarse enough to walk over every step."""
    wanted = blocks(whole=True).filter(lambda block: 0 < block.query.bound <= 200)
    return [
        PlannedMeasurement(block, Weight(draw(st.integers(2**18, 2**21))))
        for block in draw(st.lists(wanted, min_size=1, max_size=3))
    ]


@settings(deadline=None)
@given(coarse_plans(), st.integers(0, 71))
def test_the_exact_loss_between_neighbours_is_what_was_charged(
    plan: list[PlannedMeasurement], cell: int
) -> None:
    """Over every output near two neighbouring tables, where the ratio of densities moves.

    The rows are independent, so the largest log-ratio is the sum of the rows' largest. Where the
    scale is exactly the inverse of the weight, loss and charge are equal, and only the rounding of
    60 digits of arithmetic lies between them.
    """
    charged = CostState().charged(plan).table_cost()
    loss = mpmath.mpf(0)
    paid_at_cell = Fraction(0)
    with mpmath.workdps(60):
        for planned in plan:
            noise = LatticeNoise.for_weight(planned.laplace_weight)
            for row in dense_rows(planned.block):
                shift = int(row[cell]) << noise.lattice_bits
                loss += _largest_log_ratio(shift, noise.scale_in_steps)
                paid_at_cell += planned.weight.exact * abs(row[cell])
        exact = mpmath.mpf(paid_at_cell.numerator) / paid_at_cell.denominator
        assert loss <= exact * (1 + mpmath.mpf(10) ** -45)
        assert loss >= exact * (1 - mpmath.mpf(2) ** -45), "the charge is no larger than it must be"
    assert paid_at_cell * 2**40 <= charged.units


def _largest_log_ratio(shift: int, scale: float) -> mpmath.mpf:
    """The largest ``log Pr(out | 0) / Pr(out | shift)``, either way round, for one row."""
    outputs = range(min(0, shift) - 2, max(0, shift) + 3)
    ratios = [
        mpmath.log(_probability(output, scale)) - mpmath.log(_probability(output - shift, scale))
        for output in outputs
    ]
    return max(*ratios, -min(ratios))


def _probability(step: int, scale: float) -> mpmath.mpf:
    decay = mpmath.exp(-1 / mpmath.mpf(scale))
    return (1 - decay) / (1 + decay) * decay ** abs(step)


@settings(deadline=None)
@given(
    st.integers(-(2**40), 2**40),
    st.integers(-(2**70), 2**70),
    st.integers(WEIGHT_UNITS_MAX // 2**20, WEIGHT_UNITS_MAX),
)
@example(-(2**40), 2**70, UNITS_PER_EPSILON)  # the noise was held back, and the answer is far off 0
@example(2**40, -(2**70), UNITS_PER_EPSILON)
def test_a_sampler_held_within_int64_leaves_no_trace(exact: int, drawn: int, units: int) -> None:
    """Whatever the unlimited noise, clamping the sum hides that the sampler was held back."""
    noise = LatticeNoise.for_weight(Weight(units))
    held = max(-(2**63), min(2**63 - 1, drawn))
    answer_bound = 2**62 >> noise.lattice_bits
    if abs(exact) > answer_bound:
        return
    assert noise.on_lattice([exact], [held], answer_bound) == noise.on_lattice(
        [exact], [drawn], answer_bound
    )


def test_a_noisy_answer_is_the_answer_on_the_lattice_plus_the_noise() -> None:
    noise = LatticeNoise.for_weight(Weight.at_least(0.1))
    assert noise.lattice_bits == 17
    assert noise.on_lattice([5, -3], [7, -1], 10) == (5 * 2**17 + 7, -3 * 2**17 - 1)
    with pytest.raises(ValueError, match="argument"):
        noise.on_lattice([5, -3], [7], 10)


def test_answers_that_leave_no_room_for_noise_are_refused() -> None:
    noise = LatticeNoise.for_weight(Weight.at_least(1))
    assert noise.lattice_bound(2**42) == 2**62
    with pytest.raises(TooLarge):
        noise.lattice_bound(2**42 + 1)


@pytest.fixture(scope="module")
def samples() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Draws in units of their scale."""
    noise = LatticeNoise.for_weight(Weight.at_least(0.3))
    drawn = SystemNoise().discrete_laplace(noise, N_SAMPLES)
    return np.array(drawn, dtype=np.float64) / noise.scale_in_steps


Samples = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def scale_p_value(samples: Samples, scale: float) -> float:
    """Magnitudes of Laplace variables are exponential: a chi-square test over 40 equal bins."""
    survival = np.exp(-np.abs(samples) / scale)
    counts, _ = np.histogram(survival, bins=40, range=(0, 1))
    return float(stats.chisquare(counts).pvalue)


def test_the_scale_is_the_one_that_was_paid_for(samples: Samples) -> None:
    assert scale_p_value(samples, 1.0) > P_VALUE_MIN


@pytest.mark.parametrize("factor", [1 - SCALE_ERROR_CAUGHT, 1 + SCALE_ERROR_CAUGHT])
def test_the_check_of_the_scale_has_teeth(samples: Samples, factor: float) -> None:
    assert scale_p_value(samples, factor) < P_VALUE_MIN


def test_signs_are_fair_and_draws_do_not_follow_each_other(samples: Samples) -> None:
    n_positive = int((samples > 0).sum())
    n_negative = int((samples < 0).sum())
    assert stats.binomtest(n_positive, n_positive + n_negative).pvalue > P_VALUE_MIN
    # The product of neighbours has mean 0 and variance 4 when they are independent.
    z_score = float((samples[1:] * samples[:-1]).sum()) / math.sqrt(4 * (N_SAMPLES - 1))
    assert 2 * stats.norm.sf(abs(z_score)) > P_VALUE_MIN


def test_every_draw_is_new() -> None:
    noise = LatticeNoise.for_weight(Weight(1))
    first, second = (SystemNoise().discrete_laplace(noise, 4) for _ in range(2))
    # Eight 41-bit variables coincide pairwise with probability under 2**-35.
    assert len({*first, *second}) == 8


def test_nothing_in_the_trusted_core_takes_a_seed() -> None:
    for module in pkgutil.iter_modules(accountant.__path__):
        members = vars(importlib.import_module(f"accountant.{module.name}")).values()
        classes = [member for member in members if inspect.isclass(member)]
        callables = itertools.chain(
            filter(inspect.isfunction, members),
            *(filter(inspect.isfunction, vars(member).values()) for member in classes),
        )
        for function in callables:
            if not function.__module__.startswith("accountant"):
                continue
            named = set(inspect.signature(function).parameters)
            assert not named & {"seed", "rng", "generator", "random_state"}, function
