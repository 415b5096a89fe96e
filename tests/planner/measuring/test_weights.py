"""Weights: the closed form, the search, and the weight to which a budget raises blocks."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget
from planner.measuring.weights import PRECISION, affordable_units, smallest_weight, weight_for

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


@given(
    known=st.floats(10.1, 1e4),
    alone=st.floats(1.0, 300.0),
    held=st.floats(0.0, 1.0),
)
def test_a_width_like_a_standard_deviation_takes_few_steps(
    known: float, alone: float, held: float
) -> None:
    """Beside another measurement of the same, precisions add up: nothing is left to search for."""
    n_looks = 0

    def width(weight: Weight) -> float:
        nonlocal n_looks
        n_looks += 1
        return float((known**-2 + (float(weight.exact) / alone) ** 2) ** -0.5)

    exact = alone * math.sqrt(10.0**-2 - known**-2)
    low = int(held * exact * UNITS_PER_EPSILON)
    at_low = width(Weight(max(low, 1)))
    n_looks = 0
    start = max(int(alone / 10.0 * UNITS_PER_EPSILON), low + 1)
    found = float(smallest_weight(width, TARGET, low, start, at_low).exact)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 2 * PRECISION) + 3 / UNITS_PER_EPSILON
    assert n_looks <= 6


def test_where_another_row_has_most_of_the_noise_few_steps_find_the_weight() -> None:
    """A variance of which a part does not fall: the quotient of linear functions is followed."""
    looked_at = []

    def width(weight: Weight) -> float:
        looked_at.append(weight)
        return math.sqrt(60.0 + 90.0 / float(weight.exact) ** 2)

    found = smallest_weight(width, TARGET, UNITS_PER_EPSILON, 2 * UNITS_PER_EPSILON, math.sqrt(150))
    assert float(found.exact) == pytest.approx(1.5, rel=2 * PRECISION)
    assert len(looked_at) <= 5


def test_a_target_that_no_weight_meets_is_refused() -> None:
    with pytest.raises(InvalidTarget, match="practically no noise"):
        smallest_weight(lambda _: 11.0, TARGET, 0, UNITS_PER_EPSILON)
    with pytest.raises(InvalidTarget, match="practically no noise"):
        weight_for(AccuracyTarget(half_width=1e-9, confidence=0.5), Fraction(1))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(0, 200))
def test_blocks_are_raised_as_far_as_the_units_allow(held: list[int], units: int) -> None:
    common = affordable_units(held, units)
    assert sum(max(0, common - level) for level in held) <= units
    assert sum(max(0, common + 1 - level) for level in held) > units or common < min(held)
