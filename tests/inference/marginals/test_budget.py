"""Budgets divided: against numeric optima and the dense mechanisms that the formulas describe."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cube.query import Scope
from cube.refusals import TooLarge
from inference.marginals.budget import DeclaredMarginal, laplace_weights, residual_plan
from tests.support.examples import examples
from tests.support.noisy_tables import LEVELS, Floats, marginal_matrix, shape_of

AXES = tuple(sorted(LEVELS))


@st.composite
def declared(draw: st.DrawFn) -> list[DeclaredMarginal]:
    scopes = draw(
        st.lists(
            st.sets(st.sampled_from(AXES), max_size=2), min_size=1, max_size=4, unique_by=frozenset
        )
    )
    return [
        DeclaredMarginal(tuple(sorted(one)), draw(st.sampled_from([0.5, 1.0, 3.0])))
        for one in scopes
    ]


def n_cells(scope: Scope) -> int:
    return math.prod(shape_of(scope))


@settings(max_examples=examples(30))
@given(declared())
def test_laplace_weights_are_a_numeric_optimum(marginals: list[DeclaredMarginal]) -> None:
    factors = np.array([one.importance * n_cells(one.scope) for one in marginals])
    weights = np.array(
        [float(one.exact) for one in laplace_weights(marginals, LEVELS, Fraction(2)) if one]
    )

    def variance(logs: Floats) -> float:
        shares = np.exp(logs - logs.max())
        return float((2 * factors / (2 * shares / shares.sum()) ** 2).sum())

    best = minimize(variance, np.zeros(len(marginals)), options={"gtol": 1e-8}).fun
    assert (2 * factors / weights**2).sum() == pytest.approx(best, rel=1e-6)


@given(declared(), st.fractions(Fraction(1, 1000), 10))
def test_laplace_weights_fit_into_the_budget_and_use_it(
    marginals: list[DeclaredMarginal], budget: Fraction
) -> None:
    weights = laplace_weights(marginals, LEVELS, budget)
    spent = sum(one.exact for one in weights if one)
    assert budget - Fraction(len(marginals) + 1, 2**40) < spent <= budget


def test_a_budget_below_any_weight_adds_nothing() -> None:
    assert laplace_weights([DeclaredMarginal(("a",))], LEVELS, Fraction(1, 2**41)) == (None,)


@settings(max_examples=examples(30))
@given(declared(), st.data())
def test_what_is_known_already_is_a_start_that_no_other_division_beats(
    marginals: list[DeclaredMarginal], data: st.DataObject
) -> None:
    weights = st.fractions(Fraction(0), Fraction(3), max_denominator=8)
    known = [data.draw(weights) for _ in marginals]
    added = laplace_weights(marginals, LEVELS, Fraction(1), known)
    spent = sum(one.exact for one in added if one)
    assert 1 - Fraction(len(marginals) + 1, 2**40) < spent <= 1
    factors = np.array([one.importance * n_cells(one.scope) for one in marginals])
    start = np.array([float(one) for one in known])

    def variance(parts: Floats) -> float:
        return float((2 * factors / (start + parts) ** 2).sum())

    ours = np.array([0.0 if one is None else float(one.exact) for one in added])
    shares = np.random.default_rng(0).dirichlet(np.full(len(marginals), 0.5), size=200)
    assert all(variance(ours) <= variance(share) * (1 + 1e-9) for share in shares if share.min())
    for other in range(len(marginals)):  # nor does moving a little of it
        moved = 0.99 * ours
        moved[other] += 0.01 * ours.sum()
        assert variance(ours) <= variance(moved) * (1 + 1e-9)


def residual_rows(scope: Scope) -> tuple[Floats, Floats]:
    """The rows of a residual over the whole cube, and the covariance of unit noise on them."""
    contrasts: Floats = np.ones((1, 1))
    for name in scope:
        difference = np.eye(LEVELS[name])[:-1] - np.eye(LEVELS[name], k=1)[:-1]
        contrasts = np.asarray(np.kron(contrasts, difference), dtype=np.float64)
    return contrasts @ marginal_matrix(AXES, scope), contrasts @ contrasts.T


@settings(max_examples=examples(20))
@given(declared())
def test_residuals_cost_and_give_what_the_plan_says(marginals: list[DeclaredMarginal]) -> None:
    """The mechanism written out: its cost on every cell, and its best linear unbiased estimates."""
    plan = residual_plan(marginals, LEVELS, 0.7)
    n_all = math.prod(LEVELS.values())
    information = np.zeros((n_all, n_all))
    for scope, variance in plan.variances.items():
        rows, covariance = residual_rows(scope)
        information += rows.T @ np.linalg.solve(covariance * variance, rows)
    assert np.allclose(np.diag(information), 0.7, rtol=1e-9)
    inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    everything = 0.0
    for one in marginals:
        matrix = marginal_matrix(AXES, one.scope)
        variances = np.diag(matrix @ inverse @ matrix.T)
        assert np.allclose(variances, plan.cell_variance(one.scope, LEVELS), rtol=1e-7)
        everything += one.importance * float(variances.sum())
    assert everything == pytest.approx(plan.total_variance, rel=1e-7)


@settings(max_examples=examples(20))
@given(declared())
def test_residual_variances_are_a_numeric_optimum(marginals: list[DeclaredMarginal]) -> None:
    plan = residual_plan(marginals, LEVELS, 1.0)
    subsets = list(plan.variances)
    loads = [
        sum(
            one.importance
            * n_cells(part)
            * math.prod(LEVELS[name] - 1 for name in part)
            / n_cells(one.scope)
            for one in marginals
            if set(part) <= set(one.scope)
        )
        for part in subsets
    ]
    prices = np.array([math.prod(1 - 1 / LEVELS[name] for name in part) for part in subsets])

    def variance(logs: Floats) -> float:
        precisions = np.exp(logs - logs.max())
        return float((np.array(loads) / precisions).sum() * (prices * precisions).sum())

    best = minimize(variance, np.zeros(len(subsets)), options={"gtol": 1e-8}).fun
    assert plan.total_variance == pytest.approx(best, rel=1e-5)


@given(declared())
def test_residuals_are_never_worse_than_plain_gaussian_tables(
    marginals: list[DeclaredMarginal],
) -> None:
    roots = [math.sqrt(one.importance * n_cells(one.scope)) for one in marginals]
    assert residual_plan(marginals, LEVELS, 1.0).total_variance <= sum(roots) ** 2 * (1 + 1e-12)


def test_one_table_is_measured_as_a_plain_table() -> None:
    plan = residual_plan([DeclaredMarginal(("a", "b"))], LEVELS, 0.5)
    assert plan.cell_variance(("a", "b"), LEVELS) == pytest.approx(2.0, rel=1e-12)


def test_an_axis_of_one_level_changes_nothing() -> None:
    sizes = {"a": 3, "b": 1}
    plan = residual_plan([DeclaredMarginal(("a", "b"))], sizes, 0.5)
    assert plan.cell_variance(("a", "b"), sizes) == pytest.approx(2.0, rel=1e-12)


def test_what_is_asked_for_is_checked() -> None:
    with pytest.raises(ValueError, match="importance"):
        DeclaredMarginal(("a",), 0.0)
    with pytest.raises(ValueError, match="privacy cost"):
        residual_plan([DeclaredMarginal(("a",))], LEVELS, 0.0)
    names = tuple(f"{place:02d}" for place in range(17))
    with pytest.raises(TooLarge):
        residual_plan([DeclaredMarginal(names)], dict.fromkeys(names, 2), 1.0)
