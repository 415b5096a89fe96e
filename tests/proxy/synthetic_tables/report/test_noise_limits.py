"""Limits of noise, against closed forms and against drawn noise."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from proxy.synthetic_tables.report.residuals import sum_limit, total_limit

N_DRAWN = 200_000
ODDS = 0.01
# 2,000 of 200,000 are expected beyond; 6 standard deviations are 270, at odds of 1e-9
BEYOND = (1730 / N_DRAWN, 2270 / N_DRAWN)


def drawn(n_counts: int, *, is_gaussian: bool) -> np.ndarray:
    rng = np.random.default_rng(3)
    shape = (N_DRAWN, n_counts)
    return rng.normal(0.0, math.sqrt(2), shape) if is_gaussian else rng.laplace(0.0, 1.0, shape)


@pytest.mark.parametrize("n_counts", [1, 2, 9])
def test_laplace_noise_is_beyond_its_limits_at_the_odds(n_counts: int) -> None:
    noise = drawn(n_counts, is_gaussian=False)
    low, high = BEYOND
    for found, limit in (
        (np.abs(noise).sum(axis=1), total_limit(n_counts, 1.0, ODDS, is_gaussian=False)),
        (np.abs(noise.sum(axis=1)), sum_limit(n_counts, 1.0, ODDS, is_gaussian=False)),
    ):
        assert low < (found > limit).mean() < high
        assert (found > 0.9 * limit).mean() > high, "a limit that is too small is seen"


@pytest.mark.parametrize("n_counts", [1, 2, 9])
def test_gaussian_noise_is_never_beyond_its_limits_more_often(n_counts: int) -> None:
    noise = drawn(n_counts, is_gaussian=True)
    low, high = BEYOND
    total = total_limit(n_counts, 1.0, ODDS, is_gaussian=True)
    assert (np.abs(noise).sum(axis=1) > total).mean() < low
    assert (np.abs(noise).sum(axis=1) > 0.7 * total).mean() > high, "the bound is not far off"
    of_sum = sum_limit(n_counts, 1.0, ODDS, is_gaussian=True)
    assert low < (np.abs(noise.sum(axis=1)) > of_sum).mean() < high


def test_limits_have_their_closed_forms() -> None:
    assert total_limit(1, 5.0, 1e-6, is_gaussian=False) == pytest.approx(5 * 6 * math.log(10))
    assert sum_limit(1, 5.0, 1e-6, is_gaussian=False) == pytest.approx(5 * 6 * math.log(10))
    # 2 n noises in L1 have the law of chi-square with 2 n degrees, for Laplace noise of scale 2
    assert total_limit(7, 2.0, 1e-4, is_gaussian=False) == pytest.approx(chi2.isf(1e-4, 14))
    deviation = math.sqrt(2 * 3)
    assert sum_limit(3, 1.0, 1e-4, is_gaussian=True) == pytest.approx(deviation * norm.isf(5e-5))


def test_nothing_has_no_noise() -> None:
    assert total_limit(0, 1.0, ODDS, is_gaussian=True) == 0.0
    assert sum_limit(0, 1.0, ODDS, is_gaussian=False) == 0.0
