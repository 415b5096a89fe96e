"""Which levels are taken to occur: empty ones hardly ever, at the stated confidence.

Each check draws the noise of 20,000 tables of empty levels. The share of tables with a level above
the threshold is the error probability to within 0.01, but for one run in a hundred thousand (four
and a half standard deviations of a share of 0.05 are 0.007); with a scale wrong by a fifth it is
not.
"""

import math

import numpy as np
import pytest

from planner.level_summary import LevelStatistic, LevelSummary, threshold

N_TABLES = 20_000
SEED = 11
SCALE = 8.0


def share_of_errors(n_levels: int, confidence: float, scale: float) -> float:
    """How often noise of a scale passes the threshold for `SCALE` on some of the levels."""
    rng = np.random.default_rng(SEED)
    least = threshold(SCALE * math.sqrt(2), n_levels, confidence)
    noise = rng.laplace(scale=scale, size=(N_TABLES, n_levels))
    return float((noise > least).any(axis=1).mean())


@pytest.mark.parametrize("n_levels", [1, 5, 100])
def test_empty_levels_are_hardly_ever_taken_to_occur(n_levels: int) -> None:
    assert share_of_errors(n_levels, 0.95, SCALE) == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_wrong_scale_is_found(factor: float) -> None:
    assert share_of_errors(100, 0.95, factor * SCALE) != pytest.approx(0.05, abs=0.01)


def test_a_count_that_is_exact_must_be_one() -> None:
    assert threshold(0.0, 1000, 0.999) == pytest.approx(0.5)


def test_null_is_no_level() -> None:
    with pytest.raises(ValueError, match="NULL"):
        LevelSummary(0, LevelStatistic.MODE, (0, 1), ("a", None), "VARCHAR")


def test_a_sum_over_empty_levels_is_hardly_ever_told_from_noise() -> None:
    n_levels, confidence = 40, 0.95
    noise = np.random.default_rng(SEED).laplace(scale=SCALE, size=(N_TABLES, n_levels))
    found = noise > threshold(SCALE * math.sqrt(2), n_levels, confidence)
    left_over = np.where(found, 0.0, noise).sum(axis=1)
    limits = [threshold(SCALE * math.sqrt(2 * one), 1, confidence) for one in (~found).sum(axis=1)]
    assert (left_over > limits).mean() <= 1 - confidence
