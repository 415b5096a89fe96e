"""Groups over which pairs are counted: few, nested, and about as large as each other."""

import numpy as np
import pytest

from synthesis.buckets import Buckets
from synthesis.sketch import COARSE, FINE, coarser, rungs
from synthesis.tables import Column


def plain(size: int) -> Buckets:
    return Buckets(np.arange(size))


@pytest.mark.parametrize("n_ordered", [0, 300, 297])
def test_rungs_are_nested_and_as_fine_as_they_may_be(n_ordered: int) -> None:
    rng = np.random.default_rng(1)
    counts = rng.gamma(0.3, 100.0, 300)
    fine, coarse = rungs(Column("a", 300, n_ordered), plain(300), counts)
    assert COARSE < fine.n_buckets <= FINE
    assert COARSE / 2 < coarse.n_buckets <= COARSE
    assert coarse.within(fine).labels.size == fine.n_buckets


def test_few_buckets_are_counted_one_by_one() -> None:
    (only,) = rungs(Column("a", 9), plain(9), np.ones(9))
    assert only.is_plain


def test_neighbours_are_grouped_in_runs_of_about_equal_counts() -> None:
    counts = np.array([8.0, 1, 1, 1, 1, 4, 4, 8, 2, 2])
    groups = coarser(Column("a", 10, 10), plain(10), counts, 4)
    assert (np.diff(groups.labels) >= 0).all()
    sums = np.bincount(groups.labels, weights=counts)
    assert sums.max() - sums.min() <= counts.max()


def test_frequent_levels_without_order_stay_alone() -> None:
    counts = np.array([5.0, 90, 1, 60, 2, 30])
    groups = coarser(Column("a", 6), plain(6), counts, 3)
    assert [sorted(members.tolist()) for members in groups.members] == [[1], [3], [0, 2, 4, 5]]


def test_levels_without_order_are_not_grouped_with_numbers() -> None:
    counts = np.append(np.ones(100), [0.0, 50.0])
    groups = coarser(Column("a", 102, 100), plain(102), counts, 16)
    assert set(groups.labels[:100].tolist()).isdisjoint(groups.labels[100:].tolist())
    assert groups.labels[100] != groups.labels[101]


def test_a_column_without_counts_has_groups_too() -> None:
    groups = coarser(Column("a", 100, 100), plain(100), np.zeros(100), 16)
    assert groups.labels.size == 100
