"""What a respondent's device does for a hostile campaign is bounded: limits, and work once each.

The limits are those of a server, so that whatever it may serve is answered. Both clients refuse
what is beyond them in the same words. Work is counted, not timed.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from cube import axis
from cube.encoding import canonical_json
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest
from local_dp import campaign, draws, respondent
from local_dp.campaign import read_campaign
from local_dp.channels import local_hashing, randomised_response, unary_encoding
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.respondent import CampaignRefused, Entropy, check_campaign, randomised
from tests.support.node import JavaScript, javascript

Value = dict[str, Any]
HASHES = {"kind": "local_hashing", "keep": "1/9", "buckets": 2}
BITS = {"kind": "unary_encoding", "noise": "1/4"}


@pytest.fixture(scope="module")
def js() -> Iterator[JavaScript]:
    with javascript() as process:
        yield process


def asking(  # noqa: PLR0913 - what may be large, each by itself
    n_levels: int = 2,
    channel: Value = HASHES,
    *,
    n_attributes: int = 1,
    n_combinations: int = 1,
    n_views: int = 1,
    n_answered: int = 1,
) -> str:
    """A campaign about attributes one by one; its views have every attribute once."""
    names = [f"q{number:04}" for number in range(n_attributes)]
    n_views = max(n_views, -(-n_combinations // n_attributes))
    places = range(n_combinations)
    views = [
        [(number * n_attributes + place) % n_combinations for place in places[:n_attributes]]
        for number in range(n_views)
    ]
    value = {
        "format": 1,
        "name": "large",
        "attributes": [{"name": one, "levels": list(range(n_levels))} for one in names],
        "combinations": [
            {"attributes": [names[place % n_attributes]], "channel": channel} for place in places
        ],
        "views": views,
        "answers": n_answered,
        "epsilon": 16 * UNITS_PER_EPSILON,
    }
    return canonical_json(value)


def response(n_cells: int, largest: int = 1) -> Value:
    weights = [1] * (n_cells - 1) + [largest]
    return {"kind": "randomised_response", "keep": "1/1000000", "weights": weights}


TOO_MANY_CELLS = "a combination has too few or too many cells"
EDGES: dict[str, tuple[Callable[[int], str], int, str]] = {
    "attributes": (
        lambda n: asking(n_attributes=n, n_combinations=n),
        1000,
        "it has too many attributes",
    ),
    "combinations": (
        lambda n: asking(n_attributes=1000, n_combinations=n, n_views=11),
        10_000,
        "it has too many combinations",
    ),
    "views": (lambda n: asking(n_views=n), 10_000, "it has no views, or too many"),
    "cells by response": (lambda n: asking(n, response(n)), 2**16, TOO_MANY_CELLS),
    "cells by hashing": (lambda n: asking(n, HASHES), 2**16, TOO_MANY_CELLS),
    "cells by bits": (lambda n: asking(n, BITS), 2**12, TOO_MANY_CELLS),
    "weights": (
        lambda n: asking(3, response(3, n - 2)),
        2**20,
        "the weights of its fake answers are too large",
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_what_a_server_admits_is_answered_and_one_more_refused_by_both(
    name: str, js: JavaScript
) -> None:
    make, most, reason = EDGES[name]
    text = make(most)
    assert read_campaign(text).n_answered == 1
    row = dict.fromkeys((f"q{number:04}" for number in range(1000)), 1)
    answer = randomised(check_campaign(text), row, Entropy(lambda n: b"\x00" * n).below)
    found = js.of("answer", campaign=text, row=row, entropy="00" * 20_000)
    assert found["answer"] == answer

    beyond = make(most + 1)
    with pytest.raises(InvalidRequest):
        read_campaign(beyond)
    with pytest.raises(CampaignRefused, match=reason):
        check_campaign(beyond)
    found = js.of("answer", campaign=beyond, row=row, entropy="")
    assert found == {"refused": f"the campaign cannot be answered: {reason}"}


def test_the_longest_text_is_checked_and_a_longer_one_refused_by_both(js: JavaScript) -> None:
    weighted = {"kind": "randomised_response", "keep": "1/9", "weights": [1024] * 1024}
    one = asking(1024, weighted)
    each = len(asking(1024, weighted, n_combinations=2)) - len(one)
    n_combinations = (2**24 - len(one)) // (each + 3)  # places of four digits, in their views
    text = asking(1024, weighted, n_combinations=n_combinations)
    assert 2**24 - 3 * each < len(text) <= 2**24
    assert len(check_campaign(text).channels) == n_combinations
    row = {"q0000": 1}
    assert "answer" in js.of("answer", campaign=text, row=row, entropy="00" * 100)
    longer = text.ljust(2**24 + 1)
    with pytest.raises(CampaignRefused, match="too long"):
        check_campaign(longer)
    refused = js.of("answer", campaign=longer, row=row, entropy="")["refused"]
    assert "too long" in refused


def test_both_sides_have_the_same_limits() -> None:
    assert (
        respondent.N_ATTRIBUTES_MAX,
        respondent.N_COMBINATIONS_MAX,
        respondent.N_VIEWS_MAX,
        respondent.RATIO_BITS,
    ) == (
        campaign.N_ATTRIBUTES_MAX,
        campaign.N_COMBINATIONS_MAX,
        campaign.N_VIEWS_MAX,
        campaign.RATIO_BITS,
    )
    assert respondent.N_LEVELS_MAX == axis.N_LEVELS_MAX
    assert respondent.N_CELLS_MAX == local_hashing.N_CELLS_MAX == randomised_response.N_CELLS_MAX
    assert respondent.N_BITS_MAX == unary_encoding.N_CELLS_MAX
    assert respondent.WEIGHTS_MAX == randomised_response.WEIGHTS_MAX


def test_a_ratio_is_computed_once_for_each_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for each of 10,000 views: that was views times weights."""
    found: Counter[type] = Counter()
    for kind in (draws.Response, RandomisedResponse):
        exact = vars(kind)["ratio"].fget

        def counted(self: Any, exact: Callable[[Any], Fraction] = exact) -> Fraction:
            found[type(self)] += 1
            return exact(self)

        monkeypatch.setattr(kind, "ratio", property(counted))
    text = asking(1000, response(1000), n_combinations=3, n_views=10_000)
    check_campaign(text)
    read_campaign(text)
    assert found == {draws.Response: 3, RandomisedResponse: 3}


