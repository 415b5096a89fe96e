"""What is particular to one way of computing the law: bins, the paper's grid, seeds."""

import numpy as np
import pytest

from benchmarks.laplace_oracles import equal_scales_tail
from inference.noise_law.laplace_sum import chernoff_half_width, log_moment
from inference.noise_law.law import ContourLaw, LawMethod, law_of_noise
from inference.noise_law.paper_methods import (
    ConvolutionLaw,
    MonteCarloLaw,
    PaperConvolutionLaw,
    masses_on_grid,
)


def test_masses_are_differences_of_tails() -> None:
    scales = np.array([4.0, 2.5, 0.3])
    indices, masses, error = masses_on_grid(scales, 0.75)
    law = ContourLaw(scales)
    for index in (-40, -3, 0, 1, 25):
        low, high = (index - 0.5) * 0.75, (index + 0.5) * 0.75
        (position,) = np.flatnonzero(indices == index)
        assert (
            abs(masses[position] - (law.tail(low) - law.tail(high))) <= error + 2 * law.tail_error
        )
    assert masses.sum() == pytest.approx(1.0, abs=1e-11)
    assert (masses >= 0).all()
    assert error < 1e-10


def test_masses_of_a_law_much_narrower_than_a_bin_lie_in_one() -> None:
    indices, masses, error = masses_on_grid(np.array([1.0, 0.5]), 1000.0)
    assert masses[indices == 0][0] == pytest.approx(1.0, abs=error + 1e-12)


def test_a_grid_too_fine_to_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="too fine"):
        masses_on_grid(np.array([1.0, 0.5]), 1e-7)
    with pytest.raises(ValueError, match="too fine"):
        PaperConvolutionLaw(np.array([1.0, 0.5]), grid_step=1e-7)


def test_the_papers_grid_error_is_real_and_vanishes_with_the_step() -> None:
    # m = 100, b = .1 on the unit grid: nearly every term rounds to 0.
    scales = np.full(100, 0.1)
    exact = equal_scales_tail(100, 0.1, 1.0)
    errors = []
    for step in (1.0, 0.25, 0.05):
        law = PaperConvolutionLaw(scales, grid_step=step)
        errors.append(abs(law.tail(1.0) - exact))
        assert errors[-1] <= law.tail_error
        assert equal_scales_tail(100, 0.1, law.half_width(0.95)) <= 0.025
    assert errors[0] > 0.1
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 2e-3


def test_algorithm_2_keeps_all_the_mass_it_promises() -> None:
    law = PaperConvolutionLaw(np.array([20.0, 3.0]), grid_step=1.0, lost_mass=0.01)
    assert 0.99 <= law.masses.sum() <= 1.0
    assert law.masses.size % 2 == 1
    np.testing.assert_allclose(law.masses, law.masses[::-1], atol=1e-15)


@pytest.mark.parametrize("n_scales", [1, 30, 2000])
@pytest.mark.parametrize("log_probability", [-0.7, -3.0, -28.0])
def test_chernoffs_tilt_is_near_the_best_one(n_scales: int, log_probability: float) -> None:
    scales = np.ones(n_scales)
    tilts = np.geomspace(1e-4, 0.9999, 4000)
    best = min((log_moment(scales, t) - log_probability) / t for t in tilts.tolist())
    assert best * 0.9999 <= chernoff_half_width(scales, log_probability) <= 1.01 * best


def test_monte_carlo_repeats_with_its_generator_and_differs_without() -> None:
    scales = np.array([3.0, 1.0])
    laws = [
        MonteCarloLaw(scales, generator=np.random.default_rng(seed), n_draws=1000)
        for seed in (1, 1, 2)
    ]
    assert laws[0].half_width(0.5) == laws[1].half_width(0.5)
    assert laws[0].half_width(0.5) != laws[2].half_width(0.5)


@pytest.mark.parametrize("grid_step", [0.0, -1.0, float("nan")])
def test_a_grid_without_width_is_refused(grid_step: float) -> None:
    with pytest.raises(ValueError, match="grid_step"):
        PaperConvolutionLaw(np.array([1.0]), grid_step=grid_step)


@pytest.mark.parametrize("lost_mass", [0.0, 1.0, float("nan")])
def test_losing_all_the_mass_or_none_is_refused(lost_mass: float) -> None:
    with pytest.raises(ValueError, match="lost_mass"):
        PaperConvolutionLaw(np.array([1.0]), lost_mass=lost_mass)


@pytest.mark.parametrize("law", [ContourLaw, ConvolutionLaw, PaperConvolutionLaw])
def test_the_methods_themselves_need_a_scale(
    law: type[ContourLaw | ConvolutionLaw | PaperConvolutionLaw],
) -> None:
    with pytest.raises(ValueError, match="at least one positive scale"):
        law(np.zeros(3))


def test_no_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="n_draws"):
        MonteCarloLaw(np.array([1.0]), generator=np.random.default_rng(1), n_draws=0)


def test_monte_carlo_needs_a_generator() -> None:
    with pytest.raises(ValueError, match="generator"):
        law_of_noise(np.array([3.0, 1.0]), LawMethod.MONTE_CARLO)
