"""All combinations of a campaign together: agreement, coverage, and what no table says."""

import json
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from local_dp.campaign import Campaign, campaign_text, planned_campaign
from local_dp.channels.channel import Floats
from local_dp.estimates.collection import CollectionEstimates, NotCovered
from local_dp.estimates.laws import IntervalMethod
from local_dp.estimates.shares import Tally
from local_dp.respondent import Entropy, check_campaign, randomised
from tests.support.answering import answered
from tests.support.collections_of_answers import (
    NAMES,
    SURVEY,
    survey_campaign,
    survey_joint,
    survey_marginal,
)

SIZES = dict(zip(NAMES, survey_joint().shape, strict=True))


def collected(campaign: Campaign, n: int, rng: np.random.Generator) -> CollectionEstimates:
    """Respondents drawn from the Survey network, who each answer some combinations of a view."""
    joint = survey_joint()
    rows = np.array(np.unravel_index(rng.choice(joint.size, n, p=joint.ravel()), joint.shape))
    views = rng.integers(len(campaign.views), size=n)
    tallies: dict[int, list[Tally]] = {}
    for number, view in enumerate(campaign.views):
        inside = np.flatnonzero(views == number)
        orders = rng.permuted(np.tile(view, (inside.size, 1)), axis=1)[:, : campaign.n_answered]
        for place in view:
            asked = inside[(orders == place).any(axis=1)]
            combination = campaign.combinations[place]
            cells = np.ravel_multi_index(
                [rows[NAMES.index(name), asked] for name in combination.scope],
                campaign.sizes(combination.scope),
            )
            tallies.setdefault(place, []).append(answered(combination.channel, cells, rng))
    return CollectionEstimates(campaign, tallies, n)


def grouped(*names: str) -> QueryBlock:
    shape = [SIZES[name] for name in sorted(names)]
    labels = np.arange(int(np.prod(shape))).reshape(shape)
    return QueryBlock(counting(), Partition(tuple(sorted(names)), labels))


def condition(name: str, *numbers: int) -> Factor:
    return Factor((name,), np.array(numbers, dtype=np.int64))


def truth(block: QueryBlock, n: int) -> Floats:
    return n * survey_marginal(block.scope).ravel()


@pytest.mark.parametrize("n_answered", [1, 3])
@pytest.mark.parametrize("names", [("E",), ("A", "T"), ("O",)])
def test_intervals_of_a_collection_cover(names: Sequence[str], n_answered: int) -> None:
    """50 collections of 6000 people: 88 % covered at least, which 95 % misses with odds of .01.

    Rows of one collection are dependent, so only the first and the last of them count.
    """
    rng = np.random.default_rng(len(names) + n_answered)
    campaign = survey_campaign(UNITS_PER_EPSILON, n_answered=n_answered)
    block = grouped(*names)
    expected = truth(block, 6000)
    errors, covered = [], []
    for _ in range(50):
        found = collected(campaign, 6000, rng).answer(block)
        assert {one.method for one in found} == {IntervalMethod.NORMAL}
        errors.append([one.value for one in found] - expected)
        ends = [one.interval(0.95) for one in found]
        inside = [low <= t <= high for (low, high), t in zip(ends, expected, strict=True)]
        covered.append([inside[0], inside[-1]])
    assert np.mean(covered) >= 0.88
    spread = np.std(errors, axis=0) / 50**0.5
    assert (np.abs(np.mean(errors, axis=0)) < 4 * spread).all()  # unbiased; odds of .0006 a row


def test_overlapping_combinations_make_an_answer_better_and_agree() -> None:
    campaign = survey_campaign(UNITS_PER_EPSILON)
    found = collected(campaign, 20_000, np.random.default_rng(1))
    (education, _) = found.answer(grouped("E"))
    alone = [
        found.n_respondents * np.sqrt(found.estimates[place].variances(query)[0])
        for place in campaign.covering(("E",))
        for query in [found.tables[place].widened(("E",), np.array([[1.0], [0.0]]))]
    ]
    # Of five tables of equal size, the mean has a deviation of 1 / sqrt(5) of each.
    assert education.law.gaussian < 0.6 * min(alone)
    # Every way to add up to the same count is the same.
    for other in "AORST":
        pairs = found.answer(grouped("E", other))
        names = sorted(("E", other))
        table = np.array([one.value for one in pairs]).reshape([SIZES[name] for name in names])
        total = table.sum(axis=1 - names.index("E"))[0]
        assert total == pytest.approx(education.value, abs=1e-6)


def test_sums_conditions_and_constants_are_answered() -> None:
    found = collected(survey_campaign(2 * UNITS_PER_EPSILON), 30_000, np.random.default_rng(2))
    terms = (Term(Fraction(1, 2), (condition("A", 1, 0, 1), condition("T", 0, 1, 0))),)
    row = LinearQuery(terms, Fraction(7))
    (answer,) = found.answer(QueryBlock(row))
    expected = 30_000 * (0.0841 + 0.0565) / 2 + 7
    low, high = answer.interval(0.9999)
    assert low < expected < high
    assert high - low < 3000
    (everyone,) = found.answer(QueryBlock(counting()))
    assert everyone.interval(0.99) == (30_000, 30_000)


def test_few_answers_have_exact_intervals() -> None:
    found = collected(survey_campaign(UNITS_PER_EPSILON), 150, np.random.default_rng(3))
    methods = {one.method for one in found.answer(grouped("O", "R"))}
    assert methods == {IntervalMethod.BINOMIAL}


