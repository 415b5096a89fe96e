"""Timestamp columns: their levels against a plain loop, and declarations that make no sense."""

import datetime as dt
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from cube.axis import STEPS, TimestampAxis
from cube.classes import tiled
from cube.pieces import runs_of
from cube.query import Partition

MIDNIGHT = dt.datetime(2024, 2, 28)  # noqa: DTZ001 - levels have no zone
LAST = dt.datetime(2024, 3, 1, 23)  # noqa: DTZ001


@pytest.mark.parametrize("step", STEPS)
def test_levels_are_the_beginnings_of_steps(step: str) -> None:
    high = {"minute": LAST + dt.timedelta(minutes=59), "hour": LAST, "day": dt.datetime(2024, 3, 1)}  # noqa: DTZ001
    axis = TimestampAxis(name="at", low=MIDNIGHT, high=high[step], step=step, null=True)
    expected, moment = [], MIDNIGHT
    while moment <= high[step]:
        expected.append(moment)
        moment += STEPS[step]
    assert axis.levels == (*expected, None)
    assert axis.size == len(expected) + 1
    assert [axis.position_of(one) for one in expected] == list(range(len(expected)))
    within = STEPS[step] - dt.timedelta(microseconds=1)
    assert [axis.floor(one + within) for one in expected] == expected
    for outside in (MIDNIGHT - STEPS[step], moment, MIDNIGHT + within):
        assert axis.position_of(outside) is None


def test_two_years_of_minutes_are_counted_without_being_listed() -> None:
    high = dt.datetime(2025, 12, 28, 23, 59)  # noqa: DTZ001
    axis = TimestampAxis(name="at", low=dt.datetime(2024, 1, 1), high=high, step="minute")  # noqa: DTZ001
    assert axis.size == (high - axis.low) // dt.timedelta(minutes=1) + 1
    assert axis.position_of(high) == axis.size - 1
    assert "regular" not in axis.__dict__


@pytest.mark.parametrize(
    "make",
    [
        lambda: TimestampAxis(name="at", low=MIDNIGHT, high=LAST, step="second"),
        lambda: TimestampAxis(name="at", low=LAST, high=MIDNIGHT, step="hour"),
        lambda: TimestampAxis(name="at", low=MIDNIGHT, high=LAST, step="day"),  # inside a day
        lambda: TimestampAxis(name="at", low=MIDNIGHT.date(), high=LAST, step="hour"),  # type: ignore[arg-type]
        lambda: TimestampAxis(
            name="at", low=MIDNIGHT.replace(tzinfo=dt.UTC), high=LAST, step="hour"
        ),
        lambda: TimestampAxis(name="at", low=MIDNIGHT, high=LAST, step="hour", other=LAST),
        lambda: TimestampAxis(name="at", low=MIDNIGHT, high=LAST, step="hour", other="never"),
        lambda: TimestampAxis(
            name="at", low=MIDNIGHT, high=MIDNIGHT + dt.timedelta(days=800), step="minute"
        ),
    ],
)
def test_declarations_that_make_no_sense_are_errors(make: Callable[[], TimestampAxis]) -> None:
    with pytest.raises(ValueError, match="at"):
        make()


def test_cells_in_groups_are_counted_without_being_listed() -> None:
    """Against all cells written out."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        along = tuple(np.sort(rng.integers(3, size=size)) for size in (7, 5, 3))
        along = tuple(np.unique(one, return_inverse=True)[1] for one in along)
        shape = tuple(int(one.max()) + 1 for one in along)
        values = rng.integers(-1, 1, size=shape)
        values.flat[0] = 0
        groups = tiled(tuple(runs_of(one.astype(np.int64)) for one in along), values)
        partition = Partition(("a", "b", "c"), groups)
        cells = list(product(*(one.tolist() for one in along)))
        n_grouped = sum(values[cell] >= 0 for cell in cells)
        assert partition.n_grouped == n_grouped == np.count_nonzero(partition.labels >= 0)
        assert partition.covers_all == (n_grouped == len(cells))
