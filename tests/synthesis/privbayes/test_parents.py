"""Sets of parents: against every set there is, the published sizes, and bounds on their number."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.query import Partition
from cube.statistic import N_CANDIDATES_MAX
from synthesis.privbayes.learning import (
    N_COLUMNS_MAX,
    candidate_pairs,
    maximal_parent_sets,
    possible_roots,
    useful_cells,
)
from synthesis.privbayes.network import Attribute

LEVELS = st.lists(st.integers(2, 9), max_size=3, unique=True).map(lambda own: sorted(own)[::-1])


def is_within(levels: tuple[int | None, ...], sizes: list[list[int]], most: float, k: int) -> bool:
    chosen = [own[level] for own, level in zip(sizes, levels, strict=True) if level is not None]
    return len(chosen) <= k and float(np.prod(chosen, dtype=float)) <= most


def n_finest(levels: tuple[int | None, ...], sizes: list[list[int]]) -> int:
    return prod(own[0] for own, level in zip(sizes, levels, strict=True) if level is not None)


@settings(deadline=None)
@given(
    st.lists(LEVELS, max_size=4), st.floats(0.5, 200), st.integers(0, 4), st.sampled_from([20, 1e9])
)
def test_sets_are_those_that_cannot_be_extended(
    sizes: list[list[int]], most: float, degree: int, finest: float
) -> None:
    options = [[None, *range(len(own))] for own in sizes]
    within = [one for one in product(*options) if is_within(one, sizes, most, degree)]
    within = [one for one in within if n_finest(one, sizes) <= finest]

    def is_more(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
        pairs = list(zip(one, other, strict=True))
        return one != other and all(b is None or (a is not None and a <= b) for a, b in pairs)

    maximal = [one for one in within if not any(is_more(other, one) for other in within)]
    expected = [
        tuple((place, level) for place, level in enumerate(one) if level is not None)
        for one in maximal
    ]
    found = list(maximal_parent_sets(sizes, most, degree, finest))
    assert sorted(found) == sorted(filter(None, expected))


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "epsilon", "n_cells"),
    [
        (303, 14, 1.0, 1.9),
        (303, 14, 0.1, 0.19),
        (48_842, 15, 1.0, 285),
        (48_842, 15, 0.1, 28.5),
        (48_842, 15, 0.02, 5.7),
        (25_000, 11, 1.0, 199),
        (25_000, 11, 0.1, 19.9),
    ],
)
def test_useful_tables_are_as_large_as_published(
    n_rows: int, n_columns: int, epsilon: float, n_cells: float
) -> None:
    """There epsilon is about replacing a record: half as much for adding or removing one."""
    found = useful_cells(0.7 * epsilon / 2, n_columns, n_rows, 4.0)
    assert found == pytest.approx(n_cells, rel=0.01)
    assert useful_cells(0.7, n_columns, -5.0, 4.0) == 0


def test_every_column_is_a_candidate_with_each_of_its_sets() -> None:
    attributes = [Attribute.plain(f"c{place}", size) for place, size in enumerate([2, 3, 5, 9])]
    pairs, degree = candidate_pairs(attributes, [0, 2], 30.0, 3)
    assert degree == 3
    assert sorted(pairs) == [(1, ((0, 0), (2, 0))), (3, ((0, 0),))]


def test_a_network_begins_where_others_can_follow() -> None:
    attributes = [Attribute.plain(f"c{place}", size) for place, size in enumerate([9, 3, 1, 4, 5])]
    assert possible_roots(attributes, [], 12.0) == [0, 1, 3, 4], "all with the constant column"
    assert possible_roots(attributes, [2], 12.0) == [1, 3]
    assert possible_roots(attributes, [2], 11.0) == [0, 1, 3, 4], "none can"
    assert possible_roots(attributes, [0, 1, 2, 3], 99.0) == [4]


@pytest.mark.parametrize(("n_max", "expected"), [(10_000, 3), (400, 2), (80, 1)])
def test_where_there_are_too_many_candidates_the_degree_is_lowered(
    n_max: int, expected: int
) -> None:
    attributes = [Attribute.plain(f"c{place:02}", 2) for place in range(16)]
    pairs, degree = candidate_pairs(attributes, range(8), 1e6, 3, n_max)
    assert degree == expected
    assert len(pairs) <= n_max
    assert {len(parents) for _, parents in pairs} == {degree}


def test_single_parents_of_the_most_columns_are_within_a_choice() -> None:
    attributes = [Attribute.plain(f"c{place:03}", 2) for place in range(N_COLUMNS_MAX)]
    pairs, degree = candidate_pairs(attributes, range(N_COLUMNS_MAX // 2), 1e6, 3)
    assert degree == 1
    assert len(pairs) == (N_COLUMNS_MAX // 2) ** 2 <= N_CANDIDATES_MAX


def test_views_merge_classes_of_the_finer_one() -> None:
    fine, coarse = (
        Partition(("age",), np.array(labels)) for labels in ([0, 0, 1, 2, 3], [0, 0, 0, 1, 1])
    )
    age = Attribute("age", (fine, coarse))
    assert age.size == 4
    assert [classes.tolist() for classes in age.classes] == [[0, 1, 2, 3], [0, 0, 1, 1]]
    crossing = Partition(("age",), np.array([0, 1, 1, 0, 0]))
    with pytest.raises(ValueError, match="must merge"):
        Attribute("age", (fine, crossing))
    with pytest.raises(ValueError, match="must merge"):
        Attribute("age", (fine, Partition(("age",), np.zeros(5, dtype=int))))
    with pytest.raises(ValueError, match="all its levels"):
        Attribute("age", (Partition(("age",), np.array([0, -1, 1])),))
    with pytest.raises(ValueError, match="no view"):
        Attribute("age", ())
    assert Attribute.plain("constant", 1).parent_sizes == ()
