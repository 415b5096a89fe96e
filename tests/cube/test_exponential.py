"""Bounds of the exponential, against a library of high precision, and what is decided by them."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.exponential import EPSILON_MAX, decided, epsilon_units_of, exp_below, exp_bounds
from cube.measurement import UNITS_PER_EPSILON

UNITS = st.integers(0, EPSILON_MAX * UNITS_PER_EPSILON)
EXPONENTS = UNITS.filter(bool).map(lambda units: Fraction(units, UNITS_PER_EPSILON))


def exactly(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@given(EXPONENTS, st.sampled_from([64, 192, 400]))
def test_a_power_lies_between_its_bounds_and_they_are_close(x: Fraction, bits: int) -> None:
    with mpmath.workprec(2 * bits + 200):
        low, high = exp_bounds(x, bits)
        power = mpmath.exp(exactly(x))
        assert exactly(low) <= power <= exactly(high)
        assert high - low <= high * Fraction(bits * 2**8, 2**bits)


def test_the_power_of_nothing_is_one() -> None:
    assert exp_bounds(Fraction(0), 64) == (Fraction(1), Fraction(1))
    with pytest.raises(ValueError, match="must be negative"):
        exp_bounds(Fraction(-1, 2), 64)


@given(UNITS)
def test_a_limit_is_below_by_less_than_a_tiny_part(units: int) -> None:
    with mpmath.workprec(600):
        power = mpmath.exp(exactly(Fraction(units, UNITS_PER_EPSILON)))
        assert (
            exactly(exp_below(units))
            <= power
            < exactly(exp_below(units) * (1 + Fraction(2) ** -80))
        )


@given(UNITS, st.integers(0, 2**20))
def test_a_limit_does_not_decrease(units: int, more: int) -> None:
    assert exp_below(max(0, units - more)) <= exp_below(units)


@pytest.mark.parametrize("units", [-1, EPSILON_MAX * UNITS_PER_EPSILON + 1, 1.0])
def test_an_epsilon_is_a_whole_number_of_units_in_range(units: int) -> None:
    with pytest.raises(ValueError, match="units"):
        exp_below(units)


@given(EXPONENTS)
def test_what_is_decided_is_what_high_precision_says(x: Fraction) -> None:
    with mpmath.workprec(600):
        assert decided(x, lambda power: int(power * 2**200)) == int(
            mpmath.floor(mpmath.exp(exactly(x)) * mpmath.mpf(2) ** 200)
        )


@given(st.fractions(min_value=1, max_value=10**13))
def test_a_loss_is_rounded_up_to_the_next_unit(ratio: Fraction) -> None:
    units = epsilon_units_of(ratio)
    with mpmath.workprec(600):
        exact = mpmath.log(exactly(ratio)) * mpmath.mpf(2) ** 40
        assert units - 1 < exact <= units or units == exact == 0


@given(UNITS)
def test_there_and_back_is_the_same_epsilon(units: int) -> None:
    assert epsilon_units_of(exp_below(units)) <= units


def test_a_part_is_no_loss() -> None:
    with pytest.raises(ValueError, match="ratio of the larger probability"):
        epsilon_units_of(Fraction(1, 2))
