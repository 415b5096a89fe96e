"""The distance of marginals against counting by hand."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.marginal_distance import mean_distance, pairs_distance, triples_distance

Rows = NDArray[np.int64]


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[Rows, Rows, list[int]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=3, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first, second = (rng.integers(0, sizes, (n, len(sizes))) for n in rng.integers(1, 30, 2))
    return first, second, sizes


def by_hand(real: Rows, synthetic: Rows, scopes: list[tuple[int, ...]]) -> float:
    total = Fraction(0)
    for scope in scopes:
        counts = [Counter(tuple(row[list(scope)]) for row in rows) for rows in (real, synthetic)]
        for cell in counts[0] | counts[1]:
            shares = [
                Fraction(one[cell], len(rows))
                for one, rows in zip(counts, (real, synthetic), strict=True)
            ]
            total += abs(shares[0] - shares[1]) / 2
    return float(total / len(scopes))


@given(two_tables())
def test_it_is_half_the_sum_of_differences_of_shares(tables: tuple[Rows, Rows, list[int]]) -> None:
    real, synthetic, sizes = tables
    for n_columns, measured in (
        (2, pairs_distance(real, synthetic, sizes)),
        (3, triples_distance(real, synthetic, sizes)),
    ):
        scopes = list(combinations(range(len(sizes)), n_columns))
        assert measured == pytest.approx(by_hand(real, synthetic, scopes), abs=1e-12)


@given(two_tables())
def test_a_table_is_at_no_distance_from_its_rows_in_another_order_and_twice(
    tables: tuple[Rows, Rows, list[int]],
) -> None:
    real, _, sizes = tables
    twice = np.concatenate([real[::-1], real])
    assert pairs_distance(real, twice, sizes) == pytest.approx(0, abs=1e-12)


def test_tables_without_a_common_row_are_as_far_apart_as_can_be() -> None:
    zeros = np.zeros((4, 3), dtype=np.int64)
    assert pairs_distance(zeros, zeros + 1, [2, 2, 2]) == 1.0


def test_a_table_without_rows_has_nothing_in_common_with_one_that_has_some() -> None:
    assert pairs_distance(np.zeros((3, 2), np.int64), np.zeros((0, 2), np.int64), [2, 2]) == 1


def test_of_many_columns_a_hundred_triples_are_taken_and_always_the_same() -> None:
    sizes = [2] * 14
    rng = np.random.default_rng(3)
    real, synthetic = (rng.integers(0, 2, (50, 14)) for _ in range(2))
    triples = list(combinations(range(14), 3))
    drawn = np.random.RandomState(0).choice(364, 100, replace=False)
    assert len(set(drawn.tolist())) == 100
    expected = mean_distance(real, synthetic, sizes, [triples[place] for place in drawn])
    assert triples_distance(real, synthetic, sizes) == expected


def test_of_very_many_combinations_only_those_that_occur_are_counted() -> None:
    rng = np.random.default_rng(3)
    real, synthetic = rng.integers(0, 40, (500, 3)), rng.integers(0, 50, (600, 3))
    few, many = (50, 50, 50), (50, 50, 2**20)
    expected = mean_distance(real, synthetic, few, [(0, 1, 2), (0, 2)])
    assert mean_distance(real, synthetic, many, [(0, 1, 2), (0, 2)]) == pytest.approx(expected)
