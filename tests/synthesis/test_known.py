"""What a history knows: whole partitions over levels or groups of them, and nothing else."""

from fractions import Fraction

import numpy as np
import pytest

from cube.measurement import Measurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.statistic import GaussianNoisyCounts
from inference.history import History
from synthesis.buckets import Buckets, GroupedEstimate, refined
from synthesis.known import KnownEstimates
from synthesis.model import fit_model
from synthesis.sketch import Sketch
from synthesis.tables import Column, TableEstimate
from tests.support.mixed_history import Look

COLUMNS = (Column("a", 4), Column("b", 3))


def measured(
    block: QueryBlock, *values: int, supersedes: int | None = None, weight: int = 1
) -> Measurement:
    return Measurement(block, Weight.at_least(weight), 0, 1 / weight, values, supersedes)


def partition(labels: object, *axes: str) -> QueryBlock:
    return QueryBlock(counting(), Partition(axes, np.array(labels, dtype=np.int64)))


def known(*measurements: Measurement) -> KnownEstimates:
    history = History()
    history.add(measurements)
    return KnownEstimates.from_history(history, COLUMNS)


def test_counts_of_levels_are_tables_in_the_order_of_the_levels() -> None:
    found = known(measured(partition([2, 0, 1, 3], "a"), 10, 20, 30, 40))
    [table] = found.tables
    assert table.scope == ("a",)
    assert table.values.tolist() == [30, 10, 20, 40]
    assert table.variance.tolist() == [2.0] * 4
    assert found.n_rows == 100


def test_a_product_of_groups_is_grouped_and_anything_else_not_used() -> None:
    product = [[0, 1, 1], [0, 1, 1], [2, 3, 3], [0, 1, 1]]
    crossed = [[0, 1, 1], [0, 1, 1], [2, 1, 1], [0, 1, 1]]
    partial = [[0, 1, -1], [0, 1, -1], [2, 3, -1], [0, 1, -1]]
    [grouped] = known(measured(partition(product, "a", "b"), 5, 6, 7, 8)).grouped
    assert [one.labels.tolist() for one in grouped.groups] == [[0, 0, 1, 0], [0, 1, 1]]
    assert grouped.table.values.tolist() == [[5, 6], [7, 8]]
    assert len(known(measured(partition(crossed, "a", "b"), 1, 2, 3))) == 0
    assert len(known(measured(partition(partial, "a", "b"), 1, 2, 3, 4))) == 0
    adults = counting([Factor(("b",), np.array([0, 1, 1]))])
    of_some = QueryBlock(adults, Partition(("a",), np.arange(4)))
    twice = QueryBlock(LinearQuery((Term(Fraction(2), ()),)).primitive()[0], None)
    assert len(known(measured(of_some, 1, 2, 3, 4))) == 0
    assert known(measured(twice, 7)).n_rows == 7


def test_counts_by_more_columns_give_the_tables_of_their_pairs() -> None:
    columns = (*COLUMNS, Column("c", 2))
    values = np.arange(24)
    block = QueryBlock(counting(), Partition(("a", "b", "c"), values.reshape(4, 3, 2)))
    history = History()
    history.add([measured(block, *values.tolist())])
    found = KnownEstimates.from_history(history, columns)
    assert [table.scope for table in found.tables] == [("a", "b"), ("a", "c"), ("b", "c")]
    for table, axis, n_summed in zip(found.tables, (2, 1, 0), (2, 3, 4), strict=True):
        assert np.array_equal(table.values, values.reshape(4, 3, 2).sum(axis=axis))
        assert (table.variance == 2 * n_summed * 2.0).all()
    one_way = Sketch.of(columns, found.tables).one_ways["a"]
    assert np.array_equal(one_way.values, values.reshape(4, 6).sum(axis=1))
    assert one_way.variance == pytest.approx(6 * 2.0), "as if it were there once"
    [of_two] = KnownEstimates.from_history(history, COLUMNS[:1]).tables
    assert of_two.scope == ("a",)
    assert (of_two.variance == 6 * 2.0).all()


