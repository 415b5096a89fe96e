"""What counters of visits lose: the formula against a walk through every life of a user."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.exponential import decided
from streams.counters import (
    LEVELS_MAX,
    N_RELEASES_MAX,
    CounterMechanism,
    best_counter_mechanism,
)
from streams.mechanism import EPSILON_MIN
from streams.randomness import GRID, GeometricNoise, TwoPoint
from tests.support.counted_visits import LOOK, RELEASE, WalkedCounter, largest_ratio

UNIT = Fraction(1, 2**40)


def coarse(levels: int, p1: int = 11, alpha: int = 10, n_releases: int = 1) -> CounterMechanism:
    """Few digits, so that the walk's fractions stay short."""
    law, noise = TwoPoint(p1 * GRID // 16), GeometricNoise(alpha * GRID // 16)
    return CounterMechanism(levels, law, noise, n_releases)


@pytest.mark.parametrize(("levels", "n_max"), [(2, 3), (3, 3)])
def test_the_loss_is_the_largest_ratio_of_all_lives(levels: int, n_max: int) -> None:
    mechanism = coarse(levels)
    assert largest_ratio(WalkedCounter(mechanism), n_max) == mechanism.loss


@pytest.mark.parametrize("moments", [(LOOK, RELEASE, RELEASE), (RELEASE, LOOK, RELEASE)])
def test_each_release_before_or_after_the_look_is_a_factor(moments: tuple[str, ...]) -> None:
    mechanism = coarse(2, n_releases=2)
    assert largest_ratio(WalkedCounter(mechanism, moments), 1) == mechanism.loss


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_a_stolen_state_tells_as_little_as_one_bit(levels: int) -> None:
    """Whatever the visits, and never the position alone: an intruder has the odds of one bit."""
    walked = WalkedCounter(coarse(levels), (LOOK,))
    assert largest_ratio(walked, levels + 2) == walked.mechanism.state.odds
    for n_visits in range(levels + 2):
        law = walked.law((n_visits,))
        for c in range(levels):
            assert law[((c, 0),)] + law[((c, 1),)] == Fraction(1, levels)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_a_bit_is_that_of_a_present_user_exactly_above_its_position(levels: int) -> None:
    """The law that every estimate rests on; visits beyond the levels count no more."""
    walked = WalkedCounter(coarse(levels), (LOOK,))
    p1 = walked.mechanism.state.p1
    for n_visits in range(2 * levels + 2):
        law = walked.law((n_visits,))
        for c in range(levels):
            assert law[((c, 1),)] * levels == (p1 if n_visits > c else 1 - p1)


def test_the_walk_convicts_positions_that_all_start_at_0() -> None:
    """A position that starts at 0 is the number of visits, in the clear."""
    walked = WalkedCounter(coarse(2), (LOOK,), (Fraction(99, 100), Fraction(1, 100)))
    assert largest_ratio(walked, 3) > 50 * walked.mechanism.state.odds


def test_the_walk_convicts_noise_for_one_number_alone() -> None:
    """A user moves two of the released numbers by one, or one by two."""
    built = coarse(2)
    half = CounterMechanism(2, built.state, GeometricNoise(15 * GRID // 16))
    assert largest_ratio(WalkedCounter(half), 3) > half.state.odds / half.output.alpha


def test_two_looks_of_which_nobody_told_have_no_guarantee() -> None:
    """The position moved between them by the number of visits."""
    walked = WalkedCounter(coarse(3), (LOOK, LOOK))
    absent, came = walked.law((0, 0)), walked.law((0, 1))
    assert not absent.keys() & came.keys()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(2**32, 32 * 2**40),
    st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100)),
    st.integers(1, 3),
)
def test_what_is_declared_is_never_passed_and_hardly_missed(
    units: int, share: Fraction, n_releases: int
) -> None:
    epsilon = units * UNIT
    mechanism = CounterMechanism.for_epsilon(
        epsilon, state=epsilon * share, levels=5, n_releases=n_releases
    )
    assert decided(epsilon, lambda power: mechanism.loss <= power)
    assert mechanism.epsilon_units <= units
    louder = mechanism.output.threshold - 1
    if louder:
        noise = GeometricNoise(louder)
        passed = CounterMechanism(5, mechanism.state, noise, n_releases)
        assert decided(epsilon, lambda power: passed.loss > power)


@pytest.mark.parametrize("epsilon", [Fraction(1, 5), Fraction(1), Fraction(4)])
def test_the_best_division_has_less_variance_than_others(epsilon: Fraction) -> None:
    def variance(mechanism: CounterMechanism) -> float:
        noise = mechanism.output.variance
        return float((1000 / Fraction(4) + noise) / mechanism.state.separation**2)

    best = variance(best_counter_mechanism(epsilon, 1000, 4))
    for share in (Fraction(1, 2), Fraction(7, 10), Fraction(8, 10), Fraction(9, 10)):
        other = CounterMechanism.for_epsilon(epsilon, state=epsilon * share, levels=4)
        assert best <= variance(other)


def test_numbers_without_a_meaning_are_refused() -> None:
    law, noise = TwoPoint(3 * GRID // 4), GeometricNoise(GRID // 2)
    for levels in (1, LEVELS_MAX + 1):
        with pytest.raises(ValueError, match="counted up to"):
            CounterMechanism(levels, law, noise)
    for n_releases in (0, N_RELEASES_MAX + 1):
        with pytest.raises(ValueError, match="releases"):
            CounterMechanism(2, law, noise, n_releases)
    with pytest.raises(ValueError, match="share"):
        CounterMechanism.for_epsilon(Fraction(1), state=Fraction(1), levels=2)
    with pytest.raises(ValueError, match="epsilon must be from"):
        CounterMechanism.for_epsilon(EPSILON_MIN / 2, state=EPSILON_MIN / 4, levels=2)
    with pytest.raises(ValueError, match="lose more"):
        CounterMechanism(2, law, noise).within(Fraction(1))
    with pytest.raises(ValueError, match="at least one cell"):
        best_counter_mechanism(Fraction(1), 0, 2)
