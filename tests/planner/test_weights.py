"""Weights: the closed form, the search, and what a sum of money raises blocks to."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget
from planner.weights import PRECISION, affordable_units, smallest_weight, weight_for

TARGET = AccuracyTarget(half_width=10.0, confidence=0.95)


def test_the_closed_form_is_that_of_one_laplace_variable() -> None:
    weight = weight_for(TARGET, Fraction(3))
    assert float(weight.exact) == pytest.approx(3 * math.log(20) / 10, rel=1e-5)
    assert float(weight.exact) * 10 / 3 >= math.log(20)


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

    def width(weight: Weight) -> float:
        return floor + scale / float(weight.exact)

    exact = scale / (10.0 - floor)
    if exact > 2**11:
        return
    found = float(
        smallest_weight(
            width,
            TARGET,
            int(low * exact * UNITS_PER_EPSILON),
            max(int(start * UNITS_PER_EPSILON), int(low * exact * UNITS_PER_EPSILON) + 1),
        ).exact
    )
    assert width(Weight.at_least(found)) <= TARGET.half_width
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 2 * PRECISION) + 3 / UNITS_PER_EPSILON


def test_a_target_that_no_weight_meets_is_refused() -> None:
    with pytest.raises(InvalidTarget, match="practically no noise"):
        smallest_weight(lambda _: 11.0, TARGET, 0, UNITS_PER_EPSILON)
    with pytest.raises(InvalidTarget, match="practically no noise"):
        weight_for(AccuracyTarget(half_width=1e-9, confidence=0.5), Fraction(1))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(0, 200))
def test_blocks_are_raised_to_what_the_units_buy(held: list[int], units: int) -> None:
    common = affordable_units(held, units)
    assert sum(max(0, common - level) for level in held) <= units
    assert sum(max(0, common + 1 - level) for level in held) > units or common < min(held)
