"""Respondents whose true rows are known, and what their randomised answers are counted as."""

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import (
    Attribute,
    Campaign,
    campaign_digest,
    campaign_text,
    designed_views,
    planned_campaign,
)
from local_dp.estimates.collection import CollectionEstimates
from local_dp.estimates.shares import Tally
from local_dp.respondent import Entropy, check_campaign, randomised
from local_dp.submission import read_submission
from tests.support.answering import answered

# In an order that is no column's: numbers fall, true comes first, and not having said is no last.
ATTRIBUTES = (
    Attribute("education", ("school", None, "college")),
    Attribute("grade", (3, 2, 1)),
    Attribute("member", (True, False)),
    Attribute("years", (0, 5, 10, 15)),
)
CITY = Attribute("city", ("Oslo", "Paris"))

Rows = Mapping[str, NDArray[np.int64]]  # of each attribute, the place of each respondent's level


def campaign_of(epsilon: int = 2, *, alone: Sequence[Attribute] = ()) -> Campaign:
    """Every pair of the attributes, and some attributes that are asked about alone."""
    views = designed_views([one.name for one in ATTRIBUTES], 2)
    return planned_campaign(
        "survey",
        (*ATTRIBUTES, *alone),
        (*views, *(((one.name,),) for one in alone)),
        epsilon_units=epsilon * UNITS_PER_EPSILON,
    )


def true_rows(campaign: Campaign, n: int, rng: np.random.Generator) -> Rows:
    """Rows in which later attributes follow the first a little."""
    first = rng.choice(3, n, p=[0.5, 0.2, 0.3])
    found = {campaign.attributes[0].name: first}
    for one in campaign.attributes[1:]:
        own = rng.integers(len(one.levels), size=n)
        found[one.name] = np.where(rng.random(n) < 0.4, first % len(one.levels), own)
    return found


def collected(campaign: Campaign, rows: Rows, rng: np.random.Generator) -> CollectionEstimates:
    """What respondents with these rows answer, each to one combination of a view at random."""
    n = next(iter(rows.values())).size
    views = rng.integers(len(campaign.views), size=n)
    tallies: dict[int, list[Tally]] = {}
    for number, view in enumerate(campaign.views):
        own = np.flatnonzero(views == number)
        drawn = rng.integers(len(view), size=own.size)
        for place, combination in enumerate(view):
            who, asked = own[drawn == place], campaign.combinations[combination]
            cells = np.zeros(who.size, dtype=np.int64)
            for name in asked.scope:
                cells = cells * len(campaign.by_name[name].levels) + rows[name][who]
            tallies.setdefault(combination, []).append(answered(asked.channel, cells, rng))
    return CollectionEstimates(campaign, tallies, n)


def submitted(campaign: Campaign, rows: Rows, seed: int) -> CollectionEstimates:
    """The same by the code that runs at respondents, from texts as they are sent."""
    text, entropy = campaign_text(campaign), Entropy(Random(seed).randbytes)  # noqa: S311 - a test
    digest, asked = campaign_digest(text), check_campaign(text)
    n = next(iter(rows.values())).size
    counts: dict[int, NDArray[np.int64]] = {}
    n_answers: dict[int, int] = {}
    for place in range(n):
        row = {one.name: one.levels[rows[one.name][place]] for one in campaign.attributes}
        sent = read_submission(campaign, digest, randomised(asked, row, entropy.below))
        for combination, counted in sent.counted_at(campaign):
            n_places = campaign.combinations[combination].channel.n_tallies
            own = counts.setdefault(combination, np.zeros(n_places, dtype=np.int64))
            own[list(counted)] += 1
            n_answers[combination] = n_answers.get(combination, 0) + 1
    tallies = {
        place: (Tally(campaign.combinations[place].channel, n_answers[place], own),)
        for place, own in counts.items()
    }
    return CollectionEstimates(campaign, tallies, n)
