"""Campaigns: what they refuse to be, their text in both directions."""

import datetime as dt
import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cube.axis import BooleanAxis, CategoryAxis, DateAxis, IntegerAxis, NumericAxis
from cube.exponential import epsilon_units_of, exp_below
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest
from local_dp.campaign import (
    Attribute,
    Campaign,
    Combination,
    campaign_digest,
    campaign_text,
    designed_views,
    planned_campaign,
    read_campaign,
)
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from tests.support.collections_of_answers import SURVEY, survey_campaign

HALF = Fraction(1, 2)


def test_a_campaign_is_the_same_after_its_text() -> None:
    for campaign in (
        survey_campaign(UNITS_PER_EPSILON),
        survey_campaign(UNITS_PER_EPSILON, n_answered=3),
        all_channels(),
    ):
        text = campaign_text(campaign)
        assert read_campaign(text) == campaign
        assert len(campaign_digest(text)) == 64
    assert campaign_digest(campaign_text(all_channels())) != campaign_digest(
        campaign_text(replace(all_channels(), name="other"))
    )


def all_channels() -> Campaign:
    attributes = tuple(Attribute(name, ("x", "y", "é", None)) for name in "abc")
    return Campaign(
        "all",
        attributes,
        (
            Combination(("a",), RandomisedResponse((1, 2, 3, 4), HALF)),
            Combination(("b",), UnaryEncoding(4, Fraction(1, 4))),
            Combination(("c",), LocalHashing(4, 3, HALF)),
        ),
        ((0, 1, 2),),
        3 * UNITS_PER_EPSILON,
    )


def test_levels_of_every_kind_of_axis_are_said_in_json() -> None:
    day = dt.date(2026, 1, 1)
    axes = [
        CategoryAxis(name="c", values=("x", "y"), null=True),
        IntegerAxis(name="i", low=1, high=2, other=9),
        BooleanAxis(name="b"),
        NumericAxis(name="n", edges=(0.0, 0.5, 1.0)),
        DateAxis(name="d", low=day, high=dt.date(2026, 1, 2)),
    ]
    assert [Attribute.of_axis(axis).levels for axis in axes] == [
        ("x", "y", None),
        (1, 2, 9),
        (False, True),
        ("0.0", "0.5"),
        ("2026-01-01", "2026-01-02"),
    ]


@pytest.mark.parametrize("n_answered", [1, 2, 3])
def test_a_respondent_loses_no_more_than_epsilon_whatever_they_answer(n_answered: int) -> None:
    campaign = survey_campaign(UNITS_PER_EPSILON, n_answered=n_answered)
    lost = max(one.channel.ratio for one in campaign.combinations) ** n_answered
    assert campaign.epsilon == 1
    assert lost <= exp_below(UNITS_PER_EPSILON)
    assert float(lost) > 2.71  # and little is given away


def test_the_thesis_s_view_loses_what_the_specification_says() -> None:
    """{AR, EO, ST} with p = .5 loses 5.50, with p = .221 2.75; the thesis says .693 and .25."""
    for keep, expected in (("1/2", 5.50), ("221/1000", 2.75)):
        lost = Fraction(1)
        for n_cells in (6, 4, 6):
            lost *= RandomisedResponse.uniform(n_cells, Fraction(keep)).ratio
        assert epsilon_units_of(lost) / UNITS_PER_EPSILON == pytest.approx(expected, abs=0.005)


def test_respondents_are_shared_out_over_combinations() -> None:
    campaign = survey_campaign(UNITS_PER_EPSILON, n_answered=2)
    shares = [campaign.expected_share(place) for place in range(len(campaign.combinations))]
    assert sum(shares) == 2
    assert set(shares) == {Fraction(2, 15)}
    assert campaign.covering(("A",)) == tuple(
        place for place, one in enumerate(campaign.combinations) if "A" in one.scope
    )


