"""Refined noise: its law and its loss by walking every path of the sampler, and by drawing."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import Charge, Measured, SimpleBody, TableOpened
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.limits import Payer
from accountant.noise import sampling as refinement
from accountant.noise.lattice_noise import LatticeNoise, SystemNoise
from accountant.noise.sampling import Refinement
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Factor, QueryBlock, counting
from tests.support.branches import Path, law_of

P_VALUE_MIN = 1e-9  # a sound sampler fails one run in a billion
N_SAMPLES = 30_000
WALKED = 24  # lengths of the rate: what is left out of a geometric law is below 1e-10
SMALL_SCALES = [(2.0, 1.0), (1.3, 0.8), (0.7, 0.2)]

Law = Callable[[int, int], mpmath.mpf]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(30):
        yield


def laplace(step: int, scale: float) -> mpmath.mpf:
    """The discrete Laplace law."""
    ratio = mpmath.exp(-1 / mpmath.mpf(scale))
    return (1 - ratio) / (1 + ratio) * ratio ** abs(step)


def step_law(step: int, coarse: float, fine: float) -> mpmath.mpf:
    """The law of ``coarse - fine``: an atom at 0, and a law of the coarse scale."""
    p, q = mpmath.exp(-1 / mpmath.mpf(coarse)), mpmath.exp(-1 / mpmath.mpf(fine))
    spread = (p - q) * (1 - p * q) / (p * (1 - q) ** 2)
    atom = (q / p) * ((1 - p) / (1 - q)) ** 2 if step == 0 else 0
    return atom + spread * laplace(step, coarse)


@pytest.mark.parametrize("scales", [*SMALL_SCALES, (5.0, 2.0), (2.0, 1.3), (5.0, 4.99)])
def test_fine_noise_and_an_independent_step_add_up_to_coarse_noise(
    scales: tuple[float, float],
) -> None:
    coarse, fine = scales
    far = int(60 * coarse)
    assert mpmath.almosteq(
        mpmath.fsum(step_law(step, coarse, fine) for step in range(-far, far + 1)), 1, 1e-20
    )
    for total in range(5):
        summed = mpmath.fsum(
            laplace(step, fine) * step_law(total - step, coarse, fine)
            for step in range(-far, far + 1)
        )
        assert mpmath.almosteq(summed, laplace(total, coarse), 1e-20)


def geometric_masses(rate: Fraction) -> list[mpmath.mpf]:
    ratio = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
    return [(1 - ratio) * ratio**k for k in range(int(WALKED / rate) + 2)]


@cache
def sampled_law(coarse: float, fine: float) -> Law:
    """The conditional law that `Refinement` draws from, off its own branches.

    Its two decisions are walked by themselves first, and then stand in the walk as single choices.
    """
    refined = Refinement.of_scales(coarse, fine)
    masses = cache(geometric_masses)

    def walked(draw: Callable[[], int]) -> dict[object, mpmath.mpf]:
        with pytest.MonkeyPatch.context() as patch:

            def program(path: Path) -> int:
                patch.setattr(refinement, "geometric", lambda rate: path.choose(masses(rate)))
                return draw()

            return dict(law_of(program))

    across, kept = walked(refined._is_across_zero)[True], walked(refined._is_kept)[True]

    @cache
    def given(coarse_noise: int) -> dict[object, mpmath.mpf]:
        with pytest.MonkeyPatch.context() as patch:

            def program(path: Path) -> int:
                def decided(mass: mpmath.mpf) -> Callable[[Refinement], bool]:
                    return lambda _: path.choose([1 - mass, mass]) == 1

                patch.setattr(refinement, "geometric", lambda rate: path.choose(masses(rate)))
                patch.setattr(Refinement, "_is_across_zero", decided(across))
                patch.setattr(Refinement, "_is_kept", decided(kept))
                return refined.draw(coarse_noise)

            return dict(law_of(program))

    return lambda fine_noise, coarse_noise: given(coarse_noise).get(fine_noise, mpmath.mpf(0))


@pytest.mark.parametrize("scales", SMALL_SCALES)
def test_the_sampler_has_the_conditional_law_exactly(scales: tuple[float, float]) -> None:
    coarse, fine = scales
    sampled = sampled_law(coarse, fine)
    for coarse_noise in range(-6, 7):
        for fine_noise in range(-12, 13):
            joint = laplace(fine_noise, fine) * step_law(coarse_noise - fine_noise, coarse, fine)
            expected = joint / laplace(coarse_noise, coarse)
            assert abs(sampled(fine_noise, coarse_noise) - expected) < 1e-9
            if expected > 1e-6:
                assert abs(sampled(fine_noise, coarse_noise) / expected - 1) < 1e-6


def test_the_check_of_the_conditional_law_has_teeth() -> None:
    """A fine scale wrong by a thousandth is far outside what is allowed above."""
    sampled, wrong = sampled_law(2.0, 1.0), 1.001
    joint = laplace(0, wrong) * step_law(1, 2.0, wrong)
    assert abs(sampled(0, 1) - joint / laplace(1, 2.0)) > 1e-5


# What is lost on the pair of values of one row, by enumeration.
COARSE, FINE = LatticeNoise(Weight(2**39), 0, 2.0), LatticeNoise(Weight(2**40), 0, 1.0)


def pair_loss(shift: int, conditional: Law) -> mpmath.mpf:
    """The largest log-ratio of probabilities of a pair of values, between two answers."""

    def log_probability(first: int, second: int, answer: int) -> mpmath.mpf:
        drawn = laplace(first - answer, COARSE.scale_in_steps)
        return mpmath.log(drawn) + mpmath.log(conditional(second - answer, first - answer))

    near = range(-4, shift + 5)
    return max(
        abs(log_probability(first, second, 0) - log_probability(first, second, shift))
        for first in near
        for second in near
    )


@pytest.mark.parametrize("shift", [1, 2, 3])
def test_both_values_together_lose_the_larger_weight_and_not_the_sum(shift: int) -> None:
    larger = mpmath.mpf(1) * shift
    loss = pair_loss(shift, sampled_law(COARSE.scale_in_steps, FINE.scale_in_steps))
    assert loss <= larger * (1 + mpmath.mpf(10) ** -6)
    assert loss > larger * (1 - mpmath.mpf(10) ** -3), "no smaller charge would be true"


def test_the_check_of_the_loss_has_teeth() -> None:
    """Drawn anew, the second value adds its whole weight; a wrong weight shows as well."""
    independent = pair_loss(2, lambda fine_noise, _: laplace(fine_noise, FINE.scale_in_steps))
    assert mpmath.almosteq(independent, 2 * mpmath.mpf("1.5"), 1e-12)
    wrong = pair_loss(2, sampled_law(COARSE.scale_in_steps, 0.99))
    assert wrong > 2 * (1 + mpmath.mpf(10) ** -3)


def test_a_history_with_a_raise_loses_what_was_charged_for_it() -> None:
    """Three cells, a row that is raised and one that is not: enumerated loss against the cost."""
    raised = QueryBlock(counting([Factor(("a",), np.array([1, 2, 0], dtype=np.int64))]))
    other = QueryBlock(counting([Factor(("a",), np.array([0, 1, 3], dtype=np.int64))]))
    epsilon = UNITS_PER_EPSILON
    entries: list[SimpleBody] = [
        TableOpened("schema", "data", Fraction(9)),
        Charge(Payer("ann"), (ChargedBlock(raised, COARSE),), 0, epsilon),
        Measured(2, ((5,),)),
        Charge(Payer("ann"), (ChargedBlock(raised, FINE, 0),), epsilon, 2 * epsilon),
        Measured(4, ((4,),)),
        Charge(Payer("ann"), (ChargedBlock(other, COARSE),), 2 * epsilon, 5 * epsilon // 2),
    ]
    history = TableHistory()
    for seq, body in enumerate(entries, start=1):
        history = history.after(seq, "2026-01-01T00:00:00.000+00:00", body)
    sampled = sampled_law(COARSE.scale_in_steps, FINE.scale_in_steps)
    losses = [
        (pair_loss(of_raised, sampled) if of_raised else 0) + mpmath.mpf(of_other) / 2
        for of_raised, of_other in ((1, 0), (2, 1), (0, 3))
    ]
    charged = mpmath.mpf(history.cost.table_cost().units) / epsilon
    assert mpmath.almosteq(charged, mpmath.mpf("2.5"))
    assert abs(max(losses) - charged) < 1e-6


Steps = NDArray[np.int64]


def drawn(scale: float, n_samples: int = N_SAMPLES) -> Steps:
    """OpenDP's noise of a small scale in steps, at a weight that allows it."""
    noise = LatticeNoise(Weight.at_least(1 / Fraction(scale)), 0, scale)
    return np.array(SystemNoise().discrete_laplace(noise, n_samples), dtype=np.int64)


