"""Controlled rounding and dealing: counts within one, sums exact, and no new dependence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from synthesis.drawing import controlled_counts, dealt

P_VALUE_MIN = 1e-9  # the odds that a right version fails, with another seed
N_DRAWS = 20_000


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32), st.integers(0, 10**7))
def test_counts_are_within_one_of_expected_and_sums_exact(
    n_groups: int, n_parts: int, seed: int, size_max: int
) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.exponential(size=(n_groups, n_parts)) * (rng.random((n_groups, n_parts)) < 0.7)
    shares[:, 0] += 1e-3
    shares /= shares.sum(axis=1, keepdims=True)
    sizes = rng.integers(0, size_max, n_groups, endpoint=True)
    counts = controlled_counts(shares, sizes, rng)
    assert np.array_equal(counts.sum(axis=1), sizes)
    assert (counts >= 0).all()
    assert (np.abs(counts - shares * sizes[:, np.newaxis]) < 1 + 1e-6).all()
    assert (counts[shares == 0] == 0).all()


def test_whole_expectations_are_met_exactly() -> None:
    wanted = np.array([[3, 0, 7], [1, 1, 1], [0, 0, 49]])
    sizes = wanted.sum(axis=1)
    for seed in range(50):
        counts = controlled_counts(wanted / sizes[:, None], sizes, np.random.default_rng(seed))
        assert np.array_equal(counts, wanted)


def test_expectations_are_those_asked_for() -> None:
    shares = np.array([[0.05, 0.15, 0.35, 0.45]])
    rng = np.random.default_rng(6)
    counts = controlled_counts(
        np.repeat(shares, N_DRAWS, axis=0), np.full(N_DRAWS, 3, dtype=np.int64), rng
    )
    # Each count has a standard deviation below 1/2; 6 of the mean's are a chance of 2e-9
    assert np.allclose(counts.mean(axis=0), 3 * shares[0], atol=6 * 0.5 / N_DRAWS**0.5)


def test_every_value_is_dealt_once_and_in_its_group() -> None:
    groups = np.array([2, 0, 1, 0, 2, 2])
    values = np.array([10, 11, 20, 30, 31, 32])
    for seed in range(20):
        rows = dealt(groups, values, np.random.default_rng(seed))
        assert sorted(rows.tolist()) == values.tolist()
        assert np.array_equal(rows // 10 - 1, groups)


def in_order(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values handed to a group's rows as they come: what must not be done."""
    rows = np.empty_like(values)
    rows[np.argsort(groups, kind="stable")] = values
    return rows


def p_value_of_independence(parent: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Of Pearson's statistic between two children, summed over the parent's levels."""
    n_levels = 1 + int(max(first.max(), second.max()))
    statistic, freedom = 0.0, 0
    for level in np.unique(parent):
        here = parent == level
        table = np.zeros((n_levels, n_levels))
        np.add.at(table, (first[here], second[here]), 1)
        test = stats.chi2_contingency(table, correction=False)
        statistic, freedom = statistic + test.statistic, freedom + test.dof
    return float(stats.chi2.sf(statistic, freedom))


@pytest.mark.parametrize("shuffled", [True, False])
def test_two_children_of_one_parent_are_independent_given_it(shuffled: bool) -> None:
    """Of right versions one in 10**9 seeds fails; one that does not shuffle is always caught."""
    rng = np.random.default_rng(7)
    parent = rng.integers(0, 4, 8_000)
    sizes = np.bincount(parent)
    children = []
    for _ in range(2):
        counts = controlled_counts(rng.dirichlet(np.full(5, 5.0), 4), sizes, rng)
        values = np.repeat(np.tile(np.arange(5), 4), counts.ravel())
        children.append(dealt(parent, values, rng) if shuffled else in_order(parent, values))
    p_value = p_value_of_independence(parent, children[0], children[1])
    assert (p_value > P_VALUE_MIN) == shuffled
