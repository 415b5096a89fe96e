"""Levels hidden by noise are merged, neighbours with neighbours, and no count is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthesis.buckets import VISIBLE_SDS, Buckets, merged, visible_buckets
from synthesis.tables import Column, TableEstimate


def one_way(values: list[float]) -> TableEstimate:
    return TableEstimate(("a",), np.array(values), np.array(1.0))


@pytest.mark.parametrize("labels", [[0, 2], [1, 2], [], [-1, 0]])
def test_invalid_labels_are_refused(labels: list[int]) -> None:
    with pytest.raises(ValueError, match="label"):
        Buckets(np.array(labels, dtype=np.int64))


def test_rare_levels_without_order_share_one_bucket() -> None:
    values = [50.0, 2.0, 40.0, -1.0, 30.0, 2.9]
    buckets = visible_buckets(Column("a", 6), one_way(values))
    assert [members.tolist() for members in buckets.members] == [[0], [2], [4], [1, 3, 5]]


def test_a_single_rare_level_stays_alone() -> None:
    buckets = visible_buckets(Column("a", 3), one_way([50.0, 0.0, 40.0]))
    assert buckets.n_buckets == 3


def test_levels_in_order_are_merged_with_neighbours_only() -> None:
    values = [9.0, 2.0, 2.0, 2.0, 0.0, 0.0, 9.0, 0.0, 1.0, 8.0, 1.0]
    buckets = visible_buckets(Column("a", 11, n_ordered=9), one_way(values))
    # 2 + 2 + 2 is above 3 sd of three levels, and the two at the end of the order see nothing
    assert buckets.labels.tolist() == [0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 4]


@given(st.lists(st.floats(-20.0, 20.0), min_size=1, max_size=30))
def test_every_bucket_in_order_is_a_run_and_visible_if_any_is(values: list[float]) -> None:
    counts = one_way(values)
    buckets = visible_buckets(Column("a", len(values), n_ordered=len(values)), counts)
    assert (np.diff(buckets.labels) >= 0).all()
    table = merged(counts, {"a": buckets})
    visible = table.values >= VISIBLE_SDS * np.sqrt(table.variance)
    # What is left over may pull the last one down
    assert visible[:-1].all()


def test_merging_a_pair_equals_adding_cell_by_cell() -> None:
    rng = np.random.default_rng(3)
    first, second = Buckets(np.array([0, 1, 0, 2])), Buckets(np.array([1, 0, 1]))
    pair = TableEstimate(("a", "b"), rng.normal(size=(4, 3)), rng.uniform(1.0, 2.0, (4, 3)))
    small = merged(pair, {"a": first, "b": second})
    expected, variance = np.zeros((3, 2)), np.zeros((3, 2))
    for i in range(4):
        for j in range(3):
            expected[first.labels[i], second.labels[j]] += pair.values[i, j]
            variance[first.labels[i], second.labels[j]] += pair.variance[i, j]
    assert np.allclose(small.values, expected)
    assert np.allclose(small.variance, variance)


def test_a_table_of_other_levels_is_not_merged() -> None:
    with pytest.raises(ValueError, match="levels of a"):
        merged(one_way([1.0, 2.0]), {"a": Buckets(np.array([0]))})
