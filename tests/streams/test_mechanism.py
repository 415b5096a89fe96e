"""What a state and a release lose together: the formula against a walk through every life."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.exponential import decided
from streams.mechanism import EPSILON_MIN, Mechanism
from streams.randomness import GRID, GeometricNoise, TwoPoint
from tests.support.pan_privacy import (
    OneUser,
    Walked,
    largest_ratio,
    ratio_of,
    ratio_to_absence,
    walked_laplace,
    walked_mechanism,
)

UNIT = Fraction(1, 2**40)
COARSE = st.builds(
    Mechanism,
    # Few digits, so that the walk's fractions stay short.
    st.integers(129, 255).map(lambda p1: TwoPoint(p1 * GRID // 256)),
    st.integers(1, 255).map(lambda alpha: GeometricNoise(alpha * GRID // 256)),
)


@settings(max_examples=20, deadline=None)
@given(COARSE)
def test_the_loss_is_the_largest_ratio_of_all_lives(mechanism: Mechanism) -> None:
    assert largest_ratio(walked_mechanism(mechanism)) == mechanism.loss


@settings(max_examples=5, deadline=None)
@given(COARSE)
def test_arrivals_alone_lose_as_much(mechanism: Mechanism) -> None:
    """One who came before the look and one who comes after it are a whole loss apart."""
    assert largest_ratio(walked_mechanism(mechanism), "+") == mechanism.loss


@settings(max_examples=3, deadline=None)
@given(COARSE)
def test_the_bits_of_others_change_nothing(mechanism: Mechanism) -> None:
    walked = walked_mechanism(mechanism, others=2)
    worst = (OneUser("+", ""), OneUser("", "+"))
    assert walked.ratio(*worst, others=2) <= mechanism.loss
    assert walked.ratio(OneUser("+", "-"), OneUser("", ""), others=2) <= mechanism.loss


@given(
    st.integers(2**30, 32 * 2**40),
    st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100)),
)
def test_what_is_declared_is_never_passed_and_hardly_missed(units: int, share: Fraction) -> None:
    epsilon = units * UNIT
    mechanism = Mechanism.for_epsilon(epsilon, state=epsilon * share)
    assert decided(epsilon, lambda power: mechanism.loss <= power)
    assert mechanism.epsilon_units <= units
    if epsilon <= 8:
        assert units - mechanism.epsilon_units <= 1
    louder = mechanism.output.threshold - 1
    if louder:
        noise = GeometricNoise(louder)
        assert decided(epsilon, lambda power: Mechanism(mechanism.state, noise).loss > power)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 1.0])
def test_halves_have_the_tight_constant(epsilon: float) -> None:
    """``kappa = ln(1 + 2 sinh eps)`` where state and release have an epsilon each."""
    both = Mechanism.for_epsilon(2 * Fraction(epsilon), state=Fraction(epsilon))
    assert math.isclose(both.output.rate, math.log1p(2 * math.sinh(epsilon)), rel_tol=1e-9)


def published_dwork(epsilon: float) -> Walked:
    return walked_laplace(0.5, 0.5 + epsilon / 4, 4.0)


def published_optbern(epsilon: float) -> Walked:
    half = math.tanh(epsilon / 2) / 2
    return walked_laplace(0.5 - half, 0.5 + half, epsilon / math.tanh(epsilon / 2))


@pytest.mark.parametrize(
    ("published", "epsilon", "alone", "any_two"),
    [
        (published_dwork, 0.05, 3.35, 3.37),
        (published_dwork, 0.1, 3.37, 3.42),
        (published_dwork, 0.2, 3.42, 3.52),
        (published_dwork, 0.5, 3.54, 3.83),
        (published_optbern, 0.05, 1.46, 1.50),
        (published_optbern, 0.1, 1.50, 1.57),
        (published_optbern, 0.2, 1.56, 1.71),
        (published_optbern, 0.5, 1.76, 2.14),
    ],
)
def test_the_walk_convicts_the_published_output_noise(
    published: object, epsilon: float, alone: float, any_two: float
) -> None:
    assert callable(published)
    walked = published(epsilon)
    assert math.isclose(math.log(ratio_to_absence(walked)), alone, abs_tol=0.006)
    assert math.isclose(math.log(largest_ratio(walked, "+")), any_two, abs_tol=0.006)


@pytest.mark.parametrize(
    ("epsilon", "simple"), [(0.05, 0.076), (0.1, 0.154), (0.2, 0.315), (0.5, 0.839)]
)
def test_the_simple_correction_leaves_some_of_the_budget_and_the_tight_one_nothing(
    epsilon: float, simple: float
) -> None:
    half = math.tanh(epsilon / 2) / 2
    walked = walked_laplace(0.5 - half, 0.5 + half, epsilon)
    assert math.isclose(math.log(largest_ratio(walked)), simple, abs_tol=0.0006)
    tight = Mechanism.for_epsilon(2 * Fraction(epsilon), state=Fraction(epsilon))
    assert math.isclose(math.log(tight.loss), 2 * epsilon, rel_tol=1e-9)


def test_two_looks_of_which_nobody_told_have_no_guarantee() -> None:
    """A bit that changed between them is an arrival for certain."""
    walked = walked_mechanism(Mechanism.for_epsilon(Fraction(1), state=Fraction(1, 2)))
    absent, arrived = OneUser("", ""), OneUser("", "+")
    assert ratio_of(walked.seen_twice(absent), walked.seen_twice(arrived)) == math.inf


def test_shares_and_epsilons_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="share"):
        Mechanism.for_epsilon(Fraction(1), state=Fraction(1))
    with pytest.raises(ValueError, match="epsilon must be from"):
        Mechanism.for_epsilon(EPSILON_MIN / 2, state=EPSILON_MIN / 4)
    with pytest.raises(ValueError, match="epsilon must be from"):
        Mechanism.for_epsilon(Fraction(33), state=Fraction(1))
    loud = Mechanism.for_epsilon(Fraction(2), state=Fraction(1))
    with pytest.raises(ValueError, match="lose more"):
        loud.within(Fraction(1))