def test_one_table_for_each_respondent_is_a_campaign_of_views_of_one() -> None:
    scopes = (("A", "E", "R"), ("A", "E", "O"), ("E", "O", "R"))
    campaign = planned_campaign(
        "pairs", SURVEY, [(scope,) for scope in scopes], epsilon_units=UNITS_PER_EPSILON
    )
    assert [campaign.expected_share(place) for place in range(3)] == [Fraction(1, 3)] * 3


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"name": ""}, "name"),
        ({"attributes": ()}, "attributes"),
        ({"attributes": (Attribute("a", ("x", "y")),) * 3}, "same name"),
        ({"views": ((0, 1),)}, "every combination"),
        ({"views": ((0, 1, 2, 3),)}, "every combination"),
        ({"views": ((0, 1, 2), ())}, "view has 0"),
        ({"n_answered": 0}, "view has 3"),
        ({"n_answered": 4}, "view has 3"),
        ({"n_answered": 3}, "lose more"),
        ({"epsilon_units": UNITS_PER_EPSILON}, "lose more"),
        ({"epsilon_units": 0}, "epsilon"),
        ({"epsilon_units": 1.0}, "epsilon"),
        ({"combinations": ()}, "combinations"),
    ],
)
def test_what_does_not_hold_is_no_campaign(change: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        replace(all_channels(), **change)


def test_combinations_of_a_view_share_no_attribute() -> None:
    one = Combination(("a",), UnaryEncoding(4, Fraction(1, 4)))
    with pytest.raises(ValueError, match="share an attribute"):
        replace(
            all_channels(),
            combinations=(one, *all_channels().combinations[1:]),
            views=((0, 1, 2), (0, 0)),
        )
    with pytest.raises(ValueError, match="wrong number of cells"):
        Campaign("x", SURVEY, (Combination(("A",), one.channel),), ((0,),), 2 * UNITS_PER_EPSILON)


@pytest.mark.parametrize("levels", [("x",), ("x", "x"), (1.5, 2), (2**53, 1), (("x",), "y")])
def test_levels_are_told_apart_and_said_in_json(levels: tuple[Any, ...]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Attribute("a", levels)
    assert Attribute("a", (1, True, "1")).levels == (1, True, "1")


def changed(value: Any, path: tuple[Any, ...], new: object) -> Any:
    """A copy of a JSON value with another value at one place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


CHANNEL = ("combinations", 0, "channel")


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("format",), 2),
        (("name",), 3),
        (("attributes",), {}),
        (("attributes", 0), []),
        (("attributes", 0, "levels"), "xyz"),
        (("combinations", 0, "attributes"), ["z"]),
        (CHANNEL, None),
        ((*CHANNEL, "kind"), "truth"),
        ((*CHANNEL, "keep"), 0.5),
        ((*CHANNEL, "keep"), "1/0"),
        ((*CHANNEL, "keep"), "2/4"),
        ((*CHANNEL, "keep"), "3/2"),
        ((*CHANNEL, "weights"), [1, 2, 3]),
        ((*CHANNEL, "weights"), [0, 2, 3, 4]),
        ((*CHANNEL, "weights"), [1, True, 3, 4]),
        (("views", 0, 0), "0"),
        (("epsilon",), 1.5),
        (("epsilon",), 2**80),
    ],
)
def test_a_text_that_is_no_campaign_is_refused(path: tuple[Any, ...], new: object) -> None:
    value = json.loads(campaign_text(all_channels()))
    text = json.dumps(changed(value, path, new), sort_keys=True, separators=(",", ":"))
    with pytest.raises(InvalidRequest):
        read_campaign(text)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, "null", "NaN"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_campaign(text)


def test_a_campaign_has_one_text() -> None:
    text = campaign_text(all_channels())
    with pytest.raises(InvalidRequest, match="canonical form"):
        read_campaign(text.replace(",", ", "))


def test_designs_of_many_attributes_make_campaigns() -> None:
    attributes = [Attribute(f"a{number:02}", (0, 1, 2)) for number in range(8)]
    views = designed_views([one.name for one in attributes], 3)
    campaign = planned_campaign("wide", attributes, views, epsilon_units=UNITS_PER_EPSILON)
    assert all(isinstance(one.channel, UnaryEncoding) for one in campaign.combinations)
    with pytest.raises(ValueError, match="no attribute b"):
        planned_campaign("x", attributes, [(("b",),)], epsilon_units=UNITS_PER_EPSILON)
