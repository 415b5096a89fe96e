"""Respondents who answer several combinations: variances count what goes together in one person."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.query import Factor, QueryBlock, counting
from local_dp.campaign import Attribute, Campaign, designed_views, planned_campaign
from local_dp.estimates.collection import CollectionEstimates
from local_dp.estimates.shares import Tally
from tests.support.answering import answered

N = 6000
N_COLLECTIONS = 550
OFF = 4.5 * (2 / N_COLLECTIONS) ** 0.5  # of a variance, as a part of it: odds of 7e-6

# Numbers of two attributes that go together, added up and compared.
PAIR = QueryBlock(counting([Factor(("a", "b"), np.array([[2, 1], [1, 0]]))]))
AGAINST = QueryBlock(counting([Factor(("a", "b"), np.array([[0, 1], [-1, 0]]))]))


def campaign_of(n_attributes: int, n_answered: int, epsilon: int = 12) -> Campaign:
    """Every pair of attributes with two levels."""
    names = "abcdef"[:n_attributes]
    return planned_campaign(
        "c",
        [Attribute(name, ("yes", "no")) for name in names],
        designed_views(names, 2),
        epsilon_units=epsilon * UNITS_PER_EPSILON,
        n_answered=n_answered,
    )


def drawn(campaign: Campaign, rng: np.random.Generator) -> CollectionEstimates:
    """What people answer whose attributes nearly all go together."""
    first = rng.integers(2, size=N)
    rows = {
        one.name: np.where(rng.random(N) < 0.95, first, rng.integers(2, size=N))
        for one in campaign.attributes
    }
    views = rng.integers(len(campaign.views), size=N)
    tallies: dict[int, list[Tally]] = {}
    for number, view in enumerate(campaign.views):
        own = np.flatnonzero(views == number)
        order = rng.permuted(np.tile(np.arange(len(view)), (own.size, 1)), axis=1)
        asked = order[:, : campaign.n_answered]
        for place, combination in enumerate(view):
            who = own[(asked == place).any(axis=1)]
            one = campaign.combinations[combination]
            cells = np.ravel_multi_index([rows[name][who] for name in one.scope], (2, 2))
            tallies.setdefault(combination, []).append(answered(one.channel, cells, rng))
    return CollectionEstimates(campaign, tallies, N)


@pytest.mark.parametrize(
    ("n_attributes", "n_answered"),
    [
        (6, 3),
        pytest.param(6, 2, marks=pytest.mark.slow),
        pytest.param(4, 2, marks=pytest.mark.slow),
    ],
)
def test_variances_count_what_tables_of_one_person_have_in_common(
    n_attributes: int, n_answered: int
) -> None:
    """Without it they were 1.52, 1.36 and 1.33 times too small."""
    found, stated = variances(campaign_of(n_attributes, n_answered), PAIR)
    assert found == pytest.approx(stated, rel=OFF)


def test_what_goes_against_each_other_is_not_relied_on() -> None:
    """Of differences, tables of one person have their errors in common, and these cancel."""
    found, stated = variances(campaign_of(6, 3), AGAINST)
    assert found < stated / 2


def variances(campaign: Campaign, block: QueryBlock) -> tuple[float, float]:
    """Of an answer in many collections, and what is said of it."""
    rng = np.random.default_rng(7)
    many = [drawn(campaign, rng).answer(block)[0] for _ in range(N_COLLECTIONS)]
    return (
        float(np.var([one.value for one in many])),
        float(np.mean([one.law.gaussian**2 for one in many])),
    )


@pytest.mark.parametrize("n_answered", [1, 2, 3])
def test_who_answers_two_combinations_is_expected(n_answered: int) -> None:
    """By enumeration of all views, and of what is drawn of each."""
    campaign = campaign_of(6, n_answered)
    n_drawn = [list(combinations(view, n_answered)) for view in campaign.views]
    for one, other in combinations(range(len(campaign.combinations)), 2):
        of_view = [
            Fraction(sum({one, other} <= set(asked) for asked in some), len(some))
            for some in n_drawn
        ]
        expected = sum(of_view, Fraction(0)) / len(campaign.views)
        assert campaign.expected_share_of_both(one, other) == expected