def refined(noise: Steps, coarse: float, fine: float) -> Steps:
    draw = Refinement.of_scales(coarse, fine).draw
    return np.array([draw(int(step)) for step in noise], dtype=np.int64)


def law_p_value(noise: Steps, scale: float) -> float:
    """A chi-square test of small discrete Laplace noise, each step a bin and each tail one."""
    far = max(2, int(3 * scale))
    observed = np.bincount(np.clip(noise, -far, far) + far, minlength=2 * far + 1)
    masses = np.array([float(laplace(step, scale)) for step in range(-far, far + 1)])
    masses[[0, -1]] += (1 - masses.sum()) / 2
    return float(stats.chisquare(observed, masses * noise.size).pvalue)


def independence_p_value(first: Steps, second: Steps) -> float:
    """A chi-square test on the joint counts, in bins of a step with wide tails."""
    table = np.histogram2d(np.clip(first, -3, 3), np.clip(second, -3, 3), bins=7)[0]
    return float(stats.chi2_contingency(table).pvalue)


def test_a_chain_of_raises_has_the_law_of_the_last_and_independent_steps() -> None:
    coarse = drawn(5.0)
    middle = refined(coarse, 5.0, 2.0)
    fine = refined(middle, 2.0, 1.3)
    for noise, scale in ((coarse, 5.0), (middle, 2.0), (fine, 1.3)):
        assert law_p_value(noise, scale) > P_VALUE_MIN
        assert law_p_value(noise, scale * 1.1) < P_VALUE_MIN
        assert law_p_value(noise, scale * 0.9) < P_VALUE_MIN
    assert independence_p_value(middle, coarse - middle) > P_VALUE_MIN
    assert independence_p_value(fine, middle - fine) > P_VALUE_MIN
    assert independence_p_value(fine, coarse - middle) > P_VALUE_MIN
    anew = drawn(2.0)
    assert independence_p_value(anew, coarse - anew) < P_VALUE_MIN


