"""Collections as tables: columns, refusals with what is covered, how intervals were found."""

import numpy as np
import pytest

from accountant.ledger.limits import Payer
from cube.axis import BooleanAxis, CategoryAxis, IntegerAxis, MeasureAxis
from cube.query import Factor, Partition, QueryBlock, counting
from cube.refusals import NotCollected, TooLarge
from cube.target import AccuracyTarget
from local_dp.campaign import Attribute, planned_campaign
from local_dp.columns import CollectedAxes
from local_dp.estimates.collection import CollectionEstimates
from planner.workload import Fallback, Wanted
from proxy.collections.table import CollectedTable
from tests.support.respondents import CITY, campaign_of, collected, true_rows

TARGET = AccuracyTarget(half_width=1.0, confidence=0.95)
ANN = Payer("ann")
CAMPAIGN = campaign_of(alone=[CITY])


def table(n: int = 20_000, seed: int = 1) -> CollectedTable:
    rng = np.random.default_rng(seed)
    return CollectedTable(collected(CAMPAIGN, true_rows(CAMPAIGN, n, rng), rng))


def by(name: str, size: int) -> Wanted:
    return Wanted(QueryBlock(counting(), Partition((name,), np.arange(size))), TARGET)


def test_levels_are_columns_in_the_order_of_their_kind() -> None:
    education, grade, member, years, city = table().info.schema.axes
    assert education == CategoryAxis(name="education", values=("school", "college"), null=True)
    assert grade == IntegerAxis(name="grade", low=1, high=3)
    assert member == BooleanAxis(name="member")
    assert years == MeasureAxis(name="years", low=0, high=15, step=5)
    assert city == CategoryAxis(name="city", values=("Oslo", "Paris"))


@pytest.mark.parametrize(
    ("levels", "texts"),
    [
        ((1, 2, 4), ("1", "2", "4")),
        (("1", 1), ('"1"', "1")),
        ((True, "yes"), ("true", "yes")),
        ((True, None), ("true", None)),
        ((0, 2**50), ("0", str(2**50))),
    ],
)
def test_levels_that_no_kind_has_are_text(levels: tuple[str, ...], texts: tuple[str, ...]) -> None:
    campaign = planned_campaign("c", [Attribute("a", levels)], [(("a",),)], epsilon_units=2**40)
    (axis,) = CollectedAxes.of(campaign).axes
    assert axis.levels == texts


def test_blocks_are_asked_in_the_order_of_the_campaign() -> None:
    axes = CollectedAxes.of(CAMPAIGN)
    weights = Factor(("education", "grade"), np.arange(9).reshape(3, 3))
    found = axes.of_campaign(
        QueryBlock(counting([weights]), Partition(("grade",), np.array([0, -1, 1])))
    )
    # school, NULL, college; and 3, 2, 1: of the columns these are places 0, 2, 1 and 2, 1, 0.
    (factor,) = found.query.terms[0].factors
    assert factor.values.tolist() == [[2, 1, 0], [8, 7, 6], [5, 4, 3]]
    assert found.partition is not None
    assert found.partition.labels.tolist() == [1, -1, 0]
    untouched = QueryBlock(counting([Factor(("years",), np.arange(4))]))
    assert axes.of_campaign(untouched) is untouched


def test_what_is_covered_is_said_where_something_is_not() -> None:
    both = Wanted(
        QueryBlock(counting([Factor(("city", "grade"), np.array([[1, 0, 0], [0, 0, 0]]))])), TARGET
    )
    for ask in (
        lambda: table().answer([both], ANN, Fallback.NONE),
        lambda: table().foreseen([both], Fallback.NONE),
    ):
        with pytest.raises(NotCollected) as refused:
            ask()
        assert refused.value.message == (
            "No respondent of survey was asked about city, grade together."
        )
        assert refused.value.hint == (
            "Ask about columns that are together in one of: (city), (education, grade), "
            "(education, member), (education, years), (grade, member), (grade, years), "
            "(member, years). "
            "With OPTIONS(fallback => 'model'), a model answers, without an interval."
        )


