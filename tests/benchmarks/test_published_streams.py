"""The walk convicts what was published: figures of the register of errors, and of its tables."""

import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.published_streams import (
    DWORK,
    LEVELS,
    OPTBERN,
    QUANTISED,
    Published,
    fixed_size_loss,
    frozen_level_loss,
    laplace_loss_at,
    laplace_mean_squared_error,
    ppds_loss,
    ppds_states,
)

EPSILON = Fraction(1, 10)


@pytest.mark.parametrize(("n_arrivals", "loss"), [(1, 0.744), (2, 1.489), (4, 2.978), (8, 5.955)])
def test_a_level_that_follows_the_history_loses_with_each_arrival(
    n_arrivals: int, loss: float
) -> None:
    state = (0, frozenset({0, 2, 4}))
    assert math.isclose(ppds_loss(n_arrivals, EPSILON, state), loss, abs_tol=0.0006)
    assert ppds_loss(n_arrivals, EPSILON, (2, frozenset({3}))) == math.inf
    assert frozen_level_loss(n_arrivals, EPSILON) <= 0.1 + 1e-9


def test_the_walk_of_ppds_is_a_law() -> None:
    for arrivals in ([], [7], [7, 3, 7]):
        states = ppds_states(arrivals, EPSILON, 4)
        assert sum(states.values()) == 1
        assert all(LEVELS[user] >= level for level, held in states for user in held)


def test_a_start_with_a_fixed_number_of_ones_has_no_bound() -> None:
    assert fixed_size_loss() == math.inf


@pytest.mark.parametrize(("published", "alone"), [(DWORK, 3.37), (OPTBERN, 1.496)])
def test_a_promise_of_a_fifth_is_a_loss_of(published: Published, alone: float) -> None:
    against_absence, of_any = published.loss(0.1)
    assert math.isclose(against_absence, alone, abs_tol=0.005)
    assert of_any > against_absence


def test_the_quantised_form_loses_as_much_as_a_bernoulli_one_of_less_epsilon() -> None:
    less = math.log(2 * math.exp(0.05) - 1)
    assert math.isclose(QUANTISED.p0(0.1), OPTBERN.p0(less), rel_tol=1e-12)
    assert QUANTISED.loss(0.1)[0] > OPTBERN.loss(0.1)[0]


def test_the_laplace_estimator_has_no_bound() -> None:
    losses = [laplace_loss_at(stored, 0.1) for stored in (10.0, 100.0, 1000.0, 10_000.0)]
    assert losses == sorted(losses)
    assert losses[-1] > 900


@pytest.mark.parametrize(
    ("n_bits", "epsilon", "errors"),
    [
        (100, 0.1, (4.016, 2.022, 1.071, 1.022)),
        (100, 0.5, (0.157, 0.083, 0.0517, 0.0423)),
        (1000, 0.2, (0.0996, 0.0503, 0.0276, 0.0252)),
        (5000, 0.5, (0.00312, 0.00164, 0.00102, 0.000828)),
    ],
)
def test_published_errors_are_those_of_the_table(
    n_bits: int, epsilon: float, errors: tuple[float, float, float, float]
) -> None:
    """For a uniform stream on 100,000 users, of whom 63.21 % come."""
    dwork, laplace, quantised, optbern = errors
    d = 0.6321
    sampling = d * (1 - d) / n_bits * (100_000 - n_bits) / 99_999
    for published, expected in ((DWORK, dwork), (QUANTISED, quantised), (OPTBERN, optbern)):
        found = published.mean_squared_error(epsilon, n_bits, d) + sampling
        assert math.isclose(found, expected, rel_tol=0.006)
    found = laplace_mean_squared_error(epsilon, n_bits) + sampling
    assert math.isclose(found, laplace, rel_tol=0.006)


@pytest.mark.parametrize("published", [DWORK, OPTBERN, QUANTISED])
def test_simulated_errors_are_those_of_the_formula(published: Published) -> None:
    """The mean of 40,000 squared errors has a deviation of .8 %; seven of them are allowed."""
    estimates = published.estimates(0.2, 300, 1000, 40_000, np.random.default_rng(4))
    error = float(np.mean((estimates - 0.3) ** 2))
    formula = published.mean_squared_error(0.2, 1000, 0.3)
    assert math.isclose(error, formula, rel_tol=0.06)
