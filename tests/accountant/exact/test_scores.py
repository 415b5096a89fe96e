"""Scores and sensitivities: definitions in other arithmetic, all small tables, published values."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.exact import choices as scores
from accountant.exact.choices import SCORE_UNITS, Contingency, grid_scores, least_lack, sensitivity
from cube.statistic import Score
from tests.support.examples import examples

Dense = tuple[tuple[int, ...], ...]  # a row for each class of the child

SHAPES = [(2, 2, 8), (2, 3, 6), (3, 3, 4)]
# ABCD of ten records: 1110, 0000, 1100, 1110, 1100, 0000, 1100, 0000, 0000, 0000
TEN_RECORDS = np.array([[1, 1, 1, 0]] * 2 + [[1, 1, 0, 0]] * 3 + [[0, 0, 0, 0]] * 5)


def contingency(table: Dense) -> Contingency:
    dense = np.array(table, dtype=np.int64)
    child, parents = np.indices(dense.shape)
    return Contingency.of(child.ravel(), [(parents.ravel(), dense.shape[1])], dense.ravel())


@cache
def units(score: Score, table: Dense) -> int:
    return grid_scores(score, [contingency(table)])[0]


def tables(n_child: int, n_parents: int, n: int) -> Iterator[Dense]:
    """Every table of so many records."""

    def parts(n: int, n_cells: int) -> Iterator[tuple[int, ...]]:
        if n_cells == 1:
            yield (n,)
            return
        for first in range(n + 1):
            for rest in parts(n - first, n_cells - 1):
                yield (first, *rest)

    for cells in parts(n, n_child * n_parents):
        yield tuple(cells[row * n_parents : (row + 1) * n_parents] for row in range(n_child))


def with_one_more(table: Dense) -> Iterator[Dense]:
    for child, parents in product(range(len(table)), range(len(table[0]))):
        rows = [list(row) for row in table]
        rows[child][parents] += 1
        yield tuple(map(tuple, rows))


def neighbours(score: Score, n: int, *, n_child: int, n_parents: int) -> int:
    """The largest difference, in units, between tables of `n` records and of one less."""
    return max(
        abs(units(score, more) - units(score, table))
        for table in tables(n_child, n_parents, n - 1)
        for more in with_one_more(table)
    )


def distance(table: Dense) -> Fraction:
    n = sum(map(sum, table))
    of_parents = [sum(column) for column in zip(*table, strict=True)]
    return (
        sum(
            (
                abs(c - Fraction(sum(row) * s, n))
                for row in table
                for c, s in zip(row, of_parents, strict=True)
            ),
            Fraction(0),
        )
        / 2
        if n
        else Fraction(0)
    )


def information(table: Dense) -> mpmath.mpf:
    n = sum(map(sum, table))
    of_parents = [sum(column) for column in zip(*table, strict=True)]
    return mpmath.fsum(
        c * mpmath.log(mpmath.mpf(c) * n / (sum(row) * s), 2)
        for row in table
        for c, s in zip(row, of_parents, strict=True)
        if c
    )


def lack(zeros: tuple[int, ...], ones: tuple[int, ...]) -> int:
    n = sum(zeros) + sum(ones)
    values = []
    for assigned in product((0, 1), repeat=len(zeros)):
        k = [0, 0]
        for value, zero, one in zip(assigned, zeros, ones, strict=True):
            k[value] += (zero, one)[value]
        values.append(sum(max(0, n - 2 * sum_) for sum_ in k))
    return min(values)


@pytest.mark.parametrize(("n_child", "n_parents", "n_max"), SHAPES)
def test_scores_are_their_definitions_on_all_small_tables(
    n_child: int, n_parents: int, n_max: int
) -> None:
    for n in range(n_max + 1):
        for table in tables(n_child, n_parents, n):
            assert units(Score.DISTANCE, table) == math.floor(distance(table) * SCORE_UNITS)
            n_terms = n_child * n_parents + n_child + n_parents + 1
            found = units(Score.INFORMATION, table) / mpmath.mpf(SCORE_UNITS)
            assert abs(found - information(table)) * SCORE_UNITS < n_terms
            if n_child == 2:
                assert units(Score.FULL_DEPENDENCE, table) == -lack(*table) * SCORE_UNITS // 2


@pytest.mark.parametrize(("n_child", "n_parents", "n_max"), SHAPES)
def test_one_record_moves_a_score_by_its_sensitivity_at_most(
    n_child: int, n_parents: int, n_max: int
) -> None:
    """And by as much, but for rounding: R moves by `2 - 2 / n`, I by all of its bound, F by 1."""
    for n in range(2, n_max + 1):
        shape = {"n_child": n_child, "n_parents": n_parents}
        moved = neighbours(Score.DISTANCE, n, **shape)
        assert moved <= sensitivity(Score.DISTANCE, n)
        assert abs(moved - (2 - Fraction(2, n)) * SCORE_UNITS) <= 1
        moved = neighbours(Score.INFORMATION, n, **shape)
        assert moved <= sensitivity(Score.INFORMATION, n) <= moved + 10
        if n_child == 2:
            moved = neighbours(Score.FULL_DEPENDENCE, n, **shape)
            assert moved == (1 if n > 2 else Fraction(1, 2)) * SCORE_UNITS
            assert moved <= sensitivity(Score.FULL_DEPENDENCE, n)


@pytest.mark.parametrize("score", Score)
def test_the_first_record_moves_no_score(score: Score) -> None:
    """A table of one record is independent; F is that of the best assignment, half a record."""
    empty: Dense = ((0, 0), (0, 0))
    assert units(score, empty) == 0
    expected = -SCORE_UNITS // 2 if score is Score.FULL_DEPENDENCE else 0
    assert {units(score, one) for one in with_one_more(empty)} == {expected}


def published(n: int, *, binary: bool) -> float:
    """Lemma 3.1 of the method: how far replacing one of `n` records moves I."""
    if binary:
        return math.log2(n) / n + (n - 1) / n * math.log2(n / (n - 1))
    return 2 / n * math.log2((n + 1) / 2) + (n - 1) / n * math.log2((n + 1) / (n - 1))


@pytest.mark.parametrize(
    ("n", "binary", "general"),
    [
        (303, 0.0319587, 0.0573325),
        (25_000, 6.42092e-4, 1.204187e-3),
        (48_842, 3.48440e-4, 6.55933e-4),
        (1_025_010, 2.08875e-5, 3.98238e-5),
    ],
)
def test_the_published_sensitivities_have_their_published_values(
    n: int, binary: float, general: float
) -> None:
    assert published(n, binary=True) == pytest.approx(binary, rel=1e-5)
    assert published(n, binary=False) == pytest.approx(general, rel=1e-5)
    added = sensitivity(Score.INFORMATION, n) / SCORE_UNITS
    assert added == pytest.approx(n * binary, rel=1e-5), "n times it: that of a new value"
    assert 2 * added >= n * general


def replaced(score: Score, n: int, n_child: int, n_parents: int) -> float:
    """The largest difference between tables that share all but one of `n` records, in records."""
    largest = 0
    for shared in tables(n_child, n_parents, n - 1):
        found = [units(score, table) for table in with_one_more(shared)]
        largest = max(largest, max(found) - min(found))
    return largest / SCORE_UNITS


@pytest.mark.parametrize("n", [4, 6, 8])
def test_replacing_a_record_moves_scores_as_published(n: int) -> None:
    """In the published terms: I and F by all of their bounds, R by less than its own."""
    assert replaced(Score.INFORMATION, n, 2, 2) == pytest.approx(
        n * published(n, binary=True), abs=1e-5
    )
    assert replaced(Score.FULL_DEPENDENCE, n, 2, 2) == 1
    assert replaced(Score.DISTANCE, n, 2, 2) == pytest.approx(2 - 2 / n, abs=1e-5)
    for score in Score:
        assert replaced(score, n, 2, 2) * SCORE_UNITS <= 2 * sensitivity(score, n)


def test_information_of_ten_records_is_the_corrected_example() -> None:
    """Columns A and B are equal, D is constant."""

    def bits(child: int, parent: int) -> float:
        table = np.zeros((2, 2), dtype=int)
        np.add.at(table, (TEN_RECORDS[:, child], TEN_RECORDS[:, parent]), 1)
        return units(Score.INFORMATION, tuple(map(tuple, table.tolist()))) / SCORE_UNITS / 10

    assert bits(0, 1) == pytest.approx(1.0, abs=1e-5)
    assert bits(0, 2) == bits(1, 2) == pytest.approx(0.2365, abs=5e-5)
    assert bits(3, 0) == bits(3, 2) == 0


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2), st.integers(0, 5)),
        max_size=40,
    ),
    st.sampled_from([1, 5, 2**20]),
)
def test_counts_of_the_same_classes_are_added_up(
    rows: list[tuple[int, int, int, int]], n_cells_dense: int
) -> None:
    """However cells are numbered."""
    child, first, second, counts = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
    expected: dict[tuple[int, int, int], int] = {}
    for one, other, another, count in rows:
        cell = (one, other, another)
        expected[cell] = expected.get(cell, 0) + count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "N_CELLS_DENSE_MAX", n_cells_dense)
        table = Contingency.of(child, [(first, 5), (second, 3)], counts)
    assert sorted(table.counts.tolist()) == sorted(filter(None, expected.values()))
    assert table.n_records == sum(expected.values())
    by_parents: dict[tuple[int, int], int] = {}
    by_child: dict[int, int] = {}
    for (one, other, another), count in expected.items():
        by_parents[other, another] = by_parents.get((other, another), 0) + count
        by_child[one] = by_child.get(one, 0) + count
    assert sorted(filter(None, table.of_parents.tolist())) == sorted(
        filter(None, by_parents.values())
    )
    assert {k: n for k, n in enumerate(table.of_child.tolist()) if n} == {
        k: n for k, n in by_child.items() if n
    }


def two_values(scale: int) -> NDArray[np.int64]:
    return np.array([[scale, 1, 7], [3, scale // 3, 5]], dtype=np.int64)


@pytest.mark.parametrize("scale", [10, 2**31, 2**38])
def test_large_tables_do_not_overflow(scale: int) -> None:
    table: Dense = tuple(map(tuple, two_values(scale).tolist()))
    assert units(Score.DISTANCE, table) == math.floor(distance(table) * SCORE_UNITS)
    assert units(Score.FULL_DEPENDENCE, table) == -lack(*table) * SCORE_UNITS // 2
    with mpmath.workdps(40):
        exact = information(table) * SCORE_UNITS
        assert abs(units(Score.INFORMATION, table) - exact) < 12


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.tuples(*[st.one_of(st.integers(0, 3), st.integers(0, 2**20))] * 2), max_size=9))
def test_the_best_assignment_is_that_of_all_assignments(pairs: list[tuple[int, int]]) -> None:
    by_value = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    zeros, ones = (tuple(counts) for counts in by_value.tolist())
    assert least_lack(by_value, int(by_value.sum())) == lack(zeros, ones)


def test_a_term_of_information_is_within_a_unit_of_what_it_is() -> None:
    rng = np.random.default_rng(1)
    numbers = [*range(1, 40), *rng.integers(40, 2**40, 60).tolist(), 2**40 - 1, 2**40]
    with mpmath.workdps(50):
        for n in numbers:
            exact = n * mpmath.log(n, 2) * SCORE_UNITS
            assert -1e-6 < exact - scores._n_log_n(n) < 1 + 1e-6


def test_exact_counts_are_not_shown() -> None:
    assert "7" not in repr(contingency(((7, 0), (0, 7))))
