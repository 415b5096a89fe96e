"""Respondents: exact draws, what they refuse, that they answer once."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.encoding import canonical_json
from cube.exponential import epsilon_units_of, exp_below
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest
from local_dp.answer_store import FileAnswers
from local_dp.campaign import (
    EPSILON_UNITS_MAX,
    Attribute,
    Campaign,
    Combination,
    _channel_json,
    campaign_text,
    read_campaign,
)
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.respondent import (
    Asked,
    CampaignRefused,
    Entropy,
    Kept,
    Level,
    NothingKept,
    Respondent,
    _exp_below,
    check_campaign,
    randomised,
)
from tests.support.answer_vectors import PATH, Tape, vectors
from tests.support.collections_of_answers import SURVEY_ROW, survey_campaign
from tests.support.hostile_campaigns import (
    ANYTHING,
    HOSTILE,
    NO_CAMPAIGNS,
    NO_JSON,
    hostile,
    searching,
)

HALF = Fraction(1, 2)


class Memory:
    """Answers in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Kept] = {}

    def once(self, campaign: str, make: Callable[[int], Kept], token: str = "") -> Kept:
        if campaign not in self.kept:
            made = make(sum(one.epsilon_units for one in self.kept.values()))
            self.kept[campaign] = replace(made, token=token)
        return self.kept[campaign]


class Forced:
    """Draws that are given; how far each could have gone is noted."""

    def __init__(self, draws: tuple[int, ...]) -> None:
        self.draws = list(draws)
        self.asked: list[int] = []

    def below(self, n: int) -> int:
        self.asked.append(n)
        return self.draws[len(self.asked) - 1] if len(self.asked) <= len(self.draws) else 0


def one_question(channel: AnyChannel) -> Campaign:
    levels = tuple(range(channel.n_cells))
    units = 6 * UNITS_PER_EPSILON
    question = (Combination(("q",), channel),)
    return Campaign("one", (Attribute("q", levels),), question, ((0,),), units)


def answered(text: str) -> list[tuple[int, int]]:
    return [(place, int(answer, 16)) for place, answer in json.loads(text)["answers"]]


def law(asked: Asked, level: Level, prefix: tuple[int, ...] = ()) -> dict[int, Fraction]:
    """The exact law of an answer, by every draw there can be."""
    forced = Forced(prefix)
    answer = answered(randomised(asked, {"q": level}, forced.below))[0][1]
    if len(forced.asked) == len(prefix):
        return {answer: Fraction(1)}
    n = forced.asked[len(prefix)]
    found: Counter[int] = Counter()
    for draw in range(n):
        for answer, probability in law(asked, level, (*prefix, draw)).items():
            found[answer] += probability / n  # type: ignore[assignment]
    return dict(found)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "channel",
    [
        RandomisedResponse.uniform(3, Fraction(2, 7)),
        RandomisedResponse((1, 4, 2), Fraction(1, 3)),
        LocalHashing(7, 3, Fraction(2, 5)),
        LocalHashing(4, 2, HALF),
    ],
    ids=repr,
)
def test_every_draw_together_is_exactly_the_channel(channel: AnyChannel) -> None:
    asked = check_campaign(campaign_text(one_question(channel)))
    matrix = channel.matrix()
    for level in range(channel.n_cells):
        found = law(asked, level)
        assert sum(found.values()) == 1
        assert [found.get(answer, 0) for answer in range(len(matrix[level]))] == list(matrix[level])


@pytest.mark.parametrize(
    "channel",
    [RandomisedResponse((1, 4, 2), Fraction(1, 3)), LocalHashing(4, 2, HALF)],
    ids=repr,
)
def test_a_level_that_is_not_listed_is_exactly_one_of_those_that_are(channel: AnyChannel) -> None:
    """The mean of their laws: ratios of probabilities are bounded as between two of them."""
    asked = check_campaign(campaign_text(one_question(channel)))
    rows = list(zip(*channel.matrix(), strict=True))
    for level in ("another", None, True):  # true is no 1
        found = law(asked, level)
        assert [found.get(place, 0) for place in range(len(rows))] == [
            sum(row) / channel.n_cells for row in rows
        ]


def test_every_bit_has_its_own_coin_with_exactly_its_threshold() -> None:
    channel = UnaryEncoding(3, Fraction(1, 8))
    asked = check_campaign(campaign_text(one_question(channel)))
    false, true = 2**29, 2**31
    for level in range(3):
        ends = [true if cell == level else false for cell in range(3)]
        for above in product((False, True), repeat=3):
            draws = tuple(end - 1 + high for end, high in zip(ends, above, strict=True))
            forced = Forced((0, 0, *draws))
            answer = answered(randomised(asked, {"q": level}, forced.below))[0][1]
            assert answer == sum((not high) << cell for cell, high in enumerate(above))
            assert forced.asked == [1, 1, 2**32, 2**32, 2**32]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 128, 200, 255, 256])
