"""Designs: which epsilons and sizes make a campaign, and in which words others are refused."""

import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, InvalidTarget
from local_dp.campaign import EPSILON_UNITS_MAX
from local_dp.channels.choice import N_BITS_MAX, best_channel
from local_dp.planning import EPSILON_UNITS_MIN as PLANNED_UNITS_MIN
from proxy.collections.plan import ANSWER_UNITS_MIN, designed_campaign, epsilon_units
from tests.support.campaigns import EDUCATION, REGION, SMOKES

ATTRIBUTES = (EDUCATION, SMOKES, REGION)


def test_the_ends_of_the_range_are_in_it() -> None:
    assert epsilon_units("0.0001") == epsilon_units("1e-4") == ANSWER_UNITS_MIN
    assert epsilon_units("16") == EPSILON_UNITS_MAX
    assert PLANNED_UNITS_MIN > ANSWER_UNITS_MIN  # so that what a plan finds can be asked for


@pytest.mark.parametrize("text", ["0", "1e-12", "1e-9", "0.000099", "16.0001"])
def test_an_epsilon_out_of_range_is_refused_in_decimals(text: str) -> None:
    with pytest.raises(InvalidTarget) as refused:
        epsilon_units(text)
    assert refused.value.message == (
        f"A respondent's epsilon is at least 0.0001 and at most 16, not {text}."
    )


@pytest.mark.parametrize("n_cells", [2, 3, 256, N_BITS_MAX, N_BITS_MAX + 1, 2**16])
def test_at_the_least_epsilon_every_channel_answers_with_nearly_all_of_it(n_cells: int) -> None:
    """A variance falls with the square of epsilon: from .0001 to .01, by 10,000, and rounding."""
    least, more = (
        best_channel(n_cells, ANSWER_UNITS_MIN),
        best_channel(n_cells, 100 * ANSWER_UNITS_MIN),
    )
    assert least.typical_variance / more.typical_variance == pytest.approx(10_000, rel=0.02)


@pytest.mark.parametrize("size", [0, -1, -(2**31)])
def test_a_combination_of_no_attribute_is_refused(size: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"at least one attribute, not {size}\."):
        designed_campaign("plan", ATTRIBUTES, epsilon="1", size=size)


def test_each_answer_has_an_epsilon_that_can_be_answered_with() -> None:
    three = designed_campaign("plan", ATTRIBUTES, epsilon="0.0003", size=1, n_answered=3)
    assert three.epsilon_units == 3 * UNITS_PER_EPSILON // 10_000
    with pytest.raises(InvalidTarget, match=r"^An epsilon of 0\.0002 for 3 answers is less"):
        designed_campaign("plan", ATTRIBUTES, epsilon="0.0002", size=1, n_answered=3)