def test_what_no_combination_covers_is_a_model_without_an_interval() -> None:
    found = collected(survey_campaign(3 * UNITS_PER_EPSILON), 200_000, np.random.default_rng(4))
    block = grouped("A", "E", "R")
    with pytest.raises(NotCovered) as caught:
        found.answer(block)
    assert caught.value.scope == ("A", "E", "R")
    assert len(caught.value.covered) == 15
    model = found.modelled(block)
    assert model.values.min() >= 0
    assert model.values.sum() == pytest.approx(200_000)
    # The network has no interaction of three here, so that the model is nearly right.
    assert np.abs(model.values - truth(block, 200_000)).max() < 0.02 * 200_000


def test_one_overlapping_table_for_each_respondent_is_unbiased() -> None:
    """Attribute-parent tables, each a view of its own: 40 campaigns, 4 standard errors."""
    scopes = (("A", "E", "S"), ("A", "E", "R"), ("E", "O", "R"))
    campaign = planned_campaign(
        "parents", SURVEY, [(scope,) for scope in scopes], epsilon_units=UNITS_PER_EPSILON
    )
    rng = np.random.default_rng(7)
    errors: dict[tuple[str, ...], list[Floats]] = {scope: [] for scope in scopes}
    for _ in range(40):
        found = collected(campaign, 3000, rng)
        for scope in scopes:
            values = np.array([one.value for one in found.answer(grouped(*scope))])
            errors[scope].append(values - truth(grouped(*scope), 3000))
    for some in errors.values():
        spread = np.std(some, axis=0) / 40**0.5
        assert (np.abs(np.mean(some, axis=0)) < 4 * spread).all()


def test_combinations_without_answers_cover_nothing() -> None:
    campaign = planned_campaign(
        "two", SURVEY, [(("A", "E"),), (("O", "R"),)], epsilon_units=UNITS_PER_EPSILON
    )
    channel = campaign.combinations[0].channel
    found = CollectionEstimates(campaign, {0: [Tally.of_answers(channel, [0, 1, 2])]}, 3)
    assert found.covered == (("A", "E"),)
    for ask in (found.answer, found.modelled):
        with pytest.raises(NotCovered):
            ask(grouped("O"))
    with pytest.raises(ValueError, match="answers"):
        CollectionEstimates(campaign, found.tallies, 4)
    with pytest.raises(ValueError, match="no combination"):
        CollectionEstimates(campaign, {9: []}, 0)
    with pytest.raises(ValueError, match="number of cells"):
        CollectionEstimates(campaign, {1: found.tallies[0]}, 3)


def test_answers_of_respondents_arrive_where_they_belong() -> None:
    """The respondent's code, the tallies and the estimates: 3000 people, at odds of 1e-8."""
    campaign = survey_campaign(4 * UNITS_PER_EPSILON)
    asked = check_campaign(campaign_text(campaign))
    row = {"A": "old", "E": "high", "O": "self", "R": "big", "S": "F", "T": "train"}
    given: dict[int, list[int]] = {}
    for _ in range(3000):
        for place, answer in json.loads(randomised(asked, row, Entropy().below))["answers"]:
            given.setdefault(place, []).append(int(answer, 16))
    tallies = {
        place: [Tally.of_answers(campaign.combinations[place].channel, some)]
        for place, some in given.items()
    }
    found = CollectionEstimates(campaign, tallies, 3000).answer(grouped("A", "T"))
    for cell, answer in enumerate(found):
        low, high = answer.interval(1 - 1e-9)
        assert low <= (3000 if cell == 2 * 3 + 1 else 0) <= high


@pytest.mark.parametrize("n_answered", [1, 3])
def test_tables_of_all_combinations_agree_and_are_as_precise_as_they_say(n_answered: int) -> None:
    """60 collections: a variance is within 4.5 of its standard errors, .19 of it each, of 60 cells.

    The true one is below what a combination's own answers say, never above.
    """
    campaign = survey_campaign(2 * UNITS_PER_EPSILON, n_answered=n_answered)
    rng = np.random.default_rng(21)
    drawn: dict[tuple[str, ...], list[Floats]] = {}
    said: dict[tuple[str, ...], Floats] = {}
    for _ in range(60):
        estimates = collected(campaign, 4000, rng)
        tables = estimates.agreeing(NAMES)
        assert [one.scope for one in tables] == list(estimates.covered)
        margins: dict[str, list[Floats]] = {}
        for one in tables:
            drawn.setdefault(one.scope, []).append(one.counts)
            said[one.scope] = one.variances
            margins.setdefault(one.scope[0], []).append(one.counts.sum(axis=1))
            margins.setdefault(one.scope[1], []).append(one.counts.sum(axis=0))
        for same in margins.values():
            assert np.ptp(same, axis=0).max() < 1e-6
            assert same[0].sum() == pytest.approx(4000)
    for scope, tables_of_scope in drawn.items():
        expected = 4000 * survey_marginal(scope)
        error = np.std(tables_of_scope, axis=0) / np.sqrt(60)
        assert (np.abs(np.mean(tables_of_scope, axis=0) - expected) <= 4.5 * error).all()
        assert (np.var(tables_of_scope, axis=0) <= said[scope] * (1 + 4.5 * 0.19)).all()


def test_tables_that_agree_are_summed_over_what_is_not_asked_for() -> None:
    estimates = collected(survey_campaign(UNITS_PER_EPSILON), 2000, np.random.default_rng(22))
    whole = {one.scope: one.counts for one in estimates.agreeing(NAMES)}
    (*_, some) = [one for one in estimates.agreeing(("A", "E")) if one.scope == ("A",)]
    assert some.counts == pytest.approx(whole["A", "E"].sum(axis=1), rel=1e-9)
    assert {one.scope for one in estimates.agreeing(("A", "E"))} == {("A",), ("E",), ("A", "E")}
    assert not estimates.agreeing(())
    assert (some.variances > 0).all()
