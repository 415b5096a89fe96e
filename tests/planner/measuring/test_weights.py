"""Weights: the closed form, and the search."""

import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget
from planner.measuring.weights import (
    SEARCH_SHARE,
    Power,
    precision_for,
    smallest_units,
    weight_for,
)

TARGET = AccuracyTarget(half_width=10.0, confidence=0.95)


def test_the_closed_form_is_that_of_one_laplace_variable() -> None:
    weight = weight_for(TARGET, Fraction(3))
    assert float(weight.exact) == pytest.approx(3 * math.log(20) / 10, rel=1e-5)
    assert float(weight.exact) * 10 / 3 >= math.log(20)


def test_the_closed_form_is_that_of_one_gaussian_variable() -> None:
    deviation = math.sqrt(1 / (2 * float(precision_for(TARGET, Fraction(3)).exact)))
    assert 2 * NormalDist(0, 3 * deviation).cdf(-10) == pytest.approx(0.05, rel=1e-4)
    assert 2 * NormalDist(0, 3 * deviation).cdf(-10) <= 0.05


@given(
    scale=st.floats(0.01, 1e4),
    floor=st.floats(0.0, 9.0),
    start=st.floats(1e-6, 100),
    low=st.floats(0.0, 0.9),
)
def test_the_search_ends_just_above_the_smallest_weight(
    scale: float, floor: float, start: float, low: float
) -> None:
    """On widths that fall like a fresh measurement's beside a history's."""

    def width(units: int) -> float:
        return float(floor + scale * UNITS_PER_EPSILON / units)

    exact = scale / (10.0 - floor)
    if exact > 2**11:
        return
    units = smallest_units(
        width,
        TARGET,
        int(low * exact * UNITS_PER_EPSILON),
        max(int(start * UNITS_PER_EPSILON), int(low * exact * UNITS_PER_EPSILON) + 1),
    )
    found = units / UNITS_PER_EPSILON
    assert width(units) <= TARGET.half_width
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 2 * SEARCH_SHARE) + 3 / UNITS_PER_EPSILON


@given(
    known=st.floats(10.1, 1e4),
    alone=st.floats(1.0, 300.0),
    held=st.floats(0.0, 1.0),
    power=st.sampled_from(Power),
)
def test_a_width_like_a_standard_deviation_takes_few_steps(
    known: float, alone: float, held: float, power: Power
) -> None:
    """Beside another measurement of the same, information adds up: nothing is left to search."""
    n_looks = 0

    def width(units: int) -> float:
        nonlocal n_looks
        n_looks += 1
        return math.sqrt(1 / (known**-2 + math.pow(units / UNITS_PER_EPSILON / alone, power)))

    exact = alone * math.pow(10.0**-2 - known**-2, 1 / power)
    low = int(held * exact * UNITS_PER_EPSILON)
    at_low = width(max(low, 1))
    n_looks = 0
    start = max(int(alone * math.pow(10.0, -2 / power) * UNITS_PER_EPSILON), low + 1)
    found = smallest_units(width, TARGET, low, start, at_low, power) / UNITS_PER_EPSILON
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 2 * SEARCH_SHARE) + 3 / UNITS_PER_EPSILON
    assert n_looks <= 6


def test_where_another_row_has_most_of_the_noise_few_steps_find_the_weight() -> None:
    """A variance of which a part does not fall: the quotient of linear functions is followed."""
    looked_at = []

    def width(units: int) -> float:
        looked_at.append(units)
        return math.sqrt(60.0 + 90.0 / (units / UNITS_PER_EPSILON) ** 2)

    found = smallest_units(width, TARGET, UNITS_PER_EPSILON, 2 * UNITS_PER_EPSILON, math.sqrt(150))
    assert found / UNITS_PER_EPSILON == pytest.approx(1.5, rel=2 * SEARCH_SHARE)
    assert len(looked_at) <= 5


def test_a_target_that_no_weight_meets_is_refused() -> None:
    with pytest.raises(InvalidTarget, match="almost no noise"):
        smallest_units(lambda _: 11.0, TARGET, 0, UNITS_PER_EPSILON)
    with pytest.raises(InvalidTarget, match="almost no noise"):
        smallest_units(lambda _: 11.0, TARGET, WEIGHT_UNITS_MAX, WEIGHT_UNITS_MAX + 1)
    with pytest.raises(InvalidTarget, match="almost no noise"):
        weight_for(AccuracyTarget(half_width=1e-9, confidence=0.5), Fraction(1))
    with pytest.raises(InvalidTarget, match="almost no noise"):
        precision_for(AccuracyTarget(half_width=1e-3, confidence=0.5), Fraction(1))


def test_a_search_stays_below_the_largest_weight() -> None:
    looked_at = []

    def width(units: int) -> float:
        looked_at.append(units)
        return 5.0 if units == WEIGHT_UNITS_MAX else 11.0

    found = smallest_units(width, TARGET, WEIGHT_UNITS_MAX - 2, 2 * WEIGHT_UNITS_MAX, 11.0)
    assert found == max(looked_at) == WEIGHT_UNITS_MAX
