"""The law of a bit: what it loses, how large it is, and what cannot be asked for."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.exponential import decided
from streams.randomness import GRID, TwoPoint

EPSILONS = st.integers(2**20, 32 * 2**40).map(lambda units: Fraction(units, 2**40))


@given(EPSILONS)
def test_the_odds_are_the_largest_on_the_grid_within_epsilon(epsilon: Fraction) -> None:
    law = TwoPoint.for_epsilon(epsilon)
    assert decided(epsilon, lambda power: law.odds <= power)
    above = Fraction(law.threshold + 1, GRID - law.threshold - 1)
    assert decided(epsilon, lambda power: above > power)
    assert law.epsilon_units <= epsilon * 2**40
    assert law.p0 + law.p1 == 1


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 2.0, 8.0])
def test_a_bit_is_told_apart_by_the_hyperbolic_tangent(epsilon: float) -> None:
    law = TwoPoint.for_epsilon(Fraction(epsilon))
    with mpmath.workdps(30):
        ideal = mpmath.tanh(mpmath.mpf(epsilon) / 2)
        assert abs(mpmath.mpf(law.threshold) * 2 / GRID - 1 - ideal) < 2**-62
    assert math.isclose(float(law.separation), math.tanh(epsilon / 2), rel_tol=1e-12)


def test_both_ratios_of_a_state_are_within_the_loss() -> None:
    """The published condition for a 0 was written with the wrong ratio: any centre seemed right."""
    law = TwoPoint.for_epsilon(Fraction(1, 2))
    assert law.p1 / law.p0 == (1 - law.p0) / (1 - law.p1) == law.odds
    # The published family, at the centre c. Below 1/2 a 0 hides more than it may; above, less.
    for centre, lost in ((0.2, 0.123), (0.5, 0.5), (0.6, 0.77), (0.8, 4.58)):
        x = centre * math.tanh(0.25)
        assert math.isclose(math.log((centre + x) / (centre - x)), 0.5)
        zero = math.log((1 - centre + x) / (1 - centre - x))
        assert math.isclose(zero, lost, abs_tol=0.005)


@pytest.mark.parametrize("threshold", [0, GRID // 2, GRID, -1])
def test_laws_that_tell_nothing_or_everything_are_refused(threshold: int) -> None:
    with pytest.raises(ValueError, match="above 1/2"):
        TwoPoint(threshold)


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(33), Fraction(-1)])
def test_epsilons_without_a_meaning_are_refused(epsilon: Fraction) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        TwoPoint.for_epsilon(epsilon)


def test_only_whole_numbers_are_thresholds() -> None:
    with pytest.raises(TypeError):
        TwoPoint(0.75)  # type: ignore[arg-type]
