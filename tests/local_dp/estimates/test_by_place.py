"""Estimates of a wide campaign are made of the combinations that a question touches, no others."""

import numpy as np
import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.query import Partition, QueryBlock, counting
from local_dp.campaign import Attribute, designed_views, planned_campaign
from local_dp.estimates.collection import ByPlace, CollectionEstimates
from local_dp.estimates.shares import Tally

NAMES = tuple("abcdef")
CAMPAIGN = planned_campaign(
    "wide",
    [Attribute(name, (1, 2, 3)) for name in NAMES],
    designed_views(NAMES, 2),
    epsilon_units=UNITS_PER_EPSILON,
)
N_EACH = 50
N_ANSWERS = dict.fromkeys(range(len(CAMPAIGN.combinations)), N_EACH)


class Made:
    """Tallies of a campaign, of which it is noted which are made."""

    def __init__(self, n_answers: int = N_EACH) -> None:
        self.places: list[int] = []
        self._n_answers = n_answers

    def __call__(self, place: int) -> tuple[Tally, ...]:
        self.places.append(place)
        channel = CAMPAIGN.combinations[place].channel
        rng = np.random.default_rng(place)
        answers = rng.integers(0, channel.n_tallies, self._n_answers)
        return (Tally.of_answers(channel, answers.tolist()),)

    def estimates(self) -> CollectionEstimates:
        tallies = ByPlace(N_ANSWERS, self, is_kept=False)
        return CollectionEstimates(CAMPAIGN, tallies, sum(N_ANSWERS.values()), N_ANSWERS)


def counts(*scope: str) -> QueryBlock:
    sizes = CAMPAIGN.sizes(scope)
    cells = np.arange(int(np.prod(sizes)), dtype=np.int64).reshape(sizes)
    return QueryBlock(counting([]), Partition(scope, cells))


def shown(estimates: CollectionEstimates, block: QueryBlock) -> list[tuple[float, float, float]]:
    return [(one.value, *one.interval(0.95)) for one in estimates.answer(block)]


def test_a_question_makes_what_it_touches_and_once() -> None:
    made = Made()
    estimates = made.estimates()
    assert len(estimates.covered) == len(CAMPAIGN.combinations)
    assert made.places == []
    touched = [
        place for place, one in enumerate(CAMPAIGN.combinations) if {"a", "b"} & set(one.scope)
    ]
    assert len(touched) < len(CAMPAIGN.combinations)
    found = shown(estimates, counts("a", "b"))
    assert sorted(made.places) == touched
    assert shown(estimates, counts("a", "b")) == found
    assert sorted(made.places) == touched


def test_answers_are_those_of_tallies_that_are_all_there() -> None:
    made = Made()
    every = {place: made(place) for place in N_ANSWERS}
    whole = CollectionEstimates(CAMPAIGN, every, sum(N_ANSWERS.values()))
    for block in (counts("a"), counts("c", "e")):
        assert shown(Made().estimates(), block) == shown(whole, block)


def test_tallies_of_another_number_of_answers_are_refused_when_they_are_made() -> None:
    estimates = Made(N_EACH + 1).estimates()
    with pytest.raises(ValueError, match=f"{N_EACH + 1} answers instead of"):
        estimates.answer(counts("a"))
    with pytest.raises(ValueError, match="do not fit 1 respondents"):
        CollectionEstimates(CAMPAIGN, {}, 1, N_ANSWERS)


def test_a_value_that_is_not_kept_is_made_each_time() -> None:
    for is_kept, n_made in ((True, 1), (False, 2)):
        made = Made()
        values = ByPlace([3, 1], made, is_kept=is_kept)
        assert (list(values), len(values), 2 in values) == ([1, 3], 2, False)
        assert values[3][0].n_answers == values[3][0].n_answers == N_EACH
        assert len(made.places) == n_made
        with pytest.raises(KeyError):
            values[2]
