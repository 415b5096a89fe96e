"""Tables without negative cells: optimal where that is claimed, and with the residual reported."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from inference.marginals.nonnegative_fit import ROUNDING, nonnegative
from inference.marginals.projection import reconciled
from inference.marginals.table import NoisyTable, Reconciled, Solver
from tests.support.examples import examples
from tests.support.noisy_tables import Floats, flat, noisy_tables, projection_matrix, shape_of

TOTAL = 60.0


def cells_of(found: Reconciled) -> Floats:
    return flat([table.values for table in found.tables])


def with_negatives(tables: list[NoisyTable], total: float) -> list[NoisyTable]:
    """The tables with cells spread about what they would be on average, often below zero."""
    return [
        NoisyTable(one.scope, one.values - 20 + total / one.values.size, one.variance)
        for one in tables
    ]


@settings(max_examples=examples(30))
@given(noisy_tables(), st.booleans())
def test_the_programme_keeps_every_promise(tables: list[NoisyTable], is_public: bool) -> None:
    total = TOTAL if is_public else None
    found = nonnegative(with_negatives(tables, TOTAL), total=total)
    assert cells_of(found).min() >= 0
    assert found.residual < 1e-6
    again = reconciled(
        [NoisyTable(one.scope, one.values, 1.0) for one in found.tables], total=total
    )
    assert np.allclose(cells_of(again), cells_of(found), rtol=0, atol=1e-6)
    if is_public:
        assert all(abs(one.values.sum() - TOTAL) < 1e-6 for one in found.tables)
    assert all(one.standard_error is None for one in found.tables)


@settings(max_examples=examples(20))
@given(noisy_tables())
def test_the_programme_finds_the_closest_tables(tables: list[NoisyTable]) -> None:
    """By its first-order conditions: no way towards any consistent tables with cells >= 0 helps."""
    noisy = with_negatives(tables, TOTAL)
    found = cells_of(nonnegative(noisy))
    variances = flat([np.full_like(one.values, one.variance) for one in noisy])
    slope = (found - flat([one.values for one in noisy])) / variances
    # Along the consistent subspace, which the projection maps onto.
    along = projection_matrix(noisy).T @ slope
    rng = np.random.default_rng(0)
    for _ in range(20):
        joint = rng.exponential(size=(3, 2, 2, 4)) ** 3
        joint *= TOTAL / joint.sum()
        names = "abcd"
        other = flat(
            [
                joint.sum(axis=tuple(i for i, name in enumerate(names) if name not in one.scope))
                for one in noisy
            ]
        )
        assert along @ (other - found) >= -1e-4


def test_the_programme_agrees_with_another_solver() -> None:
    rng = np.random.default_rng(3)
    tables = [
        NoisyTable(scope, 3 * rng.standard_normal(shape_of(scope)) + 1, variance)
        for scope, variance in ((("a", "b"), 1.0), (("a", "c"), 2.0))
    ]
    noisy = flat([one.values for one in tables])
    variances = flat([np.full_like(one.values, one.variance) for one in tables])

    margins = np.kron(np.eye(3), np.ones((1, 2)))
    agree = LinearConstraint(np.hstack([margins, -margins]), 0, 0)

    def distance(cells: Floats) -> float:
        return float(((cells - noisy) ** 2 / variances).sum())

    best = minimize(
        distance,
        np.maximum(noisy, 0),
        bounds=[(0, None)] * noisy.size,
        constraints=[agree],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert np.allclose(cells_of(nonnegative(tables)), best.x, rtol=0, atol=1e-5)


@settings(max_examples=examples(30))
@given(noisy_tables(), st.booleans())
def test_rippling_keeps_totals_and_agreement_and_tells_what_is_left(
    tables: list[NoisyTable], is_public: bool
) -> None:
    noisy = with_negatives(tables, TOTAL)
    total = TOTAL if is_public else None
    found = nonnegative(noisy, total=total, n_programme_cells_max=0)
    cells = cells_of(found)
    deviation = max(one.variance for one in noisy) ** 0.5
    assert found.residual == pytest.approx(max(0.0, -cells.min()), abs=1e-9)
    assert found.residual < 0.1 * deviation
    again = reconciled([NoisyTable(one.scope, one.values, 1.0) for one in found.tables])
    assert np.allclose(cells_of(again), cells, rtol=0, atol=1e-8)
    everyone = max(0.0, float(reconciled(noisy, total=total).tables[0].values.sum()))
    # A cell that is below zero by rounding becomes zero.
    largest = max(float(np.abs(one.values).max()) for one in noisy)
    assert all(
        abs(one.values.sum() - everyone) < 1e-8 + ROUNDING * largest * one.values.size
        for one in found.tables
    )


def test_rippling_is_not_much_farther_than_the_closest() -> None:
    rng = np.random.default_rng(5)
    scopes = [("a", "b", "d"), ("b", "c", "d"), ("a", "c")]
    tables = [NoisyTable(one, 2 + 5 * rng.standard_normal(shape_of(one)), 25.0) for one in scopes]
    closest = nonnegative(tables)
    rippled = nonnegative(tables, n_programme_cells_max=0)
    assert (closest.solver, rippled.solver) == (Solver.CLARABEL, Solver.RIPPLING)
    assert reconciled(tables).solver is Solver.PROJECTION
    assert closest.misfit <= rippled.misfit + 1e-3
    assert rippled.misfit < 1.25 * closest.misfit


@pytest.mark.parametrize("n_cells", [0, 1000])
def test_a_negative_total_gives_empty_tables(n_cells: int) -> None:
    tables = [
        NoisyTable(("a", "b"), np.full((3, 2), -5.0), 1.0),
        NoisyTable(("a",), np.array([2.0, -9.0, 1.0]), 1.0),
        NoisyTable((), np.array(-40.0), 1.0),
    ]
    found = nonnegative(tables, n_programme_cells_max=n_cells)
    assert cells_of(found).min() >= 0
    assert found.residual < 1e-6


def test_tables_that_are_fine_are_only_projected() -> None:
    tables = [
        NoisyTable(("a", "b"), np.full((3, 2), 5.0), 1.0),
        NoisyTable(("a",), np.array([9.0, 10.0, 12.0]), 1.0),
    ]
    assert np.array_equal(cells_of(nonnegative(tables)), cells_of(reconciled(tables)))


def test_a_negative_public_total_is_no_number_of_records() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        nonnegative([NoisyTable(("a",), np.ones(3), 1.0)], total=-1.0)
