"""The nearest table of a total, and its independent version, against convex optimisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from inference.independence.chi_square import fitted_tables, independent_tables

cp = pytest.importorskip("cvxpy")

Floats = NDArray[np.float64]

SHARES = [0.01, 0.3, 1.0]


def objective(fitted: Floats, noisy: Floats, scales: Floats, share: float) -> float:
    missed = np.abs(fitted - noisy) / scales
    return float((1 - share) * missed.sum() + share * np.square(missed).sum())


def by_convex_optimisation(noisy: Floats, scales: Floats, total: float, share: float) -> Floats:
    table = cp.Variable(noisy.size, nonneg=True)
    missed = cp.multiply(1 / scales, table - noisy)
    problem = cp.Problem(
        cp.Minimize((1 - share) * cp.norm1(missed) + share * cp.sum_squares(missed)),
        [cp.sum(table) == total],
    )
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return np.asarray(table.value, dtype=np.float64)


def fitted(noisy: Floats, scales: Floats, total: float, share: float) -> Floats:
    (one,) = fitted_tables(noisy[np.newaxis], scales, np.array([total]), squared_share=share)
    return np.asarray(one, dtype=np.float64)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("scales_differ", [False, True])
def test_a_fit_is_the_one_that_convex_optimisation_finds(share: float, scales_differ: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(12):
        size = int(rng.integers(2, 40))
        scales = rng.uniform(1, 30, size) if scales_differ else np.full(size, 10.0)
        noisy = rng.uniform(0, 60, size) + rng.laplace(0, scales)
        total = float(max(1.0, np.rint(noisy.sum() + rng.normal(0, 100))))
        found = fitted(noisy, scales, total, share)
        oracle = by_convex_optimisation(noisy, scales, total, share)
        np.testing.assert_allclose(found, oracle, atol=2e-4 * total)
        # The oracle's solver meets its constraints up to a tolerance, and so may go a bit lower.
        assert objective(found, noisy, scales, share) <= objective(
            oracle, noisy, scales, share
        ) + 1e-6 * (1 + abs(total))


@given(
    cells=st.lists(
        st.tuples(st.floats(-1e4, 1e4), st.floats(0.01, 100.0)), min_size=1, max_size=20
    ),
    total=st.floats(0.5, 1e5),
    share=st.sampled_from(SHARES),
)
def test_a_fit_has_its_total_and_no_cell_could_trade_with_another(
    cells: list[tuple[float, float]], total: float, share: float
) -> None:
    noisy, scales = np.array(cells).T
    found = fitted(noisy, scales, total, share)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-8)
    # What raising a cell costs, lowering a positive one does not save. `rounding` is no deviation.
    missed = (found - noisy) / scales
    rounding = 1e-9 * (1 + np.abs(noisy) + total) / scales
    gain = ((1 - share) * np.where(missed < -rounding, -1, 1) + 2 * share * missed) / scales
    loss = ((1 - share) * np.where(missed > rounding, -1, 1) - 2 * share * missed) / scales
    cheapest_loss = loss[found > rounding * scales].min()
    assert gain.min() + cheapest_loss >= -1e-6 * max(np.abs(gain).max(), np.abs(loss).max())


def test_tables_are_fitted_each_by_itself() -> None:
    rng = np.random.default_rng(1)
    noisy, scales = rng.normal(20, 30, (50, 12)), rng.uniform(1, 20, 12)
    totals = rng.uniform(10, 500, 50)
    together = fitted_tables(noisy, scales, totals, squared_share=0.01)
    for row, total, one in zip(noisy, totals, together, strict=True):
        np.testing.assert_allclose(fitted(row, scales, float(total), 0.01), one, rtol=1e-12)


def test_a_table_that_needs_no_fitting_is_its_own_fit() -> None:
    table = np.array([10.0, 20.0, 30.0, 40.0])
    for share in SHARES:
        np.testing.assert_allclose(fitted(table, np.full(4, 7.0), 100.0, share), table, atol=1e-10)


def test_all_squared_is_the_projection_on_the_simplex() -> None:
    noisy = np.array([50.0, 30.0, -10.0, 4.0])
    # Sorted, thresholded: 50 - t + 30 - t = 60 at t = 10, below which the others lie.
    np.testing.assert_allclose(fitted(noisy, np.ones(4), 60.0, 1.0), [40, 20, 0, 0], atol=1e-12)


def test_hardly_squared_loses_what_the_absolute_fit_loses() -> None:
    rng = np.random.default_rng(2)
    noisy, scales = rng.normal(10, 20, 15), rng.uniform(1, 10, 15)
    total = 200.0
    table = cp.Variable(15, nonneg=True)
    problem = cp.Problem(
        cp.Minimize(cp.norm1(cp.multiply(1 / scales, table - noisy))), [cp.sum(table) == total]
    )
    problem.solve(solver=cp.CLARABEL)
    found = np.abs((fitted(noisy, scales, total, 1e-7) - noisy) / scales).sum()
    assert found == pytest.approx(float(problem.value), rel=1e-4)


def test_the_fit_does_not_depend_on_the_unit_of_the_counts() -> None:
    rng = np.random.default_rng(3)
    noisy, scales = rng.normal(20, 30, 9), rng.uniform(1, 20, 9)
    np.testing.assert_allclose(
        fitted(noisy * 1000, scales * 1000, 150_000.0, 0.01),
        fitted(noisy, scales, 150.0, 0.01) * 1000,
        rtol=1e-10,
    )


@pytest.mark.parametrize("total", [0.0, -3.0])
def test_a_total_that_no_table_has_is_refused(total: float) -> None:
    with pytest.raises(ValueError, match="total of a fitted table must be positive"):
        fitted(np.ones(4), np.ones(4), total, 0.01)


@pytest.mark.parametrize("share", [0.0, 1.1, float("nan")])
def test_a_share_without_a_unique_best_table_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="squared_share"):
        fitted(np.ones(4), np.ones(4), 4.0, share)


def test_the_independent_version_is_the_product_of_the_margins() -> None:
    table = np.random.default_rng(4).random((4, 3))
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    np.testing.assert_allclose(independent_tables(table[np.newaxis])[0], expected)


def test_given_others_it_is_the_product_within_each_of_their_levels() -> None:
    table = np.random.default_rng(5).random((4, 3, 2, 5))
    (found,) = independent_tables(table[np.newaxis])
    for one in np.ndindex(2, 5):
        (alone,) = independent_tables(table[np.newaxis, :, :, one[0], one[1]])
        np.testing.assert_allclose(found[:, :, one[0], one[1]], alone)


def test_levels_without_records_stay_empty() -> None:
    table = np.ones((2, 2, 2))
    table[:, :, 1] = 0
    found = independent_tables(table[np.newaxis])[0]
    assert (found[:, :, 1] == 0).all()
    assert (found[:, :, 0] == 1).all()
