"""Levels that a person names: a day means all of it, whatever steps a column has."""

import datetime as dt
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.axis import STEPS, Axis, DateAxis, IntegerAxis, TimestampAxis
from cube.refusals import InvalidRequest
from cube.schema import Schema
from proxy.config.columns import Closing, levels_through, read_level

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
        ("date", "2026-02-03T05", "2026-02-04", "not a level"),
        ("hour", "2026-02-03T05:00+01:00", "2026-02-04", "without an offset"),
    ],
)
def test_what_is_no_period_is_refused(kind: str, first: str, last: str, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        named(AXES[kind], first, last)


ZONES = {
    "Europe/Oslo": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "Australia/Lord_Howe": ("2026-04-04T15:00", "2026-10-03T15:30"),  # by half an hour
    "America/St_Johns": ("2026-03-08T05:30", "2026-11-01T04:30"),
    "Pacific/Chatham": ("2026-04-04T14:00", "2026-09-26T14:00"),
    "Antarctica/Troll": ("2026-03-29T01:00", "2026-10-25T01:00"),  # by two hours
    "Asia/Kathmandu": ("1985-12-31T18:30", "2026-06-01T00:00"),
    "Pacific/Apia": ("2011-12-30T10:00",),  # a day was left out
    "Pacific/Kwajalein": ("1993-08-21T12:00",),
}


def moments_around(change: dt.datetime) -> list[dt.datetime]:
    minutes = (-1500, -181, -121, -120, -91, -61, -60, -59, -31, -30, -29, -1, 0, 1, 29, 30, 31)
    after = (45, 59, 60, 61, 89, 90, 119, 120, 121, 181)
    return [change + dt.timedelta(minutes=one) for one in (*minutes, *after)]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["minute", "hour", "day"])
@pytest.mark.parametrize(("zone", "changes"), ZONES.items())
def test_no_moment_to_come_is_in_a_closed_step_and_every_other_step_is_closed(
    zone: str, changes: tuple[str, ...], step: str
) -> None:
    """By another library's zones, minute by minute: each level that is over, and no other."""
    clock = zoneinfo.ZoneInfo(zone)
    width = STEPS[step]
    for written in changes:
        change = dt.datetime.fromisoformat(written).replace(tzinfo=dt.UTC)
        low = change.replace(hour=0, minute=0, tzinfo=None) - dt.timedelta(days=3)
        axis = TimestampAxis(
            name="at", low=low, high=low + dt.timedelta(days=7), step=step, time_zone=zone
        )
        schema = Schema(table="t", axes=(axis,), n_records_max=10, grows="at")
        closing = Closing(after=dt.timedelta(hours=3))
        for past in moments_around(change):
            found = closing.horizon(schema, past + dt.timedelta(hours=3))
            to_come = (past + dt.timedelta(minutes=n) for n in range(26 * 60))
            first = min(one.astimezone(clock).replace(tzinfo=None) for one in to_come)
            assert found == max(0, (first - low) // width)


@pytest.mark.parametrize(
    ("zone", "day", "looks", "closed"),
    [
        # 02:00 to 03:00 is at 0 o'clock UTC, and again at 1.
        (
            "Europe/Oslo",
            "2026-10-25",
            "23:59 00:00 00:59 01:00 01:01 02:00",
            "01:58 01:59 01:59 01:59 02:00 02:59",
        ),
        ("Europe/Oslo", "2026-03-29", "00:59 01:00", "01:58 02:59"),
        # 01:30 to 02:00 is at half past 14 UTC, and again at 15.
        (
            "Australia/Lord_Howe",
            "2026-04-04",
            "14:29 14:59 15:00 15:01 15:30",
            "01:28 01:29 01:29 01:30 01:59",
        ),
    ],
)
def test_what_comes_twice_is_closed_once_it_came_twice(
    zone: str, day: str, looks: str, closed: str
) -> None:
    low = dt.datetime.fromisoformat(day) - dt.timedelta(days=2)
    axis = TimestampAxis(
        name="at", low=low, high=low + dt.timedelta(days=4), step="minute", time_zone=zone
    )
    schema = Schema(table="t", axes=(axis,), n_records_max=10, grows="at")
    closing = Closing(after=dt.timedelta(hours=1))
    last = []
    for look in looks.split():
        at = dt.datetime.fromisoformat(f"{day}T{look}+00:00")
        at -= dt.timedelta(days=1) if look.startswith("23") else dt.timedelta()
        horizon = closing.horizon(schema, at + dt.timedelta(hours=1))
        last.append(str(axis.regular[horizon - 1])[11:16])
    assert " ".join(last) == closed