def test_a_pair_that_nobody_has_answered_yet_is_not_said_to_be_unasked() -> None:
    full = table().estimates
    place = next(at for at, one in enumerate(CAMPAIGN.combinations) if one.scope == ("city",))
    some = {place: full.tallies[place]}
    n = sum(one.n_answers for one in some[place])
    early = CollectedTable(CollectionEstimates(CAMPAIGN, some, n))
    assert early.answer([by("city", 2)], ANN, Fallback.NONE).blocks
    with pytest.raises(NotCollected) as refused:
        early.answer([by("grade", 3)], ANN, Fallback.NONE)
    assert refused.value.message == "No respondent of survey has answered about grade yet."
    assert refused.value.hint == "Wait for respondents. Answered until now: (city)."


def test_a_model_answers_where_the_statement_falls_back_on_one() -> None:
    both = Wanted(
        QueryBlock(counting(), Partition(("city", "grade"), np.arange(6).reshape(2, 3))), TARGET
    )
    found = table().answer([both, by("city", 2)], ANN, Fallback.MODEL)
    model, counts = found.blocks
    assert (model.source, counts.source) == ("model", "randomized")
    assert np.isnan([row.half_width(0.95) for row in model.rows]).all()
    summed = np.array([row.value for row in model.rows]).reshape(2, 3).sum(axis=1)
    assert summed == pytest.approx([row.value for row in counts.rows], rel=0.05)
    assert found.notes[-1].startswith("Nobody was asked about city, grade together")
    assert table().foreseen([both], Fallback.MODEL) == [None]


def test_nothing_is_known_before_the_first_answer() -> None:
    empty = CollectedTable(CollectionEstimates(CAMPAIGN, {}, 0))
    with pytest.raises(NotCollected, match=r"until now: nothing yet\.$"):
        raise_explained(empty)
    (total,) = empty.answer([Wanted(QueryBlock(counting()), TARGET)], ANN, Fallback.NONE).blocks
    assert total.rows[0].interval(0.95) == (0, 0)


def raise_explained(empty: CollectedTable) -> None:
    try:
        empty.answer([by("city", 2)], ANN, Fallback.MODEL)
    except NotCollected as refusal:
        raise NotCollected(refusal.explain()) from None


def test_a_model_of_too_many_cells_is_refused() -> None:
    wide = [Attribute(name, tuple(range(300))) for name in ("a", "b")]
    campaign = planned_campaign("c", wide, [(("a",), ("b",))], epsilon_units=2**40)
    rng = np.random.default_rng(1)
    rows = {name: rng.integers(300, size=500) for name in ("a", "b")}
    one = CollectedTable(collected(campaign, rows, rng))
    cells = np.zeros((300, 300), dtype=np.int64)
    cells[0, 0] = 1
    asked = Wanted(QueryBlock(counting([Factor(("a", "b"), cells)])), TARGET)
    with pytest.raises(TooLarge):
        one.answer([asked], ANN, Fallback.MODEL)


def test_notes_say_who_paid_and_how_intervals_were_found() -> None:
    total = Wanted(QueryBlock(counting()), TARGET)
    (who, *_rest), *_ = (table().answer([total], ANN, Fallback.NONE).notes,)
    assert who == (
        "survey: 20000 respondents answered, each at epsilon 2 of their own; to ask is free. "
        "Counts are of these respondents."
    )
    assert not _rest  # the number of respondents is known
    found = table().answer([total, by("grade", 3)], ANN, Fallback.NONE)
    assert found.notes == (who,)
    assert [one.intervals for one in found.blocks] == [(), ("normal",) * 3]
    few = table(60).answer([by("city", 2)], ANN, Fallback.NONE)
    assert [one.intervals for one in few.blocks] == [("exact (binomial)",) * 2]


def test_it_stands_elsewhere_once_somebody_answered() -> None:
    first, again, more = table(), table(), table(20_001)
    assert first.position == again.position
    assert first.position != more.position
    assert first.edition == more.edition
