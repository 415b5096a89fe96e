"""Weights of a batch: closed forms, brute force, and half-widths confirmed by another method."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inference.blue.blue import OnlineBlue
from inference.noise_law.law import LawMethod, law_of_noise
from planner.batch.plan import candidate_rows, cheapest
from planner.batch.weights import Solution, WeightProblem, certified, improved, scaled_to_meet
from tests.support.examples import examples

Floats = NDArray[np.float64]


def problem_of(  # noqa: PLR0913 - the fields of a problem
    rows: Floats,
    queries: Floats,
    half_widths: Floats,
    confidence: float = 0.8,
    bought: Floats | None = None,
    *,
    fixed: bool = False,
) -> WeightProblem:
    bought = np.zeros(len(rows)) if bought is None else bought
    return WeightProblem(
        rows=rows,
        bought=bought,
        is_fixed=(bought > 0) & fixed,
        lattice_steps=np.zeros(len(rows)),
        ties=np.arange(len(rows)),
        queries=queries,
        half_widths=half_widths,
        confidences=np.full(len(queries), confidence),
        paid=bought @ np.abs(rows),
    )


def random_queries(seed: int, n_atoms: int, n_queries: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    queries = (rng.random((n_queries, n_atoms)) < 0.5).astype(np.float64)
    queries[queries.sum(axis=1) == 0, 0] = 1.0
    return queries, rng.uniform(20.0, 200.0, n_queries)


def solved(queries: Floats, half_widths: Floats) -> tuple[WeightProblem, Solution]:
    candidates = candidate_rows([], [queries], queries.shape[1], with_cells=True)
    problem = problem_of(candidates.rows, queries, half_widths)
    solution = cheapest(problem, candidates)
    assert solution is not None
    return problem, solution


def test_one_query_costs_what_theorem_5_3_says() -> None:
    _, solution = solved(np.array([[1.0, 1.0, 0.0]]), np.array([50.0]))
    assert solution.cost == pytest.approx(math.log(5) / 50, rel=1e-5)


def test_disjoint_queries_cost_what_the_dearest_of_them_costs() -> None:
    queries = np.array([[1.0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]])
    _, solution = solved(queries, np.array([50.0, 20.0, 80.0]))
    assert solution.cost == pytest.approx(math.log(5) / 20, rel=1e-5)


def half_width_by_convolution(
    problem: WeightProblem, weights: Floats, place: int, confidence: float
) -> float:
    """Normal equations and Fourier series: neither the estimator nor the contour."""
    used = weights > 0
    rows, precision = problem.rows[used], np.square(weights[used])
    gram = rows.T @ (precision[:, np.newaxis] * rows)
    coefficients = precision * (rows @ np.linalg.pinv(gram) @ problem.queries[place])
    scales = np.abs(coefficients) / weights[used]
    return law_of_noise(scales[scales > 0], LawMethod.CONVOLUTION).half_width(confidence)


@settings(max_examples=examples(3), deadline=None)
@given(seed=st.integers(0, 1000))
def test_promised_half_widths_are_confirmed_by_another_method(seed: int) -> None:
    queries, half_widths = random_queries(seed, n_atoms=5, n_queries=4)
    problem, solution = solved(queries, half_widths)
    for place, wanted in enumerate(half_widths):
        found = half_width_by_convolution(problem, solution.weights, place, 0.8)
        assert found == pytest.approx(solution.half_widths[place], rel=1e-4)
        assert found <= wanted * (1 + 1e-6)


@settings(max_examples=examples(3), deadline=None)
@given(seed=st.integers(0, 1000))
def test_a_batch_never_costs_more_than_cells_at_one_weight_or_the_queries_alone(seed: int) -> None:
    queries, half_widths = random_queries(seed, n_atoms=6, n_queries=5)
    _, solution = solved(queries, half_widths)
    cells = problem_of(np.eye(6)[queries.any(axis=0)], queries, half_widths)
    uniform = scaled_to_meet(cells, np.ones(len(cells.rows)))
    alone = (math.log(5) / half_widths) @ queries
    assert uniform is not None
    assert solution.cost <= uniform.cost * (1 + 1e-6)
    assert solution.cost <= alone.max() * (1 + 1e-5)


@pytest.mark.parametrize("seed", [1, 2])
def test_no_grid_of_weights_has_a_cheaper_point(seed: int) -> None:
    # Three rows on two cells; 16 ratios each way, the scale being settled by the tightest query.
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    half_widths = np.random.default_rng(seed).uniform(20.0, 200.0, 3)
    problem, solution = solved(rows, half_widths)
    assert len(problem.rows) >= 3
    plain = problem_of(rows, rows, half_widths)
    ratios = np.concatenate(([0.0], np.geomspace(0.05, 20.0, 16)))
    cheapest_found = math.inf
    for second, third in itertools.product(ratios, ratios):
        found = scaled_to_meet(plain, np.array([1.0, second, third]))
        cheapest_found = cheapest_found if found is None else min(cheapest_found, found.cost)
    assert solution.cost <= cheapest_found * 1.001


def test_what_was_bought_lowers_the_cost_and_enough_of_it_makes_the_batch_free() -> None:
    queries, half_widths = random_queries(7, n_atoms=5, n_queries=4)
    _, fresh = solved(queries, half_widths)
    candidates = candidate_rows([np.eye(5)], [queries], 5, with_cells=True)
    costs = []
    for weight in (0.2, 0.5, 1.0):
        level = weight * math.log(5) / half_widths.min() * queries.sum(axis=1).max()
        bought = np.where(candidates.of_kind("history"), level, 0.0)
        problem = problem_of(candidates.rows, queries, half_widths, bought=bought, fixed=True)
        solution = cheapest(problem, candidates)
        assert solution is not None
        assert (solution.half_widths <= half_widths).all()
        costs.append(solution.cost - problem.paid.max())
    assert costs[0] < fresh.cost
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0


def test_raising_a_row_costs_the_difference_alone() -> None:
    row = np.array([[1.0, 1.0]])
    problem = problem_of(row, row, np.array([50.0]), bought=np.array([0.01]))
    solution = scaled_to_meet(problem, np.array([0.02]))
    assert solution is not None
    assert solution.weights[0] == pytest.approx(math.log(5) / 50, rel=1e-5)
    assert solution.cost == pytest.approx(solution.weights[0])  # of which 0.01 was paid before


def test_improving_keeps_targets_and_never_costs_more_than_the_start() -> None:
    queries, half_widths = random_queries(11, n_atoms=8, n_queries=6)
    rows = np.vstack((np.eye(8), queries))
    problem = problem_of(rows, queries, half_widths)
    start = scaled_to_meet(problem, np.ones(len(rows)))
    found = improved(problem, np.ones(len(rows)))
    assert start is not None
    assert found is not None
    assert found.cost < 0.9 * start.cost  # a random batch leaves more than that to gain
    certificate = certified(problem, found.weights)
    assert certificate is not None
    assert (certificate.half_widths <= half_widths).all()


def test_certified_half_widths_are_those_of_the_estimator_and_the_exact_law() -> None:
    queries, half_widths = random_queries(5, n_atoms=4, n_queries=3)
    rows = np.vstack((np.eye(4), np.ones((1, 4))))
    weights = np.array([0.1, 0.2, 0.1, 0.3, 0.2])
    blue = OnlineBlue(np.ones(4))
    blue.add(rows, weights)
    scales = np.abs(blue.combine(queries).coefficients) / weights
    found = certified(problem_of(rows, queries, half_widths), weights)
    assert found is not None
    for of_query, half_width in zip(scales, found.half_widths, strict=True):
        exact = law_of_noise(of_query).half_width(0.8)
        assert exact < half_width < exact * (1 + 1e-5)  # wider by the lattice, and no more


def test_rows_that_do_not_determine_a_query_are_no_solution() -> None:
    rows = np.array([[1.0, 0.0]])
    problem = problem_of(rows, np.array([[0.0, 1.0]]), np.array([10.0]))
    assert certified(problem, np.ones(1)) is None
    assert scaled_to_meet(problem, np.ones(1)) is None
    assert improved(problem, np.ones(1)) is None
