"""The cells of a collection: shares within the time of a call, or why there are none of some."""

import numpy as np
import pytest

from cube.pace import paced
from cube.refusals import InvalidRequest, TooSlow
from local_dp.campaign import Campaign
from local_dp.estimates.collection import CollectionEstimates
from proxy.collections.table import estimated_shares
from tests.support.answering import answered
from tests.support.campaigns import survey
from tests.support.respondents import campaign_of, collected, true_rows
from tests.support.steps import Counted

CAMPAIGN = survey()
LARGER = campaign_of(2)


def of_one_pair(campaign: Campaign, place: int) -> CollectionEstimates:
    """Three respondents, who were all asked about the same pair."""
    channel = campaign.combinations[place].channel
    tally = answered(channel, np.zeros(3, dtype=np.int64), np.random.default_rng(1))
    return CollectionEstimates(campaign, {place: [tally]}, 3)


def test_a_pair_that_is_asked_about_and_not_answered_yet_is_said_to_be_that() -> None:
    scopes = [one.scope for one in CAMPAIGN.combinations]
    found = of_one_pair(CAMPAIGN, scopes.index(("education", "smokes")))
    assert len(estimated_shares(found, ["smokes", "education"], 0.95)) == 6
    with pytest.raises(InvalidRequest) as refused:
        estimated_shares(found, ["region", "education"], 0.95)
    assert refused.value.message == "No one has answered about education, region yet."
    assert refused.value.hint == "Answered until now: education, smokes."


def test_what_is_never_asked_together_is_refused_with_all_that_is() -> None:
    """Also with pairs that nobody has answered yet: they will be."""
    with pytest.raises(InvalidRequest) as refused:
        estimated_shares(of_one_pair(CAMPAIGN, 0), ["region", "education", "smokes"], 0.95)
    assert refused.value.message == "No one was asked about education, region, smokes together."
    assert refused.value.hint is not None
    for one in CAMPAIGN.combinations:
        assert ", ".join(one.scope) in refused.value.hint


def test_before_the_first_answer_nothing_is_listed() -> None:
    nobody = CollectionEstimates(CAMPAIGN, {}, 0)
    with pytest.raises(InvalidRequest, match=r"^No one has answered yet\.$"):
        estimated_shares(nobody, ["smokes"], 0.95)


def test_cells_are_worked_out_at_the_pace_of_the_call() -> None:
    rng = np.random.default_rng(1)
    estimates = collected(LARGER, true_rows(LARGER, 3000, rng), rng)
    names = ("education", "years")
    pace = Counted(10**6)
    with paced(pace):
        cells = estimated_shares(estimates, names, 0.95)
    assert len(cells) == 12
    assert sum(one.share for one in cells) == pytest.approx(1, abs=1e-9)
    n_steps = 10**6 - pace.n_left
    assert n_steps > len(cells)
    for n_allowed in range(0, n_steps, 7):
        with paced(Counted(n_allowed)), pytest.raises(TooSlow):
            estimated_shares(estimates, names, 0.95)
