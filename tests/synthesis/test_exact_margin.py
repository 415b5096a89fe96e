"""Levels get the counts that they should have, in rows whose law allows it."""

import numpy as np
import pytest

from synthesis.buckets import Buckets
from synthesis.drawing import Conditional, RowLaws, with_counts


def law(base: np.ndarray, factor: np.ndarray) -> Conditional:
    return Conditional(base, base, (factor,), (Buckets(np.arange(base.size)),))


@pytest.mark.parametrize("seed", range(10))
def test_every_level_has_its_count_and_no_more_rows_change_than_must(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_levels = 2_000, 7
    values = rng.choice(n_levels, n_rows, p=rng.dirichlet(np.ones(n_levels)))
    wanted = np.bincount(rng.integers(0, n_levels, n_rows), minlength=n_levels)
    of_row = rng.integers(0, 3, n_rows)
    any_law = law(np.full(n_levels, 1 / n_levels), rng.random((3, n_levels)))
    changed = with_counts(
        values, wanted, RowLaws(any_law, np.arange(3)[:, np.newaxis], of_row), rng
    )
    assert np.bincount(changed, minlength=n_levels).tolist() == wanted.tolist()
    moved = np.abs(np.bincount(values, minlength=n_levels) - wanted).sum() // 2
    assert (changed != values).sum() == moved


def test_rows_that_may_not_have_a_level_do_not_get_it() -> None:
    """Level 1 is possible in the second combination only, which is rare."""
    rng = np.random.default_rng(3)
    of_row = (np.arange(100_000) % 1_000 == 0).astype(np.int64)
    values = np.zeros(100_000, dtype=np.int64)
    wanted = np.array([100_000 - 60, 60])
    certain = law(np.array([0.999, 0.001]), np.array([[1.0, 0.0], [0.5, 1.0]]))
    changed = with_counts(values, wanted, RowLaws(certain, np.array([[0], [1]]), of_row), rng)
    assert changed[of_row == 0].sum() == 0
    assert changed.sum() == 60


def test_what_is_right_stays_as_it_is() -> None:
    values = np.array([0, 1, 1, 2])
    any_law = law(np.ones(3) / 3, np.ones((1, 3)))
    laws = RowLaws(any_law, np.zeros((1, 1), dtype=np.int64), np.zeros(4, dtype=np.int64))
    same = with_counts(values, np.array([1, 2, 1]), laws, np.random.default_rng(1))
    assert same.tolist() == values.tolist()
