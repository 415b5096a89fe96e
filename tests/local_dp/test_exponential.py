"""The exponential from below and the logarithm from above, against mpmath."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_dp.exponential import EPSILON_UNITS_MAX, UNITS_PER_EPSILON, exp_below, units_at_least

mpmath.mp.prec = 400


def exact(units: int) -> Fraction:
    value = mpmath.exp(mpmath.mpf(units) / UNITS_PER_EPSILON)
    sign, mantissa, exponent, _ = value._mpf_
    assert not sign
    return Fraction(int(mantissa)) * Fraction(Fraction(2) ** int(exponent))


@given(st.integers(0, EPSILON_UNITS_MAX))
def test_the_exponential_is_below_by_less_than_a_tiny_part(units: int) -> None:
    truth = exact(units)
    assert exp_below(units) <= truth
    assert (truth - exp_below(units)) / truth < Fraction(1, 2**80)


@given(st.fractions(1, 8_000_000, max_denominator=10**12))
def test_the_logarithm_is_above_by_less_than_a_unit(ratio: Fraction) -> None:
    units = units_at_least(ratio)
    assert exact(units) >= ratio
    assert units == 0 or exact(units - 1) < ratio


@given(st.integers(0, EPSILON_UNITS_MAX))
def test_there_and_back_is_the_same_epsilon(units: int) -> None:
    assert units_at_least(max(Fraction(1), exp_below(units))) <= units


@pytest.mark.parametrize("units", [-1, EPSILON_UNITS_MAX + 1, 1.0])
def test_an_epsilon_is_a_whole_number_of_units_in_range(units: int) -> None:
    with pytest.raises(ValueError, match="units"):
        exp_below(units)


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(10**7)])
def test_a_ratio_that_is_none_or_hides_nothing_is_refused(ratio: Fraction) -> None:
    with pytest.raises(ValueError, match=r"ratio|probabilities"):
        units_at_least(ratio)
