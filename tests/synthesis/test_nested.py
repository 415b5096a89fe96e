"""Estimates over nested groups against weighted least squares on the parts."""

import numpy as np
import pytest

from synthesis.buckets import Buckets
from synthesis.sketch import nested_estimate
from synthesis.tables import TableEstimate


def least_squares(
    finest: TableEstimate, coarser: list[tuple[Buckets, TableEstimate]]
) -> tuple[np.ndarray, np.ndarray]:
    n_parts = finest.values.size
    rows, values, weights = [np.eye(n_parts)], [finest.values], [1 / finest.variance]
    for groups, estimate in coarser:
        rows.append(np.equal.outer(np.arange(groups.n_buckets), groups.labels).astype(float))
        values.append(estimate.values)
        weights.append(1 / estimate.variance)
    matrix, weight = np.vstack(rows), np.concatenate(weights)
    covariance = np.linalg.inv(matrix.T @ (weight[:, np.newaxis] * matrix))
    found = covariance @ matrix.T @ (weight * np.concatenate(values))
    return found, np.diag(covariance)


def estimate(rng: np.random.Generator, size: int) -> TableEstimate:
    return TableEstimate(("a",), rng.normal(50, 30, size), rng.uniform(1, 100, size))


@pytest.mark.parametrize("seed", range(20))
def test_nested_estimates_are_the_least_squares_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    middle = Buckets(np.sort(np.append(np.arange(5), rng.integers(0, 5, 7))))
    top = Buckets(np.array([1, 1, 0, 0, 0])[middle.labels])
    coarser = [(one, estimate(rng, one.n_buckets)) for one in (top, middle, top)]
    finest = estimate(rng, 12)
    found = nested_estimate(finest, coarser)
    values, variance = least_squares(finest, coarser)
    assert np.allclose(found.values, values)
    assert np.allclose(found.variance, variance)


def test_groups_that_cut_across_finer_ones_are_not_used() -> None:
    rng = np.random.default_rng(4)
    finest = estimate(rng, 4)
    halves = (Buckets(np.array([0, 0, 1, 1])), estimate(rng, 2))
    across = (Buckets(np.array([0, 1, 1, 0])), estimate(rng, 2))
    alone = nested_estimate(finest, [halves])
    assert np.array_equal(nested_estimate(finest, [halves, across]).values, alone.values)


def test_the_same_groups_with_other_numbers_are_the_same_partition() -> None:
    rng = np.random.default_rng(5)
    finest, one = estimate(rng, 3), estimate(rng, 2)
    turned = TableEstimate(("a",), one.values[::-1], one.variance[::-1])
    first = nested_estimate(finest, [(Buckets(np.array([0, 0, 1])), one)])
    second = nested_estimate(finest, [(Buckets(np.array([1, 1, 0])), turned)])
    assert np.allclose(first.values, second.values)
