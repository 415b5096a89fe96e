"""Intervals about the nearest possible value: they cover, and are as wide as the noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.block import Partition, QueryBlock
from cube.query import counting
from cube.target import AccuracyTarget
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from planner.fallback import Fallback
from planner.workload import Wanted
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.collected import CollectedTable
from proxy.tables.possible import PossiblePosterior
from tests.support.respondents import campaign_of, collected

LAW = law_of_noise(np.empty(0), gaussian=10.0)
N = 4000
CAMPAIGN = campaign_of(1)


@given(
    value=st.floats(-200, 200),
    ends=st.tuples(st.floats(-100, 100), st.floats(-100, 100)).map(sorted),
    confidence=st.floats(0.01, 0.999),
)
def test_it_holds_what_the_cut_interval_holds_and_is_as_wide_as_the_noise(
    value: float, ends: list[float], confidence: float
) -> None:
    low, high = PossiblePosterior(value, LAW, low=ends[0], high=ends[1]).interval(confidence)
    cut = Posterior(value, LAW, low=ends[0], high=ends[1])
    cut_low, cut_high = cut.interval(confidence)
    assert ends[0] <= low <= cut_low <= cut_high <= high <= ends[1]
    assert high - low >= min(LAW.half_width(confidence), ends[1] - ends[0]) * (1 - 1e-9)
    if ends[0] <= value <= ends[1]:
        assert (low, high) == (cut_low, cut_high)


@pytest.mark.parametrize("truth", [0.0, 3.0, 50.0])
def test_it_covers_at_least_as_often_as_it_says(truth: float) -> None:
    """At an end of the range half of the errors are harmless; within, nothing is lost."""
    errors = np.random.default_rng(1).normal(0, 10, 20_000)
    ends = [PossiblePosterior(truth + e, LAW, low=0, high=1000).interval(0.9) for e in errors]
    covered = np.mean([low <= truth <= high for low, high in ends])
    assert covered >= 0.9 - 4.5 * (0.09 / 20_000) ** 0.5
    assert np.diff(ends).min() >= LAW.half_width(0.9)  # no error makes it a point


def of_few_schools(seed: int) -> CollectedTable:
    """Respondents nobody of whom has been to school, so that the estimate is often far below 0."""
    rng = np.random.default_rng(seed)
    rows = {one.name: np.full(N, len(one.levels) - 1) for one in CAMPAIGN.attributes}
    return CollectedTable(collected(CAMPAIGN, rows, rng))


@pytest.fixture(scope="module")
def far_below() -> CollectedTable:
    """One whose interval, uncut, is below 0 as a whole: one in forty is."""
    for seed in range(400):
        table = of_few_schools(seed)
        groups = QueryBlock(counting(), Partition(("education",), np.arange(3)))
        school, *_ = table.estimates.answer(groups)
        if school.interval(0.95)[1] < 0:
            return table
    raise AssertionError("no estimate is far below 0")


def test_what_is_far_below_zero_is_not_certain_in_sql(far_below: CollectedTable) -> None:
    """Of a count and of a share: the share is shown as 0, and is not known to be 0 either."""
    count = "COUNT(*) FILTER (WHERE education = 'school')"
    engine = Engine({}, own={"survey": far_below})
    for sql, size, is_cut in ((count, N, False), (f"{count} * 1.0 / COUNT(*)", 1, True)):
        found = engine.answer(QueryRequest(sql=f"SELECT {sql} AS n FROM survey"))  # noqa: S608 - a test's own text
        assert found.receipt is not None
        (column,) = found.receipt.columns
        (low,), (high,) = column.low, column.high
        assert low == 0
        assert high >= 0.02 * size
        (value,) = found.data.column("n").to_pylist()
        assert (value == 0) if is_cut else (value < -0.02 * size)


def test_a_test_has_no_interval_and_no_word_of_one(far_below: CollectedTable) -> None:
    engine = Engine({}, own={"survey": far_below})
    test = "SELECT DP_CHI2_TEST(grade, member) FROM survey"
    counts = "SELECT COUNT(*) FILTER (WHERE member) AS n FROM survey"
    for sql, is_said in ((test, False), (counts, True)):
        receipt = engine.answer(QueryRequest(sql=sql)).receipt
        assert receipt is not None
        assert ("Intervals: normal." in receipt.notes) == is_said
        assert any("Intervals" in note for note in receipt.notes) == is_said


def test_foreseen_widths_are_those_of_the_noise(far_below: CollectedTable) -> None:
    groups = QueryBlock(counting(), Partition(("education",), np.arange(3)))
    wanted = Wanted(groups, AccuracyTarget(half_width=1.0, confidence=0.95))
    uncut = [one.law.half_width(0.95) for one in far_below.estimates.answer(groups)]
    assert far_below.foreseen([wanted], Fallback.NONE) == [max(uncut)]
