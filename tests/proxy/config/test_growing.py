"""Levels that a person names: a day means all of it, whatever steps a column has."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.axis import Axis, DateAxis, IntegerAxis
from cube.refusals import InvalidRequest
from cube.timestamps import TimestampAxis
from proxy.config.growing import levels_through, read_level

AXES: dict[str, Axis] = {
    "date": DateAxis(name="at", low=dt.date(2026, 1, 30), high=dt.date(2026, 3, 2)),
    **{
        step: TimestampAxis(
            name="at",
            low=dt.datetime.fromisoformat(low),
            high=dt.datetime.fromisoformat(high),
            step=step,
        )
        for step, low, high in (
            ("day", "2026-01-30", "2026-03-02"),
            ("hour", "2026-01-30T21:00", "2026-03-02T05:00"),
            ("minute", "2026-01-30T21:00", "2026-02-02T05:59"),
        )
    },
}
DAYS = st.dates(dt.date(2026, 1, 28), dt.date(2026, 3, 4))


def named(axis: Axis, first: str, last: str) -> list[object]:
    start, end = levels_through(axis, read_level(axis, first), read_level(axis, last))
    return list(axis.regular[start:end])


def day_of(level: object) -> dt.date:
    if isinstance(level, dt.datetime):
        return level.date()
    assert isinstance(level, dt.date)
    return level


@given(st.sampled_from(sorted(AXES)), DAYS, DAYS)
def test_days_are_all_of_their_levels(kind: str, one: dt.date, other: dt.date) -> None:
    axis, first, last = AXES[kind], min(one, other), max(one, other)
    inside = [level for level in axis.regular if first <= day_of(level) <= last]
    assert named(axis, str(first), str(last)) == inside


@given(DAYS, st.integers(0, 23), st.integers(0, 50), st.integers(0, 59))
def test_moments_are_the_steps_that_they_are_in(
    day: dt.date, hour: int, n_hours: int, minute: int
) -> None:
    axis = AXES["hour"]
    first = dt.datetime.combine(day, dt.time(hour, minute))
    last = first + dt.timedelta(hours=n_hours)
    inside = [
        level
        for level in axis.regular
        if isinstance(level, dt.datetime) and first.replace(minute=0) <= level <= last
    ]
    assert named(axis, first.isoformat(), last.isoformat()) == inside


def test_numbers_are_themselves() -> None:
    axis = IntegerAxis(name="batch", low=5, high=20)
    assert named(axis, "7", "9") == [7, 8, 9]
    assert named(axis, "1", "5") == [5]
    assert named(axis, "20", "25") == [20]
    assert named(axis, "21", "25") == []


@pytest.mark.parametrize(
    ("kind", "first", "last", "says"),
    [
        ("date", "2026-02-03", "2026-02-02", "comes after"),
        ("hour", "2026-02-03", "2026-02-02T23:59", "comes after"),
        ("date", "2026-02-03T05", "2026-02-04", "no level"),
        ("hour", "2026-02-03T05:00+01:00", "2026-02-04", "without an offset"),
    ],
)
def test_what_is_no_period_is_refused(kind: str, first: str, last: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        named(AXES[kind], first, last)
