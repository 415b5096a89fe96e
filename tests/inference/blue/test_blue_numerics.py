"""Rank decisions on five families of histories, weights far apart, large blocks, and bad input."""

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.blue_speed import Gap, told_apart
from benchmarks.workloads import (
    FAMILIES,
    History,
    boxes,
    dense,
    near_copies,
    ranges,
    regions_of_interest,
    with_combinations,
)
from inference.blue.blue import N_PANEL_ROWS, Combination, GrowingMatrix, OnlineBlue, RowSpace

PRIME = 2_147_483_629  # 2**31 - 19: products of two residues fit in int64
SEED = 37


def adds_a_direction(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows of whole numbers are no combination of those before, by elimination mod a prime.

    A rank can only fall modulo a prime, and here would with odds of about one in 10**6.
    """
    residues = rows.astype(np.int64) % PRIME
    adds = np.zeros(len(residues), dtype=np.bool_)
    for place in range(len(residues)):
        pivots = np.flatnonzero(residues[place])
        if not pivots.size:
            continue
        adds[place] = True
        pivot = pivots[0]
        inverse = pow(int(residues[place, pivot]), -1, PRIME)
        normal = residues[place] * inverse % PRIME
        later = residues[place + 1 :]
        later -= later[:, pivot : pivot + 1] * normal % PRIME
        later %= PRIME
    return adds


SMALL: dict[str, History] = {
    "ranges": ranges(np.random.default_rng(SEED), n_cells=150, n_rows=200),
    "ranges on a million": ranges(np.random.default_rng(SEED), n_cells=10**6, n_rows=100),
    "regions": regions_of_interest(np.random.default_rng(SEED), n_cells=10**6, n_rows=300),
    "boxes": boxes(np.random.default_rng(SEED), side=12, n_rows=180),
    "dense": dense(np.random.default_rng(SEED), n_cells=60, n_rows=100),
}


@pytest.mark.parametrize("family", SMALL)
def test_each_row_is_called_dependent_exactly_when_elimination_says_so(family: str) -> None:
    rng = np.random.default_rng(SEED)
    history = with_combinations(rng, SMALL[family], 20)
    space = RowSpace(history.sizes)
    ranks = [0]
    for row in history.rows:
        space.extend(row[np.newaxis])
        ranks.append(space.rank)
    assert np.diff(ranks).tolist() == adds_a_direction(history.rows).astype(int).tolist()


@pytest.mark.parametrize("family", SMALL)
def test_a_block_spans_what_its_rows_span(family: str) -> None:
    """Blocks wider than a panel, partly dependent on themselves and on what came before."""
    rng = np.random.default_rng(SEED)
    history = with_combinations(rng, SMALL[family], 20)
    rank = int(adds_a_direction(history.rows).sum())
    for size in (7, N_PANEL_ROWS + 1, len(history.rows)):
        space = RowSpace(history.sizes)
        for start in range(0, len(history.rows), size):
            block = history.rows[start : start + size]
            coordinates = space.extend(block)
            np.testing.assert_allclose(coordinates @ space.basis, block, atol=1e-11)
        assert space.rank == rank
        gram = (space.basis * space.sizes) @ space.basis.T
        np.testing.assert_allclose(gram, np.eye(rank), atol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gap_between_dependent_and_independent_is_wide(family: str) -> None:
    """At the sizes the claims are made for; the largest family is thinned to keep this quick."""
    rng = np.random.default_rng(SEED)
    history = FAMILIES[family](rng)
    thinned = History(history.rows[:400], history.sizes)
    gap = told_apart(with_combinations(rng, thinned, 30))
    assert gap.n_dependent >= 30
    assert gap.largest_dependent < 1e-13
    assert gap.smallest_independent > 1e-8


def test_near_copies_are_independent_until_they_fill_the_space() -> None:
    history = near_copies(np.random.default_rng(SEED), n_cells=80, n_rows=120)
    gap = told_apart(history)
    assert isinstance(gap, Gap)
    assert (gap.n_independent, gap.n_dependent) == (80, 40)


def test_a_direction_far_below_rounding_is_not_taken_for_one() -> None:
    """The tolerance has teeth on both sides."""
    rows = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1e-12]])
    near = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1e-6]])
    assert [rank_of(rows), rank_of(near)] == [1, 2]


def test_a_query_just_outside_the_span_is_not_estimable() -> None:
    blue = OnlineBlue(np.ones(3))
    blue.add(np.array([[1.0, 1.0, 0.0]]), np.array([1.0]))
    queries = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1e-12], [1.0, 1.0, 1e-7]])
    assert blue.combine(queries).estimable.tolist() == [True, True, False]


def test_directions_that_were_nearly_dependent_come_out_orthonormal() -> None:
    """A rest of 1e-8 of a row is magnified a hundred million times, and rounding with it."""
    rng = np.random.default_rng(SEED)
    space = RowSpace(np.ones(90))
    space.extend(rng.standard_normal((40, 90)))
    first, second = rng.standard_normal((2, 20, 90))
    space.extend(np.vstack((first, first + 1e-8 * second)))
    assert space.rank == 80
    np.testing.assert_allclose(space.basis @ space.basis.T, np.eye(80), atol=1e-13)


def rank_of(rows: NDArray[np.float64]) -> int:
    space = RowSpace(np.ones(rows.shape[1]))
    space.extend(rows)
    return space.rank


def whitened_lstsq(
    rows: NDArray[np.float64], weights: NDArray[np.float64], queries: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Half-variances by LAPACK's dense least-norm solution of ``z @ (W H) = q``."""
    solution = np.linalg.lstsq((weights[:, np.newaxis] * rows).T, queries.T, rcond=None)[0]
    result: NDArray[np.float64] = np.square(solution).sum(axis=0)
    return result


@pytest.mark.parametrize("family", SMALL)
def test_it_agrees_with_lstsq_on_whitened_rows(family: str) -> None:
    rng = np.random.default_rng(SEED)
    rows, sizes = SMALL[family].rows, SMALL[family].sizes
    weights = 10.0 ** rng.uniform(-2, 1, size=len(rows))
    queries = rng.integers(-2, 3, size=(10, len(rows))) @ rows
    blue = OnlineBlue(sizes)
    blue.add(rows, weights)
    combination = blue.combine(queries)
    assert combination.estimable.all()
    expected = whitened_lstsq(rows, weights, queries)
    np.testing.assert_allclose(combination.half_variance, expected, rtol=1e-8)
    assert combination.residual.max() < 1e-11


def wide(rng: np.random.Generator) -> tuple[History, NDArray[np.float64]]:
    """Overlapping ranges with weights over nine orders and atoms over twelve, in random order."""
    history = ranges(rng, n_cells=50, n_rows=75)
    sizes = 10.0 ** rng.uniform(0, 12, size=history.sizes.size)
    return History(history.rows, sizes), 10.0 ** rng.uniform(-6, 3, size=len(history.rows))


def half_variances_to_sixty_digits(
    rows: NDArray[np.float64], weights: NDArray[np.float64], queries: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``q (H' W^2 H)^-1 q'`` in 80 digits; the ridge stands in for the null space, which q avoids.

    The smallest eigenvalue in the span is above 1e-20, so a ridge of 1e-60 spoils digits past 40.
    """
    with mpmath.workdps(80):
        exact = np.vectorize(mpmath.mpf, otypes=[object])
        weighted = exact(rows) * exact(weights)[:, np.newaxis]
        ridge = mpmath.mpf(10) ** -60 * mpmath.eye(rows.shape[1])
        normal = mpmath.matrix((weighted.T @ weighted).tolist()) + ridge
        wanted = [mpmath.matrix(exact(query).tolist()) for query in queries]
        return np.array([float((q.T * mpmath.lu_solve(normal, q))[0]) for q in wanted])


def relative_residual(combination: Combination, queries: NDArray[np.float64]) -> float:
    return float((combination.residual / np.abs(queries).max(axis=1)).max())


@pytest.mark.parametrize("seed", range(3))
def test_weights_over_nine_orders_cost_neither_unbiasedness_nor_variance(seed: int) -> None:
    """Added one by one in random order: the worst way to arrive. A refresh sorts them."""
    rng = np.random.default_rng(seed)
    history, weights = wide(rng)
    blue = OnlineBlue(history.sizes)
    for row, weight in zip(history.rows, weights, strict=True):
        blue.add(row[np.newaxis], np.array([weight]))
    queries = rng.integers(-2, 3, size=(4, len(weights))) @ history.rows
    expected = half_variances_to_sixty_digits(history.rows, weights, queries)
    for residual_max in (1e-8, 1e-11):
        combination = blue.combine(queries)
        assert combination.estimable.all()
        assert relative_residual(combination, queries) < residual_max
        np.testing.assert_allclose(combination.half_variance, expected, rtol=1e-6)
        blue.refresh()


def test_a_refresh_recovers_the_digits_an_unlucky_order_cost() -> None:
    """Lightest rows first is the order that costs most; sorting the other way gives 1e-14 back."""
    residuals = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        history = ranges(rng, n_cells=50, n_rows=75)
        weights = np.sort(10.0 ** rng.uniform(-6, 3, size=75))
        blue = OnlineBlue(history.sizes)
        for row, weight in zip(history.rows, weights, strict=True):
            blue.add(row[np.newaxis], np.array([weight]))
        blue.refresh()
        queries = rng.integers(-2, 3, size=(20, 75)) @ history.rows
        residuals.append(blue.combine(queries).residual.max())
    assert max(residuals) < 3e-13


def test_a_second_refresh_does_nothing_until_the_history_changes() -> None:
    blue = OnlineBlue(np.ones(3))
    blue.add(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([0.1, 2.0]))
    blue.refresh()
    factor = blue._factor
    blue.refresh()
    assert blue._factor is factor
    blue.raise_weights(np.array([0]), np.array([0.2]))
    raised = blue._factor
    blue.refresh()
    assert blue._factor is not raised


def test_a_thousand_updates_drift_no_further_than_one_factorisation() -> None:
    """Single rows and raised weights, against the same history added once."""
    rng = np.random.default_rng(SEED)
    rows = dense(rng, n_cells=40, n_rows=700).rows
    weights = 10.0 ** rng.uniform(-2, 0, size=len(rows))
    online, whole = OnlineBlue(np.ones(40)), OnlineBlue(np.ones(40))
    for row, weight in zip(rows, weights, strict=True):
        online.add(row[np.newaxis], np.array([weight]))
    for place in rng.permutation(len(rows))[:300]:
        weights[place] *= 1 + rng.random()
        online.raise_weights(np.array([place]), weights[[place]])
    whole.add(rows, weights)
    queries = dense(rng, n_cells=40, n_rows=20).rows
    ours, theirs = online.combine(queries), whole.combine(queries)
    np.testing.assert_allclose(ours.half_variance, theirs.half_variance, rtol=1e-11)
    assert ours.residual.max() < 1e-12


def test_a_thousand_disjoint_groups_go_in_and_come_back_as_themselves() -> None:
    n_groups = 1_000
    groups = np.repeat(np.eye(n_groups), 2, axis=1)
    blue = OnlineBlue(np.ones(2 * n_groups))
    blue.add(groups, np.full(n_groups, 0.5))
    assert blue.rank == n_groups
    combination = blue.combine(groups[:50])
    np.testing.assert_allclose(combination.coefficients, np.eye(n_groups)[:50], atol=1e-12)
    np.testing.assert_allclose(combination.half_variance, np.full(50, 4.0))
    total = blue.combine(np.ones((1, 2 * n_groups)))
    assert total.half_variance[0] == pytest.approx(4.0 * n_groups, rel=1e-12)
    assert not blue.combine(np.eye(2 * n_groups)[:1]).estimable[0]


def test_an_empty_history_knows_only_the_query_of_zeros() -> None:
    blue = OnlineBlue(np.ones(3))
    combination = blue.combine(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    assert combination.coefficients.shape == (2, 0)
    assert combination.estimable.tolist() == [True, False]
    assert combination.half_variance.tolist() == [0.0, np.inf]
    blue.refresh()
    assert (blue.n_rows, blue.rank, blue.n_atoms) == (0, 0, 3)


def test_rows_of_zeros_say_nothing_and_do_no_harm() -> None:
    blue = OnlineBlue(np.ones(2))
    blue.add(np.zeros((2, 2)), np.array([1.0, 2.0]))
    assert (blue.n_rows, blue.rank) == (2, 0)
    assert not blue.combine(np.array([[1.0, 1.0]])).estimable[0]
    blue.add(np.array([[1.0, 1.0]]), np.array([0.5]))
    blue.add(np.empty((0, 2)), np.empty(0))
    combination = blue.combine(np.array([[2.0, 2.0]]))
    np.testing.assert_allclose(combination.coefficients, [[0.0, 0.0, 2.0]])
    assert blue.combine(np.empty((0, 2))).coefficients.shape == (0, 3)


def blue_of_one() -> OnlineBlue:
    blue = OnlineBlue(np.array([2.0, 1.0]))
    blue.add(np.array([[1.0, 0.0]]), np.array([0.5]))
    return blue


@pytest.mark.parametrize("sizes", [[], [0.0], [-1.0], [np.nan], [np.inf], [[1.0]]])
def test_invalid_sizes_are_refused(sizes: list[float]) -> None:
    with pytest.raises(ValueError, match=r"size|number of cells"):
        OnlineBlue(np.array(sizes))


@pytest.mark.parametrize(
    ("rows", "weights"),
    [
        ([[1.0]], [1.0]),
        ([1.0, 2.0], [1.0]),
        ([[1.0, np.nan]], [1.0]),
        ([[1.0, np.inf]], [1.0]),
        ([[1.0, 2.0]], [1.0, 1.0]),
        ([[1.0, 2.0]], [0.0]),
        ([[1.0, 2.0]], [-1.0]),
        ([[1.0, 2.0]], [np.nan]),
    ],
)
def test_a_bad_row_is_refused_and_leaves_the_history_as_it_was(
    rows: list[list[float]], weights: list[float]
) -> None:
    blue = blue_of_one()
    with pytest.raises(ValueError, match=r"atoms|weight|finite"):
        blue.add(np.array(rows), np.array(weights))
    assert (blue.n_rows, blue.rank) == (1, 1)
    assert blue.combine(np.array([[1.0, 0.0]])).half_variance[0] == pytest.approx(4.0)


def test_a_query_over_other_atoms_is_refused() -> None:
    with pytest.raises(ValueError, match="2 atoms"):
        blue_of_one().combine(np.ones((1, 3)))


@pytest.mark.parametrize("weight", [0.25, 0.0, np.nan, np.inf])
def test_a_weight_only_rises(weight: float) -> None:
    with pytest.raises(ValueError, match="only be raised"):
        blue_of_one().raise_weights(np.array([0]), np.array([weight]))


@pytest.mark.parametrize("row", [-1, 1])
def test_only_a_row_of_the_history_can_be_raised(row: int) -> None:
    with pytest.raises(IndexError, match="the history has 1 rows"):
        blue_of_one().raise_weights(np.array([row]), np.array([1.0]))


@pytest.mark.parametrize(
    ("parents", "sizes"),
    [
        ([0, 1], [2.0]),
        ([0, 2], [2.0, 1.0]),
        ([0, -1], [2.0, 1.0]),
        ([0, 0, 1], [1.0, 2.0, 1.0]),
        ([0, 0], [1.0, 1.0]),
        ([0, 0, 1], [2.0, 0.0, 1.0]),
    ],
)
def test_a_cut_that_loses_or_invents_cells_is_refused(
    parents: list[int], sizes: list[float]
) -> None:
    blue = blue_of_one()
    with pytest.raises(ValueError, match=r"parent|pieces|number of cells"):
        blue.split(np.array(parents), np.array(sizes))
    assert blue.n_atoms == 2


def test_a_growing_matrix_keeps_what_it_holds() -> None:
    growing, expected = GrowingMatrix(2), np.empty((0, 2))
    rng = np.random.default_rng(SEED)
    for n_columns in (2, 2, 5, 5, 40):
        rows = rng.random((13, n_columns))
        growing.append(rows)
        expected = np.pad(expected, ((0, 0), (0, n_columns - expected.shape[1])))
        expected = np.vstack((expected, rows))
        np.testing.assert_array_equal(growing.values, expected)
    sources = np.array([3, 3, 0])
    growing.gather_columns(sources)
    np.testing.assert_array_equal(growing.values, expected[:, sources])
    growing.append(rng.random((100, 4)))
    assert not growing.values[: len(expected), 3].any()
    with pytest.raises(ValueError, match="3 columns, but the matrix has 4"):
        growing.append(rng.random((1, 3)))


@pytest.mark.parametrize("n_groups", [1, 40, N_PANEL_ROWS + 10])
def test_a_partition_put_first_is_made_orthogonal_like_any_other_rows(n_groups: int) -> None:
    rng = np.random.default_rng(SEED)
    sizes = rng.integers(1, 10**6, size=300).astype(np.float64)
    group = rng.permutation(sizes.size) % n_groups
    groups = (group == np.arange(n_groups)[:, np.newaxis]) * rng.integers(1, 9, size=sizes.size)
    others = rng.integers(-1, 2, size=(7, sizes.size))
    rows = np.concatenate((groups, others, np.zeros((1, sizes.size)))).astype(np.float64)
    space, in_disorder = RowSpace(sizes), RowSpace(sizes)
    coordinates = space.extend(rows)
    in_disorder.extend(rows[::-1])
    assert space.rank == in_disorder.rank == n_groups + len(others)
    products = (space.basis * sizes) @ space.basis.T
    np.testing.assert_allclose(products, np.eye(space.rank), atol=1e-12)
    np.testing.assert_allclose(coordinates @ space.basis, rows, atol=1e-9)
    assert space.project(in_disorder.basis)[1].max() < 1e-12
