"""The contour's proved bound, put under stress against oracles that share nothing with it."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.laplace_oracles import (
    GIL_PELAEZ_ERROR,
    equal_scales_tail,
    gil_pelaez_tail,
    partial_fractions_tail,
)
from inference.noise_law.laplace_sum import log_moment, standard_deviation
from inference.noise_law.law import ContourLaw

DEVIATIONS = (1e-6, 0.01, 0.3, 1.0, 2.5, 6.0, 12.0)


def few_scales(generator: np.random.Generator) -> NDArray[np.float64]:
    """Two to nine scales over many orders of magnitude, or nearly equal."""
    n_scales = int(generator.integers(2, 10))
    spread = float(generator.choice([1e-3, 0.1, 1.0, 4.0, 10.0]))
    size = 10.0 ** float(generator.integers(-8, 9))
    return np.asarray(size * np.exp(generator.normal(0, spread, n_scales)), dtype=np.float64)


def many_scales(generator: np.random.Generator) -> NDArray[np.float64]:
    """Ten to three hundred scales, at least ten of them comparable to the largest."""
    n_scales = int(generator.integers(10, 300))
    if generator.random() < 0.5:
        return generator.uniform(0.3, 1.0, n_scales)
    dwarfs = generator.uniform(0, 1, n_scales) ** 8
    return np.concatenate((dwarfs, generator.uniform(0.5, 1.0, 10)))


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_holds_for_few_scales_of_any_size(seed: int) -> None:
    scales = few_scales(np.random.default_rng(seed))
    law = ContourLaw(scales)
    for deviations in DEVIATIONS:
        z = deviations * standard_deviation(scales)
        assert abs(law.tail(z) - partial_fractions_tail(scales, z)) <= law.tail_error


@pytest.mark.parametrize("seed", range(25))
def test_the_bound_holds_for_many_scales(seed: int) -> None:
    scales = many_scales(np.random.default_rng(seed))
    law = ContourLaw(scales)
    for deviations in DEVIATIONS:
        z = deviations * standard_deviation(scales)
        assert abs(law.tail(z) - gil_pelaez_tail(scales, z)) <= law.tail_error + GIL_PELAEZ_ERROR


@pytest.mark.parametrize("n_scales", [2, 3, 16, 17, 100, 400])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_bound_holds_for_equal_scales(n_scales: int, scale: float) -> None:
    scales = np.full(n_scales, scale)
    law = ContourLaw(scales)
    for deviations in DEVIATIONS:
        z = deviations * standard_deviation(scales)
        exact = equal_scales_tail(n_scales, scale, z)
        assert abs(law.tail(z) - exact) <= law.tail_error + 1e-13


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("confidence", [1e-9, 0.2, 0.8, 0.99, 1 - 1e-9])
def test_the_half_width_covers_and_wastes_no_more_than_the_error(
    seed: int, confidence: float
) -> None:
    scales = few_scales(np.random.default_rng(1000 + seed))
    law = ContourLaw(scales)
    beyond = 2 * partial_fractions_tail(scales, law.half_width(confidence))
    assert 1 - confidence - 8 * law.tail_error <= beyond
    # 1e-15: rounding of the half-width itself and of 1 - confidence.
    assert beyond <= 1 - confidence + 1e-15


def test_one_giant_and_a_thousand_dwarfs() -> None:
    scales = np.concatenate(([1.0], np.full(1000, 1e-4)))
    law = ContourLaw(scales)
    # The dwarfs' sum has moment function exp(K) at 1/giant: the tail far out is exp(K - z) / 2.
    shift = log_moment(np.full(1000, 1e-4), 1.0)
    for z in (1.0, 5.0, 20.0):
        assert law.tail(z) == pytest.approx(math.exp(shift - z) / 2, abs=law.tail_error)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7, 1e-9])
def test_a_coarser_tolerance_holds_too_and_shows_an_error(tolerance: float) -> None:
    # Teeth: the quadrature's error is there to be seen, and the checks above would see it.
    generator = np.random.default_rng(5)
    worst = 0.0
    for _ in range(30):
        scales = few_scales(generator)
        law = ContourLaw(scales, tolerance=tolerance)
        for deviations in DEVIATIONS:
            z = deviations * standard_deviation(scales)
            error = abs(law.tail(z) - partial_fractions_tail(scales, z))
            assert error <= law.tail_error
            worst = max(worst, error)
    assert worst > 1e-5 * tolerance
    assert worst > 10 * ContourLaw(np.ones(2)).tail_error or tolerance < 1e-6


@pytest.mark.parametrize("change", [1e-9, -1e-9])
def test_the_oracles_tell_a_scale_from_one_a_billionth_away(change: float) -> None:
    scales = np.array([3.0, 1.0])
    law = ContourLaw(scales)
    wrong = partial_fractions_tail(scales * (1 + change), 3.0)
    assert abs(law.tail(3.0) - wrong) > 10 * law.tail_error


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_holds_in_a_long_stress(seed: int) -> None:
    generator = np.random.default_rng(900_000 + seed)
    for _ in range(150):
        scales = few_scales(generator)
        law = ContourLaw(scales)
        for deviations in generator.uniform(0, 14, 6):
            z = float(deviations) * standard_deviation(scales)
            assert abs(law.tail(z) - partial_fractions_tail(scales, z)) <= law.tail_error
        scales = many_scales(generator)
        law = ContourLaw(scales)
        for deviations in generator.uniform(0, 14, 6):
            z = float(deviations) * standard_deviation(scales)
            error = abs(law.tail(z) - gil_pelaez_tail(scales, z))
            assert error <= law.tail_error + GIL_PELAEZ_ERROR
