"""The epsilon of Gaussian noise: against high precision, published numbers, and a fine search."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from accountant.auditor import noise as audited
from accountant.cost.zcdp_account import SLACK, GaussianAccount, best_terms, constant_of, cost_of
from cube.measurement import (
    DELTA_MAX,
    DELTA_MIN,
    ORDER_MAX,
    UNITS_PER_EPSILON,
    UNITS_PER_RHO,
    GaussianTerms,
)
from cube.refusals import InvalidRequest
from tests.support.examples import examples

BILLIONTH = Fraction(1, 10**9)

deltas = st.fractions(DELTA_MIN, DELTA_MAX)
orders = st.integers(1025, ORDER_MAX * 1024).map(lambda units: Fraction(units, 1024))
terms = st.builds(GaussianTerms, deltas, orders)
rhos = st.integers(0, 2**63)


def exact_constant(one: GaussianTerms) -> mpmath.mpf:
    """By a library that shares nothing with ours."""
    order = mpmath.mpf(one.order.numerator) / one.order.denominator
    delta = mpmath.mpf(one.delta.numerator) / one.delta.denominator
    return mpmath.log(1 / (order * delta)) / (order - 1) + mpmath.log(1 - 1 / order)


@settings(deadline=None)
@given(terms)
def test_the_constant_is_the_exact_one_rounded_up_by_less_than_anybody_pays(
    one: GaussianTerms,
) -> None:
    with mpmath.workdps(90):
        exact = max(mpmath.mpf(0), exact_constant(one))
        found = constant_of(one)
        excess = mpmath.mpf(found.numerator) / found.denominator - exact
        assert 0 <= excess <= 2 * mpmath.mpf(10) ** -40


@settings(deadline=None)
@given(terms, rhos)
def test_the_auditor_finds_the_same_cost_by_other_means(one: GaussianTerms, rho_units: int) -> None:
    by_auditor = audited.cost_units(audited.Terms(one.delta, one.order), rho_units)
    assert by_auditor == GaussianAccount(one, rho_units).units


@settings(deadline=None)
@given(st.fractions(Fraction(1, 10**31), 10**6))
def test_the_auditors_logarithm_is_one(value: Fraction) -> None:
    with mpmath.workdps(90):
        exact = mpmath.log(mpmath.mpf(value.numerator) / value.denominator)
        found = audited.logarithm(value)
        difference = mpmath.mpf(found.numerator) / found.denominator - exact
        assert abs(difference) < mpmath.mpf(10) ** -65


@pytest.mark.parametrize(
    ("epsilon", "deviation_of_mu_one"),
    [
        # Of zero-concentrated privacy at delta 1e-9: sigma = 1 / sqrt(2 rho) for epsilon.
        (1.0, 5.7787),
        (0.1, 53.129),
    ],
)
def test_a_billionth_buys_the_noise_that_others_find(
    epsilon: float, deviation_of_mu_one: float
) -> None:
    """The conversion that AIM and MST use gives a mu of 0.17305 for an epsilon of 1."""
    one = best_terms(BILLIONTH, Fraction(epsilon))
    rho = GaussianAccount().most_rho_units(one, Fraction(epsilon)) / UNITS_PER_RHO
    assert 1 / math.sqrt(2 * rho) == pytest.approx(deviation_of_mu_one, rel=2e-4)


@settings(deadline=None, max_examples=examples(25))
@given(st.floats(0.01, 8), st.sampled_from([1e-5, 1e-9, 1e-12]))
def test_the_best_terms_are_as_good_as_a_fine_search_finds(epsilon: float, delta: float) -> None:
    one = best_terms(Fraction(delta), Fraction(epsilon))
    rho = GaussianAccount().most_rho_units(one, Fraction(epsilon)) / UNITS_PER_RHO

    def epsilon_of(log_less: float) -> float:
        order = 1 + math.exp(log_less)
        tail = -math.log(order * delta) / (order - 1)
        return rho * order + tail + math.log1p(-1 / order)

    best = optimize.minimize_scalar(epsilon_of, bounds=(-7, 13), method="bounded").fun
    assert best <= epsilon * (1 + 1e-12)
    assert best >= epsilon * (1 - 1e-3)


@given(terms, rhos, rhos)
def test_more_rho_costs_more_and_the_sum_costs_what_the_steps_do(
    one: GaussianTerms, first: int, second: int
) -> None:
    account = GaussianAccount().followed_by(first, one)
    both = account.followed_by(second, one)
    assert account.units <= both.units
    assert both == GaussianAccount().followed_by(first + second, one)
    exact = cost_of(one, first + second) * UNITS_PER_EPSILON
    assert exact <= both.units < exact + 1


@settings(deadline=None)
@given(terms, st.integers(0, 2**60), st.fractions(0, 10))
def test_the_most_that_may_be_bought_is_all_of_an_epsilon_and_no_more(
    one: GaussianTerms, held: int, epsilon: Fraction
) -> None:
    account = GaussianAccount(one, held)
    most = account.most_rho_units(one, epsilon)
    available = int(epsilon * UNITS_PER_EPSILON)
    assert account.followed_by(most, one).units - account.units <= available
    one_unit = math.ceil(UNITS_PER_RHO / (one.order * UNITS_PER_EPSILON)) + 1
    assert account.followed_by(most + one_unit, one).units - account.units >= available


def test_terms_never_change_and_no_noise_costs_nothing() -> None:
    one = GaussianTerms(BILLIONTH, Fraction(38))
    assert GaussianAccount().units == 0
    account = GaussianAccount().followed_by(1, one)
    assert account.units == math.ceil(constant_of(one) * UNITS_PER_EPSILON)
    with pytest.raises(ValueError, match="differ from the table's"):
        account.followed_by(1, GaussianTerms(BILLIONTH, Fraction(39)))
    assert account.terms_for(BILLIONTH, Fraction(1, 10)) is one
    with pytest.raises(InvalidRequest, match="another delta"):
        account.terms_for(2 * BILLIONTH, Fraction(1))
    with pytest.raises(ValueError, match="must be positive"):
        GaussianAccount().terms_for(BILLIONTH, Fraction(0))


@pytest.mark.parametrize(
    ("delta", "order"),
    [
        (Fraction(0), Fraction(38)),
        (Fraction(1, 100), Fraction(38)),
        (Fraction(1, 10**31), Fraction(38)),
        (BILLIONTH, Fraction(1)),
        (BILLIONTH, Fraction(4, 3)),
        (BILLIONTH, Fraction(2**20 + 1)),
    ],
)
def test_terms_without_a_guarantee_are_refused(delta: Fraction, order: Fraction) -> None:
    with pytest.raises(ValueError, match=r"delta must be|the order must be"):
        GaussianTerms(delta, order)


@pytest.mark.parametrize("order", [Fraction(3), Fraction(34), Fraction(293)])
@pytest.mark.parametrize("rho", [0.001, 0.015, 0.4])
def test_gaussian_noise_keeps_the_promised_delta(order: Fraction, rho: float) -> None:
    """The exact delta of one Gaussian release at the epsilon of the account (Balle & Wang 2018)."""
    one = GaussianTerms(BILLIONTH, order)
    epsilon, mu = float(cost_of(one, int(rho * UNITS_PER_RHO))), math.sqrt(2 * rho)
    log_second = epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)
    delta = stats.norm.cdf(-epsilon / mu + mu / 2) - math.exp(log_second)
    assert delta <= 1e-9
    assert float(SLACK) < 1e-30


def test_stopping_adaptively_gains_no_more_than_delta() -> None:
    """Steps until the loss exceeds their cost: with one fixed order, that stays rare.

    Losses are normal with mean rho and variance 2 rho; the delta is one that can be simulated.
    """
    delta, n_walks, n_steps = Fraction(1, 1000), 40_000, 200
    one = best_terms(delta, Fraction(1))
    rho = 4 * GaussianAccount().most_rho_units(one, Fraction(1)) / UNITS_PER_RHO
    steps = rho * np.geomspace(1e-4, 1, n_steps)
    generator = np.random.default_rng(20261122)
    grown = np.diff(steps, prepend=0.0)
    losses = np.cumsum(generator.normal(grown, np.sqrt(2 * grown), (n_walks, n_steps)), axis=1)

    def passed(epsilons: np.ndarray) -> float:
        """The chance beyond epsilon, weighed as delta is, where the walk stops at its best."""
        beyond = 1 - np.exp(np.minimum(0.0, epsilons - losses))
        first = np.argmax(beyond > 0, axis=1)
        return float(beyond[np.arange(n_walks), first].mean())

    fixed = np.array([float(cost_of(one, int(step * UNITS_PER_RHO))) for step in steps])
    standard_error = math.sqrt(float(delta) / n_walks)
    assert passed(fixed) < float(delta) + 5 * standard_error
