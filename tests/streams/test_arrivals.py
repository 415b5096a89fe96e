"""Arrivals: who is present in the end by each estimator, against a walk event by event."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.arrivals import Arrivals

# A user, whether they arrived, and whether each of two predicates held.
EVENTS = st.lists(st.tuples(st.integers(0, 6), *(st.booleans(),) * 3), max_size=40)
Event = tuple[int, bool, bool, bool]


def told(events: list[Event]) -> Arrivals:
    ids, present, paid, mobile = zip(*events, strict=True) if events else ((),) * 4
    truths = [np.array(one, dtype=bool) for one in (present, paid, mobile)]
    where = {"paid": truths[1], "mobile": truths[2]}
    return Arrivals(np.array(ids, dtype=np.int64), truths[0], where)


def in_the_end(arrivals: Arrivals, predicate: str | None) -> dict[int, bool]:
    states = arrivals.counted(predicate).last_states
    return {int(one): present for ids, present in states for one in ids}


@given(EVENTS)
def test_an_estimator_counts_its_arrivals_and_every_departure(events: list[Event]) -> None:
    arrivals = told(events)
    walked: list[dict[int, bool]] = [{}, {}, {}]
    for user, arrived, *held in events:
        for state, is_counted in zip(walked, (True, *held), strict=True):
            if is_counted or not arrived:
                state[user] = arrived
    assert [in_the_end(arrivals, one) for one in (None, "paid", "mobile")] == walked
    assert arrivals.has_departures == (not all(arrived for _, arrived, *_ in events))


@given(EVENTS)
def test_one_truth_for_all_is_that_truth_for_each(events: list[Event]) -> None:
    ids = told(events).ids
    for present in (True, False):
        for holds in (True, False):
            one = Arrivals(ids, present, {"paid": holds})
            each = Arrivals(ids, np.full(ids.shape, present), {"paid": np.full(ids.shape, holds)})
            for predicate in (None, "paid", "mobile"):
                assert in_the_end(one, predicate) == in_the_end(each, predicate)


def test_a_user_is_in_one_of_the_last_states() -> None:
    """Or a bit would be drawn twice: a second draw of one event is not in the proof."""
    events = [(1, True, True, False), (1, False, True, True), (2, True, True, False)] * 3
    for predicate in (None, "paid", "mobile"):
        ids = list(chain(*(one for one, _ in told(events).counted(predicate).last_states)))
        assert predicate is None or len(ids) == len(set(ids))


def test_a_truth_is_for_each_user_or_for_all() -> None:
    for wrong in (
        {"present": np.array([True])},
        {"where": {"paid": np.array([True, False, True])}},
    ):
        with pytest.raises(ValueError, match="one bool for each"):
            Arrivals(np.array([1, 2]), **wrong)
