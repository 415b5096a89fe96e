"""How long the stages of a call take: each its own time, and none known better than its bucket."""

import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.monitoring.events import Stage
from proxy.monitoring.metrics import BEYOND, BUCKETS, Metrics, edge_of
from tests.support.watched import TABLES, told, value

CANARY = "8675309"


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_stage_takes_its_time_from_the_one_around_it() -> None:
    clock = Clock()
    metrics = Metrics(TABLES, clock)
    with metrics.stage(Stage.WIRE):
        clock.now += 0.0025
        with metrics.stage(Stage.LOOK):
            clock.now += 0.18
            with metrics.stage(Stage.PLAN):
                clock.now += 4
        with metrics.stage(Stage.CHARGE):
            clock.now += 0.04
    with metrics.stage(Stage.PRICE):
        clock.now += 0.009
    sums = {stage: value(metrics, "tacit_stage_seconds_sum", stage=stage) for stage in Stage}
    assert sums == {"wire": 0.003, "look": 0.2, "plan": 5, "charge": 0.05, "price": 0.01} | {
        "measure": 0,
        "outer": 0,
        "wait": 0,
    }


def test_a_stage_that_fails_is_timed_all_the_same() -> None:
    metrics = Metrics(TABLES)
    with pytest.raises(KeyError), metrics.stage(Stage.MEASURE):
        raise KeyError(CANARY)
    assert value(metrics, "tacit_stage_seconds_count", stage="measure") == 1


def test_stages_of_different_threads_take_nothing_from_one_another() -> None:
    clock = Clock()
    metrics = Metrics(TABLES, clock)

    def look() -> None:
        with metrics.stage(Stage.LOOK):
            clock.now += 0.2

    with metrics.stage(Stage.WIRE):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert value(metrics, "tacit_stage_seconds_sum", stage="wire") == 0.2


@given(st.lists(st.floats(0, 1000), max_size=30))
def test_no_time_is_known_better_than_by_its_bucket(times: list[float]) -> None:
    """Two runs that agree on every bucket agree on every figure."""
    texts = set()
    for moved in (times, [edge_of(seconds) for seconds in times]):
        clock = Clock()
        metrics = Metrics(TABLES, clock)
        for seconds in moved:
            clock.now = 0.0  # so that no addition moves a time off its edge
            with metrics.stage(Stage.MEASURE):
                clock.now = seconds
        lines = told(metrics).splitlines()
        texts.add("\n".join(line for line in lines if "_created" not in line))
    assert len(texts) == 1


@given(st.floats(0, 29))
def test_a_time_lies_in_the_bucket_it_is_said_to(seconds: float) -> None:
    edge = edge_of(seconds)
    place = BUCKETS.index(edge)
    assert seconds <= edge
    assert place == 0 or BUCKETS[place - 1] < seconds


def test_bucket_edges_rise_and_are_near_one_another() -> None:
    assert BUCKETS[-1] < BEYOND
    for lower, upper in pairwise(BUCKETS):
        assert lower < upper <= 3 * lower
