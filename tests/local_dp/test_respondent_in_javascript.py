"""The respondent's side for a web page answers and refuses as the one in Python does."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.encoding import canonical_json
from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import (
    Attribute,
    Campaign,
    Combination,
    campaign_digest,
    campaign_text,
    designed_views,
    planned_campaign,
)
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.respondent import (
    CampaignRefused,
    Entropy,
    Kept,
    Respondent,
    check_campaign,
    randomised,
)
from local_dp.submission import read_submission
from tests.support.answer_vectors import PATH, Tape
from tests.support.collections_of_answers import survey_campaign
from tests.support.hostile_campaigns import ANYTHING, HOSTILE, NO_CAMPAIGNS, hostile, searching
from tests.support.node import JavaScript, javascript

ROW = {"A": "old", "E": "high", "O": "emp", "R": "big", "S": "F", "T": "car"}
LEVELS = st.one_of(st.text(max_size=4), st.integers(1 - 2**53, 2**53 - 1), st.booleans(), st.none())


@pytest.fixture(scope="module")
def js() -> Iterator[JavaScript]:
    with javascript() as process:
        yield process


def of_python(text: str, row: object, entropy: bytes) -> dict[str, object]:
    tape = Tape(entropy)
    try:
        asked = check_campaign(text)
        answer = randomised(asked, row, Entropy(tape.read).below)  # type: ignore[arg-type]
    except CampaignRefused as refused:
        return {"refused": str(refused)}
    except ValueError as error:  # the row is not one of the campaign
        return {"error": f"RangeError: {error}"}
    return {"answer": answer, "nRead": tape.n_read, "epsilonUnits": asked.epsilon_units}


def test_the_vectors_are_what_is_answered(js: JavaScript) -> None:
    for vector in json.loads(PATH.read_text()):
        found = js.of("answer", **{name: vector[name] for name in ("campaign", "row", "entropy")})
        assert found["answer"] == vector["answer"]
        assert 2 * found["nRead"] == len(vector["entropy"])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_campaign_is_refused_in_the_same_words(name: str, js: JavaScript) -> None:
    text = hostile(HOSTILE[name])
    found = js.of("answer", campaign=text, row=ROW, entropy="")  # a draw would find no entropy
    assert set(found) == {"refused"}
    assert found == of_python(text, ROW, b"")


@pytest.mark.parametrize("text", NO_CAMPAIGNS)
def test_what_is_no_campaign_is_refused_in_the_same_words(text: str, js: JavaScript) -> None:
    found = js.of("answer", campaign=text, row=ROW, entropy="")
    assert found == of_python(text, ROW, b"")
    assert set(found) == {"refused"}


@given(st.integers(1, 2**70), st.binary(max_size=3))
def test_bytes_become_the_same_numbers(js: JavaScript, n: int, first: bytes) -> None:
    entropy = first + b"\x00" * 20
    drawn = Entropy(Tape(entropy).read).below(n)
    assert js.of("below", n=str(n), entropy=entropy.hex()) == {"drawn": str(drawn)}


@pytest.mark.parametrize(
    "channel",
    [
        {"kind": "randomised_response", "keep": "2/6", "weights": [1, 4, 2]},  # 1/3: 21 draws
        {"kind": "randomised_response", "keep": "1/4", "weights": [1, 1, 1]},
        {"kind": "local_hashing", "keep": "1/2", "buckets": 2},
    ],
)
def test_every_draw_gives_the_same_answer(js: JavaScript, channel: dict[str, Any]) -> None:
    value = {
        "format": 1,
        "name": "one",
        "attributes": [{"name": "q", "levels": [0, 1, 2]}],
        "combinations": [{"attributes": ["q"], "channel": channel}],
        "views": [[0]],
        "answers": 1,
        "epsilon": 6 * UNITS_PER_EPSILON,
    }
    text = canonical_json(value)
    for byte in range(32):
        for level in range(3):
            entropy = bytes([byte, byte % 5, 0])  # what is rejected is followed by another
            found = js.of("answer", campaign=text, row={"q": level}, entropy=entropy.hex())
            assert found == of_python(text, {"q": level}, entropy)
            assert "answer" in found


@st.composite
def channels(draw: st.DrawFn, n_cells: int) -> AnyChannel:
    epsilon = draw(st.integers(2**24, 6 * UNITS_PER_EPSILON))
    match draw(st.sampled_from(["rr", "oue", "olh"])):
        case "rr":
            weights = draw(st.lists(st.integers(1, 50), min_size=n_cells, max_size=n_cells))
            return RandomisedResponse.for_epsilon(tuple(weights), epsilon)
        case "oue":
            return UnaryEncoding.for_epsilon(n_cells, epsilon)
    return LocalHashing.for_epsilon(n_cells, epsilon)


@st.composite
def campaigns(draw: st.DrawFn) -> Campaign:
    n_attributes = draw(st.integers(1, 4))
    names = draw(
        st.lists(
            st.text(st.characters(categories=["L", "N", "S"]), min_size=1, max_size=5),
            min_size=n_attributes,
            max_size=n_attributes,
            unique=True,
        )
    )
    attributes = [
        Attribute(name, tuple(draw(st.lists(LEVELS, min_size=2, max_size=5, unique_by=repr))))
        for name in sorted(names)
    ]
    if n_attributes > 1 and draw(st.booleans()):
        views = designed_views([one.name for one in attributes], 2)
        epsilon = draw(st.integers(2**30, 8 * UNITS_PER_EPSILON))
        return planned_campaign("planned", attributes, views, epsilon_units=epsilon)
    combinations = tuple(
        Combination((one.name,), draw(channels(len(one.levels)))) for one in attributes
    )
    places = tuple(range(n_attributes))
    n_answered = draw(st.integers(1, min(2, n_attributes)))  # of channels that lose at most 6
    return Campaign(
        "single", tuple(attributes), combinations, (places,), 13 * UNITS_PER_EPSILON, n_answered
    )


def entropy_of(seed: int) -> bytes:
    return b"".join(sha256(f"{seed} {block}".encode()).digest() for block in range(60))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_both_answer_a_random_campaign_bit_by_bit(js: JavaScript, data: st.DataObject) -> None:
    campaign = data.draw(campaigns())
    text = campaign_text(campaign)
    row = {
        one.name: data.draw(st.sampled_from((*one.levels, *ANYTHING)) | LEVELS)
        for one in campaign.attributes
    }
    entropy = entropy_of(data.draw(st.integers(0, 2**32)))
    found = js.of("answer", campaign=text, row=row, entropy=entropy.hex())
    assert found == of_python(text, row, entropy)
    submission = read_submission(campaign, campaign_digest(text), found["answer"])
    assert len(submission.counted_at(campaign)) == campaign.n_answered  # a server can count it


JSON = st.recursive(
    st.one_of(
        LEVELS,
        st.floats(),
        st.integers(2**53, 2**70),
        st.sampled_from(["1/1", "0/1", "007/9", "1/2", "1/3", "2/6", "1/4294967296", "\ud800"]),
        st.integers(-2, 300),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=3,
)


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value at which something can be put."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            found += places_in(value[key])
    return found


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_both_make_the_same_of_a_campaign_that_was_tampered_with(
    js: JavaScript, data: st.DataObject
) -> None:
    campaign = data.draw(campaigns())
    value = json.loads(campaign_text(campaign))
    for _ in range(data.draw(st.integers(1, 2))):
        holder, key = data.draw(st.sampled_from(places_in(value)))
        if data.draw(st.integers(0, 3)):
            holder[key] = data.draw(JSON)
        elif isinstance(holder, list):
            holder.append(holder[key])
        else:
            del holder[key]
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    row = {one.name: one.levels[0] for one in campaign.attributes}
    entropy = entropy_of(0)
    found = js.of("answer", campaign=text, row=row, entropy=entropy.hex())
    assert found == of_python(text, row, entropy)


def visits(*texts: str) -> list[dict[str, object]]:
    return [{"campaign": text, "row": ROW} for text in texts]


TEXT = campaign_text(survey_campaign(UNITS_PER_EPSILON))
DIGEST = sha256(TEXT.encode()).hexdigest()


def test_an_answer_is_given_once_and_again(js: JavaScript) -> None:
    asked = visits(*[TEXT] * 20)
    found = js.of("visits", visits=asked, limit=UNITS_PER_EPSILON, kept={}, isFull=False)
    assert len(set(found["given"])) == 1
    assert json.loads(found["kept"]["tacit-answers"]) == {
        DIGEST: [UNITS_PER_EPSILON, found["given"][0]]
    }
    again = js.of(
        "visits", visits=asked[:1], limit=UNITS_PER_EPSILON, kept=found["kept"], isFull=False
    )
    assert again["given"] == found["given"][:1]


def test_a_campaign_under_another_name_finds_the_limit_spent(js: JavaScript) -> None:
    texts = [TEXT.replace('"survey"', f'"{name}"') for name in ("one", "two", "three")]
    found = js.of(
        "visits", visits=visits(*texts), limit=2 * UNITS_PER_EPSILON, kept={}, isFull=False
    )
    refused = {
        "refused": "the campaign would spend more epsilon than the respondent's limit leaves"
    }
    assert found["given"].count(refused) == 1  # whichever of their digests was known last
    assert sum(isinstance(one, str) for one in found["given"]) == 2
    few = js.of("visits", visits=visits(TEXT), limit=UNITS_PER_EPSILON - 1, kept={}, isFull=False)
    assert set(few["given"][0]) == {"refused"}
    assert few["kept"] == {}


@pytest.mark.parametrize("kept", ["", "[]", "{", '{"a": 3}', '{"a": [1.5, "x"]}', '{"a": [1, 2]}'])
def test_answers_that_are_damaged_are_no_empty_ones(js: JavaScript, kept: str) -> None:
    before = {"tacit-answers": kept}
    found = js.of("visits", visits=visits(TEXT), limit=2**44, kept=before, isFull=False)
    assert set(found["given"][0]) == {"unreadable"}
    assert found["kept"] == before


def test_an_answer_that_cannot_be_kept_is_not_given(js: JavaScript) -> None:
    found = js.of("visits", visits=visits(TEXT), limit=2**44, kept={}, isFull=True)
    assert set(found["given"][0]) == {"error"}
    assert found["kept"] == {}


def test_a_row_without_a_name_is_refused_whatever_it_says_and_spends_nothing(
    js: JavaScript,
) -> None:
    without = {name: level for name, level in ROW.items() if name != "T"}
    asked = [{"campaign": TEXT, "row": row} for row in (without, {**without, "A": "ancient"})]
    found = js.of("visits", visits=asked, limit=2**44, kept={}, isFull=False)
    refused = "RangeError: the row does not have T, which the campaign asks about"
    assert found["given"] == [{"error": refused}] * 2
    assert found["kept"] == {}
    assert of_python(TEXT, without, b"") == {"error": refused}


def test_whether_there_is_an_answer_says_nothing_of_the_row(js: JavaScript) -> None:
    """And the respondent is told what Python tells."""
    text = searching("no", "-")
    for own in ANYTHING:
        asked = [{"campaign": text, "row": {"hiv": own}}]
        found = js.of("visits", visits=asked, limit=UNITS_PER_EPSILON, kept={}, isFull=False)
        (given,) = found["given"]
        assert len(json.loads(given)["answers"]) == 1
        respondent = Respondent(Forgetful(), epsilon_units_max=UNITS_PER_EPSILON)
        told = respondent.answer(text, {"hiv": own})
        assert tuple(found["remarks"][0]) == told.remarks
        assert bool(told.remarks) == (own != "no")


class Forgetful:
    """Where nothing is kept."""

    def once(self, campaign: str, make: Callable[[int], Kept], token: str = "") -> Kept:
        del campaign
        return replace(make(0), token=token)


def test_a_fault_of_the_browser_is_no_fault_of_the_campaign(js: JavaScript) -> None:
    assert js.of("brokenDigest", campaign=TEXT) == {"error": "TypeError: it is broken"}


def test_a_text_that_has_no_bytes_is_refused(js: JavaScript) -> None:
    """It would have the digest of another text."""
    text = TEXT.replace('"survey"', '"\ud800"')
    found = js.of("answer", campaign=text, row=ROW, entropy="")
    assert found == of_python(text, ROW, b"")
    assert set(found) == {"refused"}


def test_numbers_are_whole_in_the_text_and_not_only_in_the_reader(js: JavaScript) -> None:
    """JavaScript reads 1.0, 1e0 and 9007199254740993 as whole numbers that it has."""
    for written in ("1.0", "1e0", "9007199254740993", "true"):
        text = TEXT.replace('"format":1', f'"format":{written}')
        assert text != TEXT
        found = js.of("answer", campaign=text, row=ROW, entropy="")
        assert set(found) == {"refused"}
        assert found == of_python(text, ROW, b"")
    assert canonical_json(json.loads(TEXT)) == TEXT