def test_the_atom_of_the_step_is_as_heavy_as_it_should_be() -> None:
    coarse = drawn(5.0)
    n_kept = int((refined(coarse, 5.0, 2.0) == coarse).sum())
    assert stats.binomtest(n_kept, N_SAMPLES, float(step_law(0, 5.0, 2.0))).pvalue > P_VALUE_MIN
    assert stats.binomtest(n_kept, N_SAMPLES, float(step_law(0, 5.0, 2.3))).pvalue < P_VALUE_MIN


def test_noise_at_its_usual_size_is_refined_to_the_scale_that_was_paid_for() -> None:
    """0.2, then 0.5, then 1/1.3: the same chain on a lattice a millionth as wide as the noise."""
    system, n_samples = SystemNoise(), 10_000
    noise = LatticeNoise.for_weight(Weight.at_least(Fraction(1, 5)))
    chain = [(noise, system.discrete_laplace(noise, n_samples))]
    for weight in (Fraction(1, 2), Fraction(10, 13)):
        before, drawn_before = chain[-1]
        after = before.refined_to(Weight.at_least(weight))
        chain.append((after, system.refined_laplace(before, after, drawn_before)))
    for noise, steps in chain:
        magnitudes = np.abs(np.array(steps, dtype=np.float64)) / noise.scale_in_steps
        assert stats.kstest(magnitudes, stats.expon().cdf).pvalue > P_VALUE_MIN
        assert stats.kstest(magnitudes, stats.expon(scale=1.3).cdf).pvalue < P_VALUE_MIN
        # The sum of exponential variables is a gamma variable: this sees ten in a hundred.
        assert two_sided(magnitudes.sum(), n_samples) > P_VALUE_MIN
        assert two_sided(magnitudes.sum() * 1.1, n_samples) < P_VALUE_MIN
        assert two_sided(magnitudes.sum() * 0.9, n_samples) < P_VALUE_MIN


def two_sided(total: float, n_samples: int) -> float:
    law = stats.gamma(n_samples)
    return 2 * min(float(law.cdf(total)), float(law.sf(total)))


def test_a_refinement_is_to_less_noise_on_the_same_lattice() -> None:
    for fine in (2.0, 3.0):
        with pytest.raises(ValueError, match="must be smaller"):
            Refinement.of_scales(2.0, fine)
    wider = LatticeNoise.for_weight(Weight.at_least(Fraction(1, 5)))
    finer_lattice = LatticeNoise.for_weight(Weight.at_least(1))
    with pytest.raises(ValueError, match="on the lattice on which it was drawn"):
        SystemNoise().refined_laplace(wider, finer_lattice, [1])


@pytest.mark.parametrize("units", [1, 2, 2**20, 2**40 // 3, 2**51 + 1, 2**52 - 1])
def test_one_more_unit_of_weight_is_always_less_noise(units: int) -> None:
    noise = LatticeNoise.for_weight(Weight(units))
    assert noise.refined_to(Weight(units + 1)).scale_in_steps < noise.scale_in_steps
