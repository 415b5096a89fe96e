"""Simulated tables have the same noise as measured ones."""

import math

import numpy as np
import pytest
from scipy import stats

from inference.independence.cell_noise import LaplaceCells, SampledCells

N_DRAWS = 40_000
P_VALUE_MIN = 1e-9  # the odds that a right law fails
SCALE_ERROR_CAUGHT = 0.10


def lattice_p_value(draws: np.ndarray, ratio: float) -> float:
    """Chi-squared test of whole numbers against ``Pr(k)`` proportional to ``ratio**|k|``."""
    outermost = 8
    inner = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-outermost, outermost + 1)]
    beyond = ratio ** (outermost + 1) / (1 + ratio)
    counts = [int((draws == k).sum()) for k in range(-outermost, outermost + 1)]
    observed = [int((draws < -outermost).sum()), *counts, int((draws > outermost).sum())]
    expected = np.array([beyond, *inner, beyond]) * draws.size
    return float(stats.chisquare(observed, expected).pvalue)


def lattice_draws(scale: float, step: float) -> np.ndarray:
    noise = LaplaceCells(np.full((2, 2), scale), lattice_step=step)
    drawn = noise.draw(N_DRAWS // 4, np.random.default_rng(0)) / step
    assert (drawn == np.rint(drawn)).all()
    return drawn.ravel()


def test_lattice_noise_is_discrete_laplace() -> None:
    assert lattice_p_value(lattice_draws(3.0, 0.5), math.exp(-0.5 / 3)) > P_VALUE_MIN


@pytest.mark.parametrize("factor", [1 - SCALE_ERROR_CAUGHT, 1 + SCALE_ERROR_CAUGHT])
def test_the_check_has_teeth(factor: float) -> None:
    """A scale that is a tenth off is caught, so a pass above means something."""
    assert lattice_p_value(lattice_draws(3.0, 0.5), math.exp(-0.5 / (3 * factor))) < P_VALUE_MIN


def test_continuous_noise_is_laplace_of_each_cells_own_scale() -> None:
    scales = np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    drawn = LaplaceCells(scales).draw(N_DRAWS, np.random.default_rng(1))
    assert drawn.shape == (N_DRAWS, 2, 3)
    for one in np.ndindex(2, 3):
        cell = drawn[:, one[0], one[1]] / scales[one]
        assert stats.kstest(cell, "laplace").pvalue > P_VALUE_MIN / 6


def test_a_sampler_is_asked_for_as_many_tables_as_are_simulated() -> None:
    def shared(n_tables: int, generator: np.random.Generator) -> np.ndarray:
        return np.broadcast_to(generator.normal(0, 3, (n_tables, 1, 1)), (n_tables, 2, 4))

    drawn = SampledCells(np.full((2, 4), 3.0), shared).draw(5, np.random.default_rng(2))
    assert drawn.shape == (5, 2, 4)
    assert (np.ptp(drawn, axis=(1, 2)) == 0).all()


def test_a_sampler_of_another_shape_is_refused() -> None:
    noise = SampledCells(np.ones((2, 2)), lambda n, rng: rng.normal(size=(n, 4)))
    with pytest.raises(ValueError, match="shape"):
        noise.draw(3, np.random.default_rng(3))


def test_a_sampler_of_infinite_values_is_refused() -> None:
    noise = SampledCells(np.ones((2, 2)), lambda n, _: np.full((n, 2, 2), np.nan))
    with pytest.raises(ValueError, match="finite"):
        noise.draw(3, np.random.default_rng(3))


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_noise_without_a_size_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="positive, finite scale"):
        LaplaceCells(np.array([[1.0, scale]]))


def test_no_cells_are_refused() -> None:
    with pytest.raises(ValueError, match="cells"):
        LaplaceCells(np.empty((0, 2)))


@pytest.mark.parametrize("step", [-1.0, 2.0, math.nan])
def test_a_lattice_coarser_than_the_noise_is_refused(step: float) -> None:
    with pytest.raises(ValueError, match="lattice"):
        LaplaceCells(np.full((2, 2), 2.0), lattice_step=step)


def test_scales_are_the_laws_own() -> None:
    given = np.ones((2, 2))
    noise = LaplaceCells(given)
    given[0, 0] = 7
    assert noise.scales[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        noise.scales[0, 0] = 7