def test_a_level_is_looked_for_once_for_each_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not in each of 10,000 combinations."""
    looked_for = []
    position = respondent._position

    def noted(levels: list[respondent.Level], own: object) -> int | None:
        looked_for.append(own)
        return position(levels, own)

    monkeypatch.setattr(respondent, "_position", noted)
    asked = check_campaign(asking(4, HASHES, n_attributes=2, n_combinations=10_000))
    assert set(asked.cells({"q0000": 3, "q0001": 1}, Entropy().below)) == {3, 1}
    assert looked_for == [3, 1]


@pytest.mark.parametrize("n_answered", [1, 2, 1000])
def test_products_of_many_ratios_stay_short(n_answered: int, js: JavaScript) -> None:
    """A thousand ratios of 80 digits each, barely above 1: their exact product had 80,000."""
    keep = f"1/{10**39 + 7}"
    channel = {"kind": "local_hashing", "keep": keep, "buckets": 2}
    text = asking(2, channel, n_attributes=1000, n_combinations=1000, n_answered=n_answered)
    assert read_campaign(text).n_answered == check_campaign(text).n_answered == n_answered
    row = dict.fromkeys((f"q{number:04}" for number in range(1000)), 1)
    assert "answer" in js.of("answer", campaign=text, row=row, entropy="00" * 100_000)
    dearer = text.replace(keep, "1/2")  # each loses ln 3
    if n_answered == 1000:
        with pytest.raises(InvalidRequest, match="could lose more"):
            read_campaign(dearer)
        with pytest.raises(CampaignRefused, match="lose more than the declared"):
            check_campaign(dearer)
        refused = js.of("answer", campaign=dearer, row=row, entropy="")["refused"]
        assert "lose more than the declared" in refused


def test_bits_are_put_together_in_one_step() -> None:
    """The largest number of bits, whose draws are read in the order of the cells."""
    drawn = iter(range(2**12))
    unary = draws.Unary(Fraction(1, 4), 2**12)
    found = unary.draw(7, lambda _: 0 if next(drawn) % 3 == 1 else 2**32 - 1)
    assert found == sum(1 << place for place in range(1, 2**12, 3))
