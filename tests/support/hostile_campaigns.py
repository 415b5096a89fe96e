"""Campaigns of the hostile: refused, in whatever language, or answered and told nothing."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import Attribute, Campaign, Combination, campaign_text
from local_dp.channels.randomised_response import RandomisedResponse
from tests.support.collections_of_answers import survey_campaign

NO_CAMPAIGNS = ["", "[]", "7", "null", "[" * 100_000, '{"format":1}', "NaN", "\ufeff{}", "{} {}"]


def hostile(change: Callable[[dict[str, Any]], None]) -> str:
    value = json.loads(campaign_text(survey_campaign(UNITS_PER_EPSILON)))
    change(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def first_channel(value: dict[str, Any]) -> dict[str, Any]:
    """The first that is randomised response."""
    channels: list[dict[str, Any]] = [one["channel"] for one in value["combinations"]]
    return next(one for one in channels if one["kind"] == "randomised_response")


def searching(*levels: str) -> str:
    """A campaign that would know who has one of these levels, if others sent nothing."""
    attribute = Attribute("hiv", levels)
    units = UNITS_PER_EPSILON // 100
    channel = RandomisedResponse.for_epsilon((1,) * len(levels), units)
    asked = Campaign("search", (attribute,), (Combination(("hiv",), channel),), ((0,),), units)
    return campaign_text(asked)


# What a row may say, of every type; JSON has the former.
ANYTHING: list[Any] = [
    "no",
    "yes",
    "",
    "x" * 100_000,
    None,
    True,
    False,
    0,
    1,
    2**70,
    0.5,
    [],
    ["no"],
    {},
]
NO_JSON: list[Any] = [float("nan"), float("inf"), b"no", object(), Fraction(1)]

HOSTILE: dict[str, Callable[[dict[str, Any]], None]] = {
    "a zero in a fake table": lambda v: first_channel(v)["weights"].__setitem__(0, 0),
    "a negative fake": lambda v: first_channel(v)["weights"].__setitem__(0, -1),
    "a rare fake": lambda v: first_channel(v)["weights"].__setitem__(0, 1000),
    "a fake too few": lambda v: first_channel(v)["weights"].pop(),
    "half a weight": lambda v: first_channel(v)["weights"].__setitem__(0, 0.5),
    "always the truth": lambda v: first_channel(v).update(keep="1/1"),
    "more than the truth": lambda v: first_channel(v).update(keep="3/2"),
    "mostly the truth": lambda v: first_channel(v).update(keep="99/100"),
    "a float": lambda v: first_channel(v).update(keep=0.2),
    "by nothing": lambda v: first_channel(v).update(keep="1/0"),
    "no noise": lambda v: v["combinations"][0].update(
        channel={"kind": "unary_encoding", "noise": "0/1"}
    ),
    "little noise": lambda v: v["combinations"][0].update(
        channel={"kind": "unary_encoding", "noise": "1/1024"}
    ),
    "noise that no coin of 32 bits has": lambda v: v["combinations"][0].update(
        channel={"kind": "unary_encoding", "noise": "2/5"}
    ),
    "more noise than a coin's": lambda v: v["combinations"][0].update(
        channel={"kind": "unary_encoding", "noise": "5/8"}
    ),
    "one bucket": lambda v: v["combinations"][0].update(
        channel={"kind": "local_hashing", "keep": "1/4", "buckets": 1}
    ),
    "buckets that tell": lambda v: v["combinations"][0].update(
        channel={"kind": "local_hashing", "keep": "1/2", "buckets": 5}
    ),
    "an unknown channel": lambda v: first_channel(v).update(kind="truth"),
    "overlapping combinations": lambda v: v["views"].__setitem__(0, [0, 0, 1]),
    "three answers of one epsilon": lambda v: v.update(answers=3),
    "no answers": lambda v: v.update(answers=0),
    "more answers than combinations": lambda v: v.update(answers=4),
    "a smaller epsilon than it loses": lambda v: v.update(epsilon=UNITS_PER_EPSILON // 2),
    "an epsilon beyond reason": lambda v: v.update(epsilon=17 * UNITS_PER_EPSILON),
    "a negative epsilon": lambda v: v.update(epsilon=-1),
    "a combination from behind": lambda v: v["views"].__setitem__(0, [-1]),
    "a name twice in a combination": lambda v: v["combinations"][0].update(attributes=["A", "A"]),
    "no views": lambda v: v.update(views=[]),
    "another format": lambda v: v.update(format=2),
    "a name twice": lambda v: v["attributes"].append(v["attributes"][0]),
    "a level twice": lambda v: v["attributes"][0]["levels"].append("old"),
    "true for a format": lambda v: v.update(format=True),
    "levels that are a text": lambda v: v["attributes"][0].update(levels="abc"),
    "levels that are lists": lambda v: v["attributes"][0].update(levels=[[1], [2], [3]]),
    "a name that is a number": lambda v: v["attributes"][0].update(name=1),
    "half a level": lambda v: v["attributes"][0]["levels"].__setitem__(0, 0.5),
    "a level beyond 2**53": lambda v: v["attributes"][0]["levels"].__setitem__(0, 2**53),
    "a view that is a text": lambda v: v["views"].__setitem__(0, "012"),
    "nothing": dict.clear,
}
