"""Laws with a Gaussian part: every method against closed forms, many digits, and each other."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.laplace_oracles import GIL_PELAEZ_ERROR, gil_pelaez_tail, partial_fractions_tail
from inference.noise_law.laplace_sum import chernoff_half_width, log_moment, standard_deviation
from inference.noise_law.law import (
    ContourLaw,
    LawMethod,
    SingleGaussianLaw,
    SingleLaplaceLaw,
    law_of_noise,
    law_of_noises,
)
from inference.noise_law.paper_methods import ConvolutionLaw, MonteCarloLaw, masses_on_grid
from tests.support.examples import examples

DEVIATIONS = (1e-6, 0.01, 0.3, 1.0, 2.5, 6.0, 12.0, 30.0)
CONFIDENCES = (1e-9, 0.2, 0.8, 0.95, 1 - 1e-9)
N_DRAWS = 20_000

scale_lists = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8)
sigmas = st.floats(1e-3, 1e3)


def normal_tail(z: float) -> float:
    with mpmath.workdps(40):
        return float(mpmath.erfc(mpmath.mpf(z) / mpmath.sqrt(2)) / 2)


def few_scales(generator: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """One to seven scales and a Gaussian part, far apart, comparable, or nearly equal."""
    n_scales = int(generator.integers(1, 8))
    spread = float(generator.choice([1e-3, 0.1, 1.0, 4.0, 10.0]))
    size = 10.0 ** float(generator.integers(-8, 9))
    scales = size * np.exp(generator.normal(0, spread, n_scales))
    orders = float(generator.choice([0.5, 1.5, 6.0]))
    return scales, float(scales.max() * 10.0 ** generator.uniform(-orders, orders))


def many_scales(generator: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """Ten to three hundred scales, ten of them comparable to the largest; and a Gaussian part."""
    n_scales = int(generator.integers(10, 300))
    dwarfs = generator.uniform(0, 1, n_scales) ** 8
    scales = np.concatenate((dwarfs, generator.uniform(0.5, 1.0, 10)))
    return scales, float(10.0 ** generator.uniform(-2, 3))


@pytest.mark.parametrize("seed", range(60))
def test_the_contours_bound_holds_for_few_scales(seed: int) -> None:
    scales, sigma = few_scales(np.random.default_rng(seed))
    law = ContourLaw(scales, gaussian=sigma)
    for deviations in DEVIATIONS:
        z = deviations * standard_deviation(scales, sigma)
        assert abs(law.tail(z) - partial_fractions_tail(scales, z, sigma)) <= law.tail_error


@pytest.mark.parametrize("seed", range(15))
def test_the_contours_bound_holds_for_many_scales(seed: int) -> None:
    scales, sigma = many_scales(np.random.default_rng(seed))
    law = ContourLaw(scales, gaussian=sigma)
    for deviations in DEVIATIONS:
        z = deviations * standard_deviation(scales, sigma)
        error = abs(law.tail(z) - gil_pelaez_tail(scales, z, sigma))
        assert error <= law.tail_error + GIL_PELAEZ_ERROR


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_contours_bound_holds_in_a_long_stress(seed: int) -> None:
    generator = np.random.default_rng(700_000 + seed)
    for _ in range(400):
        scales, sigma = few_scales(generator)
        law = ContourLaw(scales, gaussian=sigma)
        for deviations in generator.uniform(0, 40, 4):
            z = float(deviations) * standard_deviation(scales, sigma)
            assert abs(law.tail(z) - partial_fractions_tail(scales, z, sigma)) <= law.tail_error
        confidence = float(generator.choice(CONFIDENCES))
        beyond = 2 * partial_fractions_tail(scales, law.half_width(confidence), sigma)
        assert 1 - confidence - 8 * law.tail_error <= beyond <= 1 - confidence + 1e-15


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_half_width_covers_and_wastes_no_more_than_the_error(
    seed: int, confidence: float
) -> None:
    scales, sigma = few_scales(np.random.default_rng(1000 + seed))
    law = ContourLaw(scales, gaussian=sigma)
    beyond = 2 * partial_fractions_tail(scales, law.half_width(confidence), sigma)
    assert 1 - confidence - 8 * law.tail_error <= beyond <= 1 - confidence + 1e-15


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7, 1e-9])
def test_a_coarser_tolerance_holds_too_and_shows_an_error(tolerance: float) -> None:
    # Teeth: the quadrature's error is there to be seen, and the checks above would see it.
    generator = np.random.default_rng(5)
    worst = 0.0
    for _ in range(30):
        scales, sigma = few_scales(generator)
        law = ContourLaw(scales, gaussian=sigma, tolerance=tolerance)
        for deviations in DEVIATIONS:
            z = deviations * standard_deviation(scales, sigma)
            error = abs(law.tail(z) - partial_fractions_tail(scales, z, sigma))
            assert error <= law.tail_error
            worst = max(worst, error)
    assert worst > 1e-5 * tolerance


@pytest.mark.parametrize("seed", range(20))
def test_the_fourier_series_is_right_to_its_stated_error(seed: int) -> None:
    scales, sigma = few_scales(np.random.default_rng(2000 + seed))
    law = ConvolutionLaw(scales, gaussian=sigma)
    for deviations in (0.01, 0.3, 1.0, 2.5, 6.0):
        z = deviations * standard_deviation(scales, sigma)
        assert abs(law.tail(z) - partial_fractions_tail(scales, z, sigma)) <= law.tail_error


@given(scale_lists, sigmas, st.floats(0.001, 0.999), st.floats(0.001, 10))
@settings(deadline=None, max_examples=examples(60))
def test_contour_and_convolution_agree_to_their_stated_errors(
    scales: list[float], sigma: float, confidence: float, deviations: float
) -> None:
    array = np.array(scales)
    first = law_of_noise(array, gaussian=sigma)
    second = law_of_noise(array, LawMethod.CONVOLUTION, gaussian=sigma)
    allowed = first.tail_error + second.tail_error
    z = deviations * standard_deviation(array, sigma)
    assert abs(first.tail(z) - second.tail(z)) <= allowed
    half_width = second.half_width(confidence)
    assert 2 * first.tail(half_width) <= 1 - confidence + 2 * allowed
    if (1 - confidence) / 2 > 10 * allowed:
        assert 2 * first.tail(half_width) >= 1 - confidence - 4 * allowed


@pytest.mark.parametrize("sigma", [0.05, 1.0, 4.0, 50.0])
def test_draws_agree_and_tell_a_wrong_deviation(sigma: float) -> None:
    # Tails are off by more than `tail_error` in one run in 10**9; and it is seeded besides.
    scales = np.array([1.0, 0.5])
    law = law_of_noise(
        scales,
        LawMethod.MONTE_CARLO,
        gaussian=sigma,
        generator=np.random.default_rng(11),
        n_draws=N_DRAWS,
    )
    points = np.array([0.5, 1.0, 1.5]) * standard_deviation(scales, sigma)
    exact = ContourLaw(scales, gaussian=sigma)
    assert all(abs(law.tail(z) - exact.tail(z)) <= law.tail_error for z in points.tolist())
    assert law.half_width(0.9) >= exact.half_width(0.9)
    if sigma >= 4:
        wrong = ContourLaw(scales, gaussian=1.15 * sigma)
        assert any(abs(law.tail(z) - wrong.tail(z)) > law.tail_error for z in points.tolist())


@pytest.mark.parametrize("make", [ContourLaw, ConvolutionLaw])
def test_each_method_gets_a_gaussian_alone_right_by_its_own_means(
    make: type[ContourLaw | ConvolutionLaw],
) -> None:
    law = make(np.empty(0), gaussian=2.0)
    for z in (-3.0, 0.0, 1e-13, 0.5, 4.0, 14.0, 60.0):
        assert abs(law.tail(z) - normal_tail(z / 2)) <= law.tail_error
    for confidence in CONFIDENCES:
        beyond = 2 * normal_tail(law.half_width(confidence) / 2)
        assert 1 - confidence - 8 * law.tail_error <= beyond <= 1 - confidence + 1e-15


@pytest.mark.parametrize("method", LawMethod)
def test_a_gaussian_alone_is_the_normal_law_itself(method: LawMethod) -> None:
    law = law_of_noise(np.zeros(2), method, gaussian=3.0)
    assert isinstance(law, SingleGaussianLaw)
    for z in (-30.0, -1.0, 0.0, 2.0, 25.0):
        assert abs(law.tail(z) - normal_tail(z / 3)) <= law.tail_error
    with mpmath.workdps(40):
        for confidence in (1e-12, 0.3, 0.5, 0.95, 1 - 2.0**-40, 1 - 2.0**-53):
            exact = 3 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(confidence))
            assert exact <= law.half_width(confidence) <= exact * (1 + 2e-12)


def test_no_gaussian_part_is_the_law_without_one() -> None:
    scales = np.array([3.0, 1.0])
    assert law_of_noise(scales, gaussian=0.0) is law_of_noise(scales)
    assert law_of_noise(scales).gaussian == 0.0
    assert isinstance(law_of_noise(scales[:1], gaussian=0.0), SingleLaplaceLaw)
    assert law_of_noise(scales, gaussian=1.0) is law_of_noise(scales[::-1], gaussian=1.0)
    assert law_of_noise(scales, gaussian=1.0) is not law_of_noise(scales, gaussian=2.0)


@pytest.mark.parametrize("ratio", [1e-300, 1e-150, 1e-20, 1e20, 1e150, 1e300])
def test_parts_of_utterly_different_size_are_one_part(ratio: float) -> None:
    law = ContourLaw(np.array([1.0, 0.5]), gaussian=ratio)
    alone = ContourLaw(np.array([1.0, 0.5])) if ratio < 1 else SingleGaussianLaw(ratio)
    for confidence in (0.3, 0.95, 1 - 1e-9, 1 - 2.0**-50):
        # Beyond the arithmetic both are proved bounds, which need not be the same one.
        rel = 1e-3 if confidence < 1 - 1e-10 else 0.05
        assert law.half_width(confidence) == pytest.approx(alone.half_width(confidence), rel=rel)
    assert law.tail(alone.half_width(0.5)) == pytest.approx(0.25, abs=1e-11)


@given(scale_lists, sigmas)
@settings(deadline=None, max_examples=examples(40))
def test_more_gaussian_noise_and_more_confidence_never_narrow(
    scales: list[float], sigma: float
) -> None:
    array = np.array(scales)
    law = ContourLaw(array, gaussian=sigma)
    widths = [law.half_width(c) for c in (1e-12, 0.01, 0.5, 0.9, 0.999, 1 - 1e-9, 1 - 2**-30)]
    assert widths == sorted(widths)
    some = [
        ContourLaw(array, gaussian=factor * sigma).half_width(0.9) for factor in (0, 0.5, 1, 1.1)
    ]
    assert all(first <= second * (1 + 1e-9) for first, second in pairwise(some))


@pytest.mark.parametrize("sigma", [0.01, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("log_probability", [-0.7, -3.0, -28.0, -700.0])
def test_chernoffs_tilt_is_near_the_best_one(sigma: float, log_probability: float) -> None:
    scales = np.array([1.0, 0.3, 0.2])
    tilts = np.geomspace(1e-6, 1 - 1e-4, 20_000)
    best = min((log_moment(scales, t, sigma) - log_probability) / t for t in tilts.tolist())
    found = chernoff_half_width(scales, log_probability, sigma)
    assert best * 0.9999 <= found <= 1.011 * best
    law = ContourLaw(scales, gaussian=sigma)
    assert law.tail(found) <= math.exp(log_probability) + law.tail_error


def test_masses_are_differences_of_tails() -> None:
    scales, sigma = np.array([1.0, 0.3]), 2.5
    indices, masses, error = masses_on_grid(scales, 0.75, gaussian=sigma)
    law = ContourLaw(scales, gaussian=sigma)
    tails = [law.tail((index - 0.5) * 0.75) for index in range(-6, 8)]
    middle = masses[np.abs(indices) <= 6]
    np.testing.assert_allclose(middle, -np.diff(tails), atol=error + 2 * law.tail_error)
    assert masses.sum() == pytest.approx(1.0, abs=1e-11)
    assert masses_on_grid(np.empty(0), 1.0, gaussian=1.0)[1].sum() == pytest.approx(1.0)


def test_noises_of_both_kinds_are_told_apart() -> None:
    scales, is_gaussian = np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])
    law = law_of_noises(scales, is_gaussian)
    assert sorted(law.scales.tolist()) == [1.0, 3.0]
    assert law.gaussian == pytest.approx(math.sqrt(2 * (4 + 16)))
    assert standard_deviation(law.scales, law.gaussian) == pytest.approx(math.sqrt(2 * 30))


@pytest.mark.parametrize("sigma", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("scales", [np.empty(0), np.array([2.0]), np.array([3.0, 1.0])])
def test_a_deviation_that_is_none_is_refused(sigma: float, scales: NDArray[np.float64]) -> None:
    for make in (
        lambda: law_of_noise(scales, gaussian=sigma),
        lambda: ContourLaw(scales, gaussian=sigma),
        lambda: ConvolutionLaw(scales, gaussian=sigma),
        lambda: masses_on_grid(scales, 1.0, gaussian=sigma),
        lambda: MonteCarloLaw(
            scales, generator=np.random.default_rng(1), n_draws=10, gaussian=sigma
        ),
    ):
        with pytest.raises(ValueError, match="deviation must be finite"):
            make()


def test_what_has_no_gaussian_part_says_so() -> None:
    with pytest.raises(ValueError, match="Laplace variables only"):
        law_of_noise(np.ones(2), LawMethod.PAPER_CONVOLUTION, gaussian=1.0)
    with pytest.raises(ValueError, match="positive deviation"):
        SingleGaussianLaw(0.0)


@pytest.mark.parametrize("change", [1e-9, -1e-9])
def test_the_oracle_tells_a_deviation_from_one_a_billionth_away(change: float) -> None:
    scales, sigma = np.array([3.0, 1.0]), 2.0
    law = ContourLaw(scales, gaussian=sigma)
    wrong = partial_fractions_tail(scales, 3.0, sigma * (1 + change))
    assert abs(law.tail(3.0) - wrong) > 10 * law.tail_error
