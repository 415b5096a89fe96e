"""Submissions: what respondents send is read, anything else is refused, and nothing is quoted."""

import json
from typing import Any

import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest
from local_dp.campaign import campaign_digest, campaign_text, read_campaign
from local_dp.respondent import Entropy, check_campaign, randomised
from local_dp.submission import read_submission
from tests.support.answer_vectors import PATH
from tests.support.collections_of_answers import survey_campaign

CAMPAIGN = survey_campaign(UNITS_PER_EPSILON, n_answered=2)
TEXT = campaign_text(CAMPAIGN)
DIGEST = campaign_digest(TEXT)
ROW = {"A": "old", "E": "high", "O": "emp", "R": "big", "S": "F", "T": "car"}


def submitted() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        randomised(check_campaign(TEXT), ROW, Entropy(bytes).below)  # no entropy: the first view
    )
    return answer


def test_what_respondents_send_is_read() -> None:
    for vector in json.loads(PATH.read_text()):
        campaign = read_campaign(vector["campaign"])
        digest = campaign_digest(vector["campaign"])
        found = read_submission(campaign, digest, vector["answer"])
        sent = json.loads(vector["answer"])
        assert found.view == sent["view"]
        assert [[place, f"{answer:x}"] for place, answer in found.answers] == sent["answers"]
        for place, counted in found.counted_at(campaign):
            channel = campaign.combinations[place].channel
            assert all(0 <= one < channel.n_tallies for one in counted)
            assert not channel.is_categorical or len(counted) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"campaign": "0" * 64},
        {"view": 5},
        {"view": -1},
        {"view": True},
        {"view": 1},
        {"answers": []},
        {"answers": [[0, "1"]]},
        {"answers": [[0, "1"], [0, "1"]]},
        {"answers": [[1, "1"], [0, "1"]]},
        {"answers": [[0, "1"], [3, "1"]]},
        {"answers": [[0, "1"], [1, "4"]]},  # a cell beyond the last
        {"answers": [[0, "1"], [1, "-1"]]},
        {"answers": [[0, "1"], [1, "01"]]},
        {"answers": [[0, "1"], [1, "A"]]},
        {"answers": [[0, "1"], [1, "1" * 2000]]},
        {"answers": [[0, "1"], [1, 1]]},
        {"answers": [[0, "1"], [1]]},
        {"answers": [[0, "1"], None]},
        {"answers": {"0": "1"}},
        {"name": "me"},
    ],
)
def test_what_no_respondent_sends_is_refused(change: dict[str, Any]) -> None:
    good = submitted()
    read_submission(CAMPAIGN, DIGEST, json.dumps(good))
    with pytest.raises(InvalidRequest) as caught:
        read_submission(CAMPAIGN, DIGEST, json.dumps({**good, **change}))
    assert "[" not in caught.value.explain()  # a message never has an answer in it


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "1", '"x"', "x" * 2**21])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_submission(CAMPAIGN, DIGEST, text)
