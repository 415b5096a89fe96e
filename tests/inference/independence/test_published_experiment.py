"""The published experiment on noise and dependence: occupation and sex given residence, Survey.

The classical test takes noise for dependence, which was read as a fault of noise; it is one of the
test. Figures are those of the specification: 1000 trials of the classical test, 200 of ours.
"""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from inference.independence.cell_noise import LaplaceCells
from inference.independence.chi_square import Decision, independence_test, independent_tables
from tests.support.collections_of_answers import survey_marginal

SHARES = survey_marginal(("O", "R", "S")).transpose(0, 2, 1)  # occupation, sex; given residence
LEVEL = 0.05
N_DEGREES = 2  # (2 - 1) (2 - 1), for each of two residences; 3 were published
LEAST = 0.5  # a noisy count below is raised to it


def statistic(tables: np.ndarray) -> np.ndarray:
    fitted = independent_tables(tables)
    return np.asarray(((tables - fitted) ** 2 / fitted).sum(axis=(1, 2, 3)))


def noisy(n: int, epsilon: float, n_tables: int, rng: np.random.Generator) -> np.ndarray:
    exact = rng.multinomial(n, SHARES.ravel(), n_tables).reshape(-1, *SHARES.shape)
    return np.asarray(exact + rng.laplace(0, 2 / epsilon, exact.shape))


def test_the_two_are_all_but_independent() -> None:
    """So that at these sizes a right test rejects hardly more often than its level."""
    assert float(statistic(SHARES[np.newaxis])[0]) == pytest.approx(1.2e-5, rel=0.05)


@pytest.mark.parametrize(
    ("n", "accepted"),
    [(500, (0.182, 0.353, 0.443, 0.807)), (5000, (0.201, 0.579, 0.694, 0.913))],
)
def test_the_classical_test_accepts_far_too_seldom(n: int, accepted: tuple[float, ...]) -> None:
    """Within 3 standard errors of both simulations: each with odds of .003 against; seeded."""
    rng = np.random.default_rng(n)
    for epsilon, expected in zip((0.1, 0.25, 0.35, 1.0), accepted, strict=True):
        tables = np.maximum(noisy(n, epsilon, 4000, rng), LEAST)
        found = float((statistic(tables) < chi2.isf(LEVEL, N_DEGREES)).mean())
        error = math.sqrt(expected * (1 - expected) * (1 / 1000 + 1 / 4000))
        assert abs(found - expected) < 3 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.1, 0.94), (0.25, 0.95), (0.35, 0.945), (1.0, 0.955)]
)
def test_a_test_that_knows_the_noise_accepts_as_often_as_it_should(
    epsilon: float, expected: float
) -> None:
    """400 trials beside 200: 3 standard errors are .057; the classical test is .04 to .74 off."""
    rng = np.random.default_rng(round(100 * epsilon))
    noise = LaplaceCells(np.full(SHARES.shape, 2 / epsilon))
    accepted = [
        independence_test(one, noise, generator=rng, level=LEVEL, n_replicates=99).decision
        is Decision.NOT_REJECTED
        for one in noisy(5000, epsilon, 400, rng)
    ]
    assert np.mean(accepted) == pytest.approx(expected, abs=0.057)
