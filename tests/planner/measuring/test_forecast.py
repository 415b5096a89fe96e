"""Forecasts: a forecast made in steps is that of a history with the whole plan in it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.ledger.history.table_history import TableHistory
from cube.axis import CategoryAxis
from cube.encoding import fingerprint
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from planner.measuring.weighing import Forecast
from tests.support.cubes import SIZES, blocks
from tests.support.examples import examples

TARGET = AccuracyTarget(half_width=1e-3, confidence=0.9)  # never met: every way is tried
SCHEMA = Schema(
    table="t",
    axes=tuple(
        CategoryAxis(name=name, values=tuple(map(str, range(size)))) for name, size in SIZES.items()
    ),
    n_records_max=1000,
)
WEIGHTS = st.integers(2**36, 2**41).map(Weight)


def measured_blocks() -> st.SearchStrategy[QueryBlock]:
    return (
        blocks(whole=True)
        .map(lambda block: block.primitive[0])
        .filter(lambda block: not block.query.is_constant)
    )


def bought_together(least: int, most: int) -> st.SearchStrategy[list[tuple[QueryBlock, Weight]]]:
    """Different blocks with weights, as in a plan."""
    return st.lists(
        st.tuples(measured_blocks(), WEIGHTS),
        min_size=least,
        max_size=most,
        unique_by=lambda one: fingerprint(one[0]),
    )


def planned(block: QueryBlock, weight: Weight) -> PlannedMeasurement:
    return PlannedMeasurement(block, weight)


FORESEEN = TableHistory().raises.foreseen


def heavier(weight: Weight, by: int) -> Weight:
    return Weight(weight.units + by)


@settings(deadline=None, max_examples=examples(60))
@given(
    plan=bought_together(2, 5),
    asked=measured_blocks(),
    n_first=st.integers(0, 5),
    raised=st.integers(0, 2**41),
)
def test_a_plan_added_in_steps_gives_the_same_forecast_as_at_once(
    plan: list[tuple[QueryBlock, Weight]], asked: QueryBlock, n_first: int, raised: int
) -> None:
    forecast = Forecast(Estimator(SCHEMA), FORESEEN)
    lighter = [planned(block, weight) for block, weight in plan]
    whole = [planned(block, heavier(weight, raised)) for block, weight in plan]
    begun = forecast.with_planned(lighter[:n_first])
    begun.half_width(asked, TARGET)
    in_steps = begun.with_planned(whole).half_width(asked, TARGET)
    assert in_steps == pytest.approx(forecast.after(whole).half_width(asked, TARGET), rel=1e-7)


@settings(deadline=None, max_examples=examples(60))
@given(
    plan=bought_together(1, 4),
    bought=bought_together(0, 3),
    asked=measured_blocks(),
    rises=st.lists(st.integers(0, 2**41), min_size=1, max_size=3),
)
def test_rising_forecasts_agree_with_those_of_each_plan(
    plan: list[tuple[QueryBlock, Weight]],
    bought: list[tuple[QueryBlock, Weight]],
    asked: QueryBlock,
    rises: list[int],
) -> None:
    forecast = Forecast(Estimator(SCHEMA), FORESEEN).after([planned(*one) for one in bought])
    forecast.half_width(asked, TARGET)
    rising = forecast.rising(asked, TARGET, [planned(*one) for one in plan])
    for rise in rises:
        step = [planned(block, heavier(weight, rise)) for block, weight in plan]
        said = rising.half_width(step)
        assert said == pytest.approx(forecast.after(step).half_width(asked, TARGET), rel=1e-7)
        assert said <= rising.at_lightest * (1 + 1e-6)


def test_a_block_that_stands_apart_rises_independently_of_the_rest_of_a_plan() -> None:
    """The closed form is taken there, and is that of the history with both in it."""
    ((first, n_first), (second, n_second), *_) = SIZES.items()
    one = QueryBlock(counting([Factor((first,), np.arange(n_first) % 2)]))
    other = QueryBlock(counting(), Partition((second,), np.arange(n_second)))
    beside = Forecast(Estimator(SCHEMA), FORESEEN).with_planned([planned(other, Weight(2**40))])
    beside.half_width(one, TARGET)
    lightest = [planned(other, Weight(2**40)), planned(one, Weight(1))]
    plan = [planned(other, Weight(2**40)), planned(one, Weight(2**39))]
    rising = beside.rising(one, TARGET, lightest)
    assert rising.at_lightest == np.inf
    assert rising.half_width(plan) == pytest.approx(2 * np.log(10), rel=1e-5)
    assert rising.half_width(plan) == beside.half_width(one, TARGET, plan)
