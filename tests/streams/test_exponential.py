"""Bounds of the exponential, against a library of high precision, and what is decided by them."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.exponential import EPSILON_MAX, decided, epsilon_units_of, exp_bounds

UNIT = Fraction(1, 2**40)
EXPONENTS = st.integers(1, EPSILON_MAX * 2**40).map(lambda units: units * UNIT)


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
    with pytest.raises(ValueError, match="not negative"):
        exp_bounds(Fraction(-1, 2), 64)


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