def test_numbers_from_one_byte_are_exactly_uniform(n: int) -> None:
    found: Counter[int] = Counter()
    for byte in range(256):
        tape = Tape(bytes([byte, 0]))
        number = Entropy(tape.read).below(n)
        if tape.n_read < 2:  # otherwise the byte was rejected
            found[number] += 1
    assert set(found) == set(range(n))
    assert len(set(found.values())) == 1


@given(st.integers(257, 2**70))
def test_numbers_from_more_bytes_are_in_range_and_reach_the_end(n: int) -> None:
    n_bytes = -(-(n - 1).bit_length() // 8)
    tape = Tape(b"\xff" * n_bytes + (n - 1).to_bytes(n_bytes, "big"))
    assert Entropy(tape.read).below(n) == n - 1
    assert 0 <= Entropy().below(n) < n


def test_the_vectors_are_what_is_answered() -> None:
    published = json.loads(PATH.read_text())
    assert published == json.loads(json.dumps(vectors()))
    for vector in published:
        tape = Tape(bytes.fromhex(vector["entropy"]))
        asked = check_campaign(vector["campaign"])
        assert randomised(asked, vector["row"], Entropy(tape.read).below) == vector["answer"]
        assert 2 * tape.n_read == len(vector["entropy"])


def test_each_view_and_each_choice_of_combinations_is_as_likely() -> None:
    campaign = survey_campaign(UNITS_PER_EPSILON, n_answered=2)
    asked = check_campaign(campaign_text(campaign))
    found: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for draws in product(range(5), range(3), range(2)):
        answer = json.loads(randomised(asked, SURVEY_ROW, Forced(draws).below))
        places = tuple(place for place, _ in answer["answers"])
        assert set(places) < set(campaign.views[answer["view"]])
        found[answer["view"], places] += 1
    assert len(found) == 15
    assert set(found.values()) == {2}


@given(st.integers(0, EPSILON_UNITS_MAX))
def test_both_sides_have_the_same_exponential(units: int) -> None:
    assert Fraction(_exp_below(units), 1 << 128) == exp_below(units)


def test_an_answer_is_given_once_and_again() -> None:
    store = Memory()
    respondent = Respondent(store, epsilon_units_max=UNITS_PER_EPSILON)
    text = campaign_text(survey_campaign(UNITS_PER_EPSILON))
    first = respondent.answer(text, SURVEY_ROW)
    again = [respondent.answer(text, {**SURVEY_ROW, "A": "young"}) for _ in range(20)]
    assert set(again) == {first}


def test_what_was_given_is_found_again_and_nothing_is_drawn_for_it(tmp_path: Path) -> None:
    text = campaign_text(survey_campaign(UNITS_PER_EPSILON))
    for store in (Memory(), FileAnswers(tmp_path / "answers.json")):
        respondent = Respondent(store, epsilon_units_max=UNITS_PER_EPSILON)
        with pytest.raises(NothingKept):
            respondent.kept(text)
        first = respondent.answer(text, SURVEY_ROW)  # of which nothing was spent before
        assert respondent.kept(text) == first == respondent.answer(text, SURVEY_ROW)
        with pytest.raises(NothingKept):
            respondent.kept(text.replace('"survey"', '"another"'))


def test_a_campaign_under_another_name_finds_the_limit_spent() -> None:
    respondent = Respondent(Memory(), epsilon_units_max=2 * UNITS_PER_EPSILON)
    campaign = survey_campaign(UNITS_PER_EPSILON)
    text = campaign_text(campaign)
    for name in ("first", "second"):
        respondent.answer(text.replace('"survey"', f'"{name}"'), SURVEY_ROW)
    with pytest.raises(CampaignRefused, match="epsilon"):
        respondent.answer(text, SURVEY_ROW)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_campaign_is_refused_before_anything_is_drawn(name: str) -> None:
    store = Memory()

    def nothing(_: int) -> bytes:
        raise AssertionError("something was drawn")

    respondent = Respondent(store, epsilon_units_max=EPSILON_UNITS_MAX, entropy=Entropy(nothing))
    with pytest.raises(CampaignRefused):
        respondent.answer(hostile(HOSTILE[name]), SURVEY_ROW)
    assert not store.kept


@pytest.mark.parametrize("text", NO_CAMPAIGNS)
def test_what_is_no_campaign_is_refused(text: str) -> None:
    with pytest.raises(CampaignRefused):
        check_campaign(text)


@pytest.mark.parametrize("own", [*ANYTHING, *NO_JSON], ids=lambda own: repr(own)[:20])
def test_whether_there_is_an_answer_says_nothing_of_the_row(own: Any) -> None:
    """A campaign that lists some levels would search for the others: exactly, for no epsilon."""
    for levels in (("no", "-"), ("yes", "-"), ("+", "-")):
        store = Memory()
        respondent = Respondent(store, epsilon_units_max=UNITS_PER_EPSILON)
        given = respondent.answer(searching(*levels), {"hiv": own})
        assert len(answered(given.answer)) == 1
        assert [one.epsilon_units for one in store.kept.values()] == [UNITS_PER_EPSILON // 100]
        is_listed = isinstance(own, str) and own in levels
        assert [remark.split(". ")[0] for remark in given.remarks] == (
            [] if is_listed else ["The campaign does not list the row's level of hiv"]
        )


def test_the_respondent_is_told_which_levels_are_not_asked_about_and_nothing_else() -> None:
    respondent = Respondent(Memory(), epsilon_units_max=UNITS_PER_EPSILON)
    text = campaign_text(survey_campaign(UNITS_PER_EPSILON))
    assert not respondent.answer(text, SURVEY_ROW).remarks
    (remark,) = respondent.answer(
        text, {**SURVEY_ROW, "T": "secret", "A": 3, "Z": "unasked"}
    ).remarks
    assert "level of A, T." in remark
    assert "secret" not in remark


def test_a_row_without_a_name_is_refused_whatever_it_says_and_spends_nothing() -> None:
    store = Memory()

    def nothing(_: int) -> bytes:
        raise AssertionError("something was drawn")

    entropy = Entropy(nothing)
    respondent = Respondent(store, epsilon_units_max=UNITS_PER_EPSILON, entropy=entropy)
    text = campaign_text(survey_campaign(UNITS_PER_EPSILON))
    without = {name: level for name, level in SURVEY_ROW.items() if name != "T"}
    for row in (without, {**without, "A": "ancient"}):
        with pytest.raises(ValueError, match="does not have T, which the campaign asks about"):
            respondent.answer(text, row)
    assert not store.kept


def test_a_limit_below_the_campaign_s_epsilon_refuses_it() -> None:
    respondent = Respondent(Memory(), epsilon_units_max=UNITS_PER_EPSILON - 1)
    with pytest.raises(CampaignRefused):
        respondent.answer(campaign_text(survey_campaign(UNITS_PER_EPSILON)), SURVEY_ROW)


def test_the_respondent_s_side_needs_the_standard_library_alone() -> None:
    code = (
        "import sys, local_dp.respondent, local_dp.answer_store\n"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " {'numpy', 'scipy', 'cube', 'inference'} or m.startswith('local_dp.c')])"
    )
    found = subprocess.run(  # noqa: S603 - its own interpreter
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert found.stdout.strip() == "[]"


@given(
    st.integers(1, 3),
    st.lists(st.sampled_from(["rr", "oue", "olh"]), min_size=3, max_size=3),
    st.lists(st.integers(1, 2 * UNITS_PER_EPSILON), min_size=3, max_size=3),
    st.integers(-3, 3),
)
@settings(max_examples=60, deadline=None)
def test_both_sides_draw_the_line_at_the_same_epsilon(
    n_answered: int, kinds: list[str], epsilons: list[int], off: int
) -> None:
    """What a campaign may declare, a respondent accepts, to a unit of 2**-40; and nothing else."""
    of: dict[str, Callable[[int], AnyChannel]] = {
        "rr": lambda units: RandomisedResponse.for_epsilon((2, 3, 1), units),
        "oue": lambda units: UnaryEncoding.for_epsilon(3, units),
        "olh": lambda units: LocalHashing.for_epsilon(3, units),
    }
    # Far enough from 0 that every channel has a probability to round to.
    channels = [of[k](max(e, 2**24)) for k, e in zip(kinds, epsilons, strict=True)]
    lost = prod(sorted((one.ratio for one in channels), reverse=True)[:n_answered])
    declared = epsilon_units_of(Fraction(lost)) + off
    text = canonical_json(
        {
            "format": 1,
            "name": "line",
            "attributes": [{"name": name, "levels": [0, 1, 2]} for name in "abc"],
            "combinations": [
                {"attributes": [name], "channel": _channel_json(channel)}
                for name, channel in zip("abc", channels, strict=True)
            ],
            "views": [[0, 1, 2]],
            "answers": n_answered,
            "epsilon": declared,
        }
    )
    if off >= 0:
        assert read_campaign(text).epsilon_units == check_campaign(text).epsilon_units == declared
    else:
        with pytest.raises(InvalidRequest):
            read_campaign(text)
        with pytest.raises(CampaignRefused):
            check_campaign(text)
