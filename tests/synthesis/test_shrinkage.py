"""Shrunk scores against the posterior mean where the true distribution is known; properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import laplace, norm

from synthesis.choice import GAUSSIAN, LAPLACE, NoiseCost, shrunk_scores

COSTS = pytest.mark.parametrize("cost", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
LARGEST = 2_000.0
SCORES = st.lists(st.floats(-5_000, 5_000), min_size=1, max_size=12)


def noisy(true: np.ndarray, budget: float, cost: NoiseCost, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if cost is LAPLACE:
        return true + rng.laplace(0.0, 1 / budget, true.size)
    return true + rng.normal(0.0, budget**-0.5, true.size)


@COSTS
@given(SCORES, st.floats(1e-4, 10))
def test_they_are_possible_scores_in_the_order_of_the_noisy_ones(
    cost: NoiseCost, scores: list[float], budget: float
) -> None:
    array = np.array(scores)
    shrunk = shrunk_scores(array, LARGEST, budget, cost)
    assert ((shrunk >= 0) & (shrunk <= LARGEST * (1 + 1e-9))).all()
    assert (np.diff(shrunk[np.argsort(array)]) >= -1e-6 * LARGEST).all()


@given(SCORES, st.integers(0, 2**31))
def test_the_order_of_tables_does_not_matter(scores: list[float], seed: int) -> None:
    turn = np.random.default_rng(seed).permutation(len(scores))
    shrunk = shrunk_scores(np.array(scores), LARGEST, 0.01, LAPLACE)
    assert shrunk_scores(np.array(scores)[turn], LARGEST, 0.01, LAPLACE) == pytest.approx(
        shrunk[turn], abs=1e-6 * LARGEST
    )


@COSTS
def test_with_many_scores_they_are_nearly_as_good_as_with_the_distribution_known(
    cost: NoiseCost,
) -> None:
    """The mean square error of the posterior mean given the two values and their frequencies.

    No estimate has a smaller one. That of a law of the other kind of noise, or of no shrinking, is
    larger by far more than the limit here.
    """
    true = np.where(np.arange(2_000) % 10 == 0, 600.0, 20.0)
    budget = 1 / 200 if cost is LAPLACE else 1 / 200**2
    scores = noisy(true, budget, cost, seed=4)
    law = laplace(scale=200.0) if cost is LAPLACE else norm(scale=200.0)
    strong, weak = 0.1 * law.pdf(scores - 600.0), 0.9 * law.pdf(scores - 20.0)
    oracle = (600 * strong + 20 * weak) / (strong + weak)
    least = ((oracle - true) ** 2).mean()
    found = ((shrunk_scores(scores, LARGEST, budget, cost) - true) ** 2).mean()
    assert found < 1.1 * least
    assert found < 0.5 * ((scores - true) ** 2).mean()


@pytest.mark.parametrize(("cost", "believed"), [(LAPLACE, 0.3), (GAUSSIAN, 0.15)])
def test_winners_of_noise_promise_little(cost: NoiseCost, believed: float) -> None:
    """Of 300 nearly independent tables, noise alone makes some look strong.

    The tails of Laplace noise are heavier, so that less can be said against an outlier.
    """
    budget = 1 / 200 if cost is LAPLACE else 1 / 200**2
    for seed in range(5):
        scores = noisy(np.full(300, 10.0), budget, cost, seed)
        winners = np.argsort(-scores)[:20]
        shrunk = shrunk_scores(scores, LARGEST, budget, cost)
        assert shrunk[winners].sum() < believed * scores[winners].sum()


@COSTS
def test_scores_that_are_known_well_are_left_as_they_are(cost: NoiseCost) -> None:
    scores = np.array([5.0, 40.0, 900.0, 1_200.0])
    shrunk = shrunk_scores(scores, LARGEST, 1.0, cost)
    assert shrunk == pytest.approx(scores, rel=0.06, abs=5.0)


def test_without_rows_or_tables_there_is_nothing_to_expect() -> None:
    assert shrunk_scores(np.array([3.0, 5.0]), 0.0, 1.0, LAPLACE).tolist() == [0.0, 0.0]
    assert shrunk_scores(np.empty(0), LARGEST, 1.0, LAPLACE).size == 0
