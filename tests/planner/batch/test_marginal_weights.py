"""Weights of marginals: against every combination on a ladder of weights, and by differences."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.batch.marginal_plan import MarginalModel, least_weights

Floats = NDArray[np.float64]

# Columns a (2 levels) and b (3 levels); marginals of a, of b, and of both. The interactions are
# nothing, a, b, and a with b; the queries are GROUP BY a, GROUP BY b, GROUP BY a, b, and one cell
# of a as a row of its own.
N_A, N_B = 2.0, 3.0
PARTS = np.array(
    [
        [1 / N_A**2, (1 - 1 / N_A) / N_A, 0.0, 0.0],
        [1 / N_B**2, 0.0, (1 - 1 / N_B) / N_B, 0.0],
        [
            1 / (N_A * N_B) ** 2,
            (1 - 1 / N_A) / N_A / N_B**2,
            (1 - 1 / N_B) / N_B / N_A**2,
            (1 - 1 / N_A) * (1 - 1 / N_B) / (N_A * N_B),
        ],
        [1 / N_A**2, (1 - 1 / N_A) / N_A, 0.0, 0.0],
    ]
)
INFORMED = np.array(
    [
        [1 / (2 * N_A), 1 / (2 * N_B), 1 / (2 * N_A * N_B)],
        [1 / (2 * N_A), 0.0, 1 / (2 * N_A * N_B)],
        [0.0, 1 / (2 * N_B), 1 / (2 * N_A * N_B)],
        [0.0, 0.0, 1 / (2 * N_A * N_B)],
    ]
)
START = np.ones(4)


def model(goals: list[float], bought: list[float] | None = None) -> MarginalModel:
    return MarginalModel(
        parts=PARTS,
        is_read=np.ones(4, dtype=np.bool_),
        informed=INFORMED,
        own=np.array([0, 1, 2, 3], dtype=np.int64),
        loads=np.array([1.0, 1.0, 1.0, 2.0]),
        bought=np.zeros(4) if bought is None else np.array(bought),
        goals=np.array(goals),
    )


def cheapest_on_a_ladder(problem: MarginalModel, top: float) -> float:
    """The least cost over all weights on a ladder, each solution scaled to meet the goals."""
    ladder = np.array([0.0, *top * 1.25 ** -np.arange(0.0, 14.0)])
    best = np.inf
    for added in itertools.product(ladder, repeat=4):
        weights = problem.bought + np.array(added)
        if (problem.deviations(weights) <= problem.goals).all():
            best = min(best, problem.cost(weights))
    return float(best)


@pytest.mark.parametrize(
    "goals",
    [[1.0, 1.0, 1.0, 1.0], [0.3, 0.3, 2.0, 1.0], [1.0, 0.2, 5.0, 0.4], [2.0, 2.0, 1.0, 0.5]],
)
@pytest.mark.parametrize("bought", [None, [0.5, 0.0, 0.3, 0.0]])
def test_no_combination_on_a_ladder_is_cheaper(
    goals: list[float], bought: list[float] | None
) -> None:
    problem = model(goals, bought)
    weights = least_weights(problem, [START, np.array([1.0, 1.0, 0.01, 1.0])])
    assert (weights >= problem.bought).all()
    assert (problem.deviations(weights) <= problem.goals * 1.001).all()
    assert problem.cost(weights) <= cheapest_on_a_ladder(problem, 8.0) * 1.002


def test_what_marginals_do_not_tell_is_told_by_own_rows() -> None:
    problem = model([1.0, 1.0, 1.0, 1.0]).fitted(
        np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, np.inf])
    )
    weights = least_weights(problem, [START])
    assert weights[3] == pytest.approx(np.sqrt(2), rel=1e-3)


def test_a_goal_is_moved_by_what_was_missed() -> None:
    problem = model([1.0, 1.0, 1.0, 1.0])
    fitted = problem.fitted(np.array([0.9, 1.0, 1.0, 1.0]), np.array([1.5, 1.0, 1.0, 1.0]))
    assert fitted.goals[0] == pytest.approx(0.6)


def test_slopes_are_those_of_differences() -> None:
    problem = model([1.0, 0.5, 2.0, 1.0])
    weights = np.array([0.7, 1.3, 0.4, 0.2])
    _, slopes = problem.logs(weights)
    for block in range(4):
        step = np.zeros(4)
        step[block] = 1e-6
        difference = (problem.logs(weights + step)[0] - problem.logs(weights - step)[0]) / 2e-6
        np.testing.assert_allclose(slopes[:, block], difference, rtol=1e-6, atol=1e-8)
