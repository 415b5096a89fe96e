"""Projections against the conditions that mark the optimum; margins met; exact tables kept."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from synthesis.fitting import fitted_margin, fitted_pair, noise_of_ties, projected
from synthesis.tables import TableEstimate

ROWS = arrays.array_shapes(min_dims=2, max_dims=2, max_side=6)


@given(st.data(), ROWS)
def test_a_projection_meets_the_conditions_of_the_optimum(
    data: st.DataObject, shape: tuple[int, ...]
) -> None:
    values = data.draw(arrays.arrays(float, shape, elements=st.floats(-100, 100)))
    variance = data.draw(arrays.arrays(float, shape, elements=st.floats(0.1, 10)))
    totals = data.draw(arrays.arrays(float, shape[0], elements=st.floats(0.01, 1000)))
    nearest = projected(values, totals, variance)
    assert (nearest >= 0).all()
    assert np.allclose(nearest.sum(axis=1), totals)
    # Karush, Kuhn and Tucker: one multiplier where positive, and no smaller a slope where 0
    slope = (nearest - values) / variance
    least = slope.min(axis=1, keepdims=True)
    assert np.allclose(np.where(nearest > 1e-6, slope, least), least, atol=1e-6)


def test_a_row_with_total_zero_is_zero() -> None:
    values = np.array([[3.0, -1.0], [3.0, -1.0]])
    nearest = projected(values, np.array([0.0, 4.0]), np.ones((2, 2)))
    assert nearest.tolist() == [[0.0, 0.0], [4.0, 0.0]]


def test_the_noisier_cell_moves_more() -> None:
    nearest = projected(np.array([[10.0, 10.0]]), np.array([14.0]), np.array([[1.0, 5.0]]))
    assert nearest.tolist() == [[9.0, 5.0]]


def test_a_margin_uses_every_estimate() -> None:
    looks = [TableEstimate(("a",), np.array(v), np.array(1.0)) for v in ([4.0, 6.0], [8.0, 2.0])]
    assert fitted_margin(looks, 10.0).tolist() == [6.0, 4.0]


@pytest.mark.parametrize("noise", [0.0, 3.0, 30.0])
def test_a_fitted_pair_is_not_negative_and_has_its_margins(noise: float) -> None:
    rng = np.random.default_rng(4)
    exact = rng.poisson(8.0, (12, 7)) * (rng.random((12, 7)) < 0.7) + 0.0
    exact[3], exact[:, 2] = 0.0, 0.0
    noisy = TableEstimate(("a", "b"), exact + rng.laplace(0, 1, exact.shape) * noise, np.array(1.0))
    fitted = fitted_pair(noisy, exact.sum(axis=1), exact.sum(axis=0))
    assert (fitted >= 0).all()
    assert np.allclose(fitted.sum(axis=0), exact.sum(axis=0), atol=1e-6 * exact.sum())
    assert np.allclose(fitted.sum(axis=1), exact.sum(axis=1), atol=1e-3 * exact.sum())
    if noise == 0.0:
        assert np.allclose(fitted, exact, atol=1e-5)
    else:
        assert np.abs(fitted - exact).sum() < np.abs(noisy.values - exact).sum()


def test_an_empty_table_is_fitted_by_zeros() -> None:
    noisy = TableEstimate(("a", "b"), np.array([[2.0, -3.0]]), np.array(1.0))
    assert fitted_pair(noisy, np.zeros(1), np.zeros(2)).tolist() == [[0.0, 0.0]]


def test_a_tie_between_columns_is_kept_in_the_noise() -> None:
    """A rare class is in one level of the other column only; noise would spread it over many."""
    exact = np.zeros((40, 2))
    exact[:39, 0], exact[39, 1] = np.linspace(3_000, 9_000, 39), 2_000.0
    kept, without = [], []
    for seed in range(30):
        noise = np.random.default_rng(seed).normal(0, 100, exact.shape)
        noisy = TableEstimate(("a", "b"), exact + noise, np.array(100.0**2))
        kept.append(fitted_pair(noisy, exact.sum(axis=1), exact.sum(axis=0))[39, 1])
        without.append(fitted_pair_without_ties(noisy, exact)[39, 1])
    assert 2_000 - np.mean(kept) < 0.6 * (2_000 - np.mean(without))


def fitted_pair_without_ties(noisy: TableEstimate, exact: np.ndarray) -> np.ndarray:
    with patch("synthesis.fitting.noise_of_ties", lambda table: np.zeros_like(table.values, bool)):
        return fitted_pair(noisy, exact.sum(axis=1), exact.sum(axis=0))


def test_small_counts_that_add_up_are_no_noise() -> None:
    """Each of many is below what is visible, but together they are far above it."""
    rng = np.random.default_rng(3)
    exact = np.full((30, 30), 150.0)
    exact[0, 0] = 5_000.0
    noisy = TableEstimate(("a", "b"), exact + rng.normal(0, 100, exact.shape), np.array(100.0**2))
    assert noise_of_ties(noisy).mean() < 0.01


def test_a_table_of_two_by_two_is_left_as_it_is() -> None:
    noisy = TableEstimate(("a", "b"), np.array([[500.0, 5.0], [-8.0, 400.0]]), np.array(100.0))
    assert not noise_of_ties(noisy).any()