def test_what_was_raised_counts_once_and_other_columns_not_at_all() -> None:
    rows = partition([0, 1, 2, 3], "a")
    found = known(measured(rows, 1, 2, 3, 4), measured(rows, 5, 6, 7, 8, supersedes=0, weight=2))
    [table] = found.tables
    assert table.values.tolist() == [5, 6, 7, 8]
    assert table.variance.tolist() == [0.5] * 4
    assert len(known(measured(partition([0, 1], "z"), 1, 2))) == 0
    assert known().n_rows is None


def test_refined_buckets_hold_levels_that_are_together_in_both() -> None:
    """Against every pair of levels, on random labels."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        labels = [np.unique(rng.integers(0, 3, 8), return_inverse=True)[1] for _ in range(2)]
        first, second = map(Buckets, labels)
        both = refined(first, second)
        together = np.equal.outer(labels[0], labels[0]) & np.equal.outer(labels[1], labels[1])
        assert np.array_equal(np.equal.outer(both.labels, both.labels), together)
        for one in (first, second):
            assert np.array_equal(one.within(both).labels[both.labels], one.labels)


def pair(labels: list[list[int]], variance: float) -> GroupedEstimate:
    groups = tuple(Buckets(np.array(one)) for one in labels)
    shape = tuple(one.n_buckets for one in groups)
    return GroupedEstimate(
        groups, TableEstimate(("a", "b"), np.full(shape, 9.0), np.array(variance))
    )


def test_every_earlier_table_is_used_over_its_own_groups() -> None:
    crude, fine = pair([[0, 0, 1, 1], [0, 1, 1]], 1.0), pair([[0, 1, 2, 2], [0, 1, 2]], 2.0)
    sketch = Sketch.of(COLUMNS, [], [fine, crude])
    assert {name: one.labels.tolist() for name, one in sketch.buckets.items()} == {
        "a": [0, 1, 2, 2],
        "b": [0, 1, 2],
    }
    assert [[one.labels.tolist() for one in groups] for _, groups, _ in sketch.known_pairs] == [
        [[0, 1, 2], [0, 1, 2]],
        [[0, 0, 1], [0, 1, 1]],
    ]


def test_a_column_known_by_groups_alone_is_even_within_them() -> None:
    grouped = pair([[0, 0, 1, 1], [0, 1, 1]], 1e-6)
    sketch = Sketch.of(COLUMNS, [], [grouped])
    assert sketch.unknown == ()
    model = fit_model(sketch)
    assert model.total == pytest.approx(36.0)
    assert model.parts["a"].tolist() == [0.5] * 4
    assert model.parts["b"].tolist() == [1.0, 0.5, 0.5]
    assert model.shares["a"] == pytest.approx([0.5, 0.5])


def test_buckets_that_cut_a_group_are_refused() -> None:
    with pytest.raises(ValueError, match="several of the coarser"):
        pair([[0, 0, 1, 1], [0, 1, 1]], 1.0).over(
            {"a": Buckets(np.arange(4)), "b": Buckets(np.arange(3))}
        )


def test_counts_with_gaussian_noise_are_used_with_their_variance() -> None:
    history = History()
    history.add([measured(partition([0, 1, 2, 3], "a"), 10, 20, 30, 40)])
    adults = counting([Factor(("b",), np.array([0, 1, 1]))])
    beside = [
        GaussianNoisyCounts(partition([0, 1, 2, 3], "a"), np.array([12.0, 18, 30, 44]), 3.0),
        GaussianNoisyCounts(QueryBlock(counting()), np.array([100.0]), 5.0),
        GaussianNoisyCounts(partition([0, 0, 1], "b"), np.array([60.0, 41.0]), 2.0),
        GaussianNoisyCounts(partition([0, 1], "elsewhere"), np.array([60.0, 41.0]), 2.0),
        GaussianNoisyCounts(QueryBlock(adults, Partition(("a",), np.arange(4))), np.zeros(4), 2.0),
    ]
    found = KnownEstimates.from_history(history, COLUMNS, beside)
    assert [table.scope for table in found.tables] == [("a",), ("a",)]
    assert [float(table.variance[0]) for table in found.tables] == [2.0, 9.0]
    [grouped] = found.grouped
    assert grouped.table.variance.tolist() == [4.0, 4.0]
    sums, variances = (100.0, 104.0, 101.0, 100.0), (8.0, 36.0, 8.0, 25.0)
    weights = [1 / variance for variance in variances]
    mean = sum(w * one for w, one in zip(weights, sums, strict=True)) / sum(weights)
    assert found.n_rows == pytest.approx(mean)


def test_rows_with_gaussian_noise_count_with_the_variance_of_their_noise() -> None:
    block = partition([0, 1, 2, 3], "a")
    [table] = known(Look(block, 3.0, is_gaussian=True).measured()).tables
    assert table.variance == pytest.approx([9.0] * 4)


def test_of_a_stratum_only_counts_that_lie_inside_it_are_used() -> None:
    full = measured(partition([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]], "a", "b"), *range(12))
    inside = measured(
        partition([[-1, 0, -1], [-1, 0, -1], [-1, 1, -1], [-1, 2, -1]], "a", "b"), 5, 6, 7
    )
    across = measured(partition([[0, 0, 1], [2, 2, 3], [4, 4, 5], [6, 6, 7]], "a", "b"), *range(8))
    alone, of_all = (
        measured(partition([0, 1, 2], "b"), 40, 50, 60),
        measured(partition([0, 1, 2, 3], "a"), 1, 2, 3, 4),
    )
    history = History()
    history.add([full, inside, across, alone, of_all])
    elsewhere = measured(partition([[0, 1], [2, 3], [4, 5]], "b", "z"), *range(6))
    history.add([elsewhere])  # of a column that is not asked for
    found = KnownEstimates.from_history(history, COLUMNS[:1], stratum=(("b", 1),))
    [table] = found.tables
    assert table.scope == ("a",)
    assert table.values.tolist() == [1, 4, 7, 10]
    [grouped] = found.grouped
    assert grouped.groups[0].labels.tolist() == [0, 0, 1, 2]
    assert grouped.table.values.tolist() == [5, 6, 7]
    weights = (1 / 8, 1 / 6, 1 / 2)
    assert found.n_rows == pytest.approx(np.average([22, 18, 50], weights=weights))


def test_by_holder_a_columns_counts_give_way_to_those_of_each_holder() -> None:
    """So no noise is used twice; the pair, and groups of levels, stay as they are."""
    pair = np.arange(12).reshape(4, 3)
    groups = [0, 0, 1, 1]
    held = []
    for times in (1, 10):
        history = History()
        history.add(
            [
                measured(partition(np.arange(4), "a"), *(times * np.arange(1, 5)).tolist()),
                measured(partition(pair, "a", "b"), *(times * np.arange(12)).tolist()),
                measured(partition(groups, "a"), 3 * times, 7 * times),
                measured(QueryBlock(counting()), 10 * times, weight=times),
            ]
        )
        held.append(history)
    both = known(
        measured(partition(np.arange(4), "a"), 11, 22, 33, 44),
        measured(partition(pair, "a", "b"), *(11 * np.arange(12)).tolist()),
        measured(partition(groups, "a"), 33, 77),
    )
    for name in ("holder", "A"):  # which comes before the column, or after it
        found = both.by_holder(held, COLUMNS, name)
        tables = {one.scope: one for one in found.tables}
        of_a = tables[tuple(sorted(("a", name)))]
        values = of_a.values if name == "A" else of_a.values.T
        assert values.tolist() == [[1, 2, 3, 4], [10, 20, 30, 40]]
        assert (of_a.variance == 2.0).all()
        assert tables[name,].values.tolist() == [10, 100]
        assert tables[name,].variance == pytest.approx([2.0, 0.02])
        assert set(tables) == {of_a.scope, ("a", "b"), (name,)}
        assert found.grouped == both.grouped
        assert found.n_rows == both.n_rows


def test_what_one_holder_has_not_measured_is_not_known_by_holder() -> None:
    history, empty = History(), History()
    history.add([measured(partition(np.arange(4), "a"), 1, 2, 3, 4)])
    both = known(measured(partition(np.arange(3), "b"), 1, 2, 3))
    found = both.by_holder([history, empty], COLUMNS, "holder")
    assert [one.scope for one in found.tables] == [("b",)]
