"""CURRENT_DATE and NOW() are constants of the moment of planning, the same one for a statement."""

import datetime as dt
from collections.abc import Iterator

import pytest

from cube.refusals import Refused
from planner.planner import Planner
from tests.planner.people import SCHEMA, TARGET, block_of, part_of, planner
from tests.planner.test_sharing import terms_of

NOON = dt.datetime(2020, 1, 31, 12, 30, 15, 900, tzinfo=dt.UTC)


def at(*moments: dt.datetime) -> Planner:
    """A planner whose clock says these moments, one after the other."""
    told: Iterator[dt.datetime] = iter(moments)
    return Planner({"people": SCHEMA}, {"people": TARGET}, clock=lambda: next(told))


SAME = [
    ("joined >= CURRENT_DATE", "joined >= DATE '2020-01-31'"),
    ("joined < NOW()", "joined < TIMESTAMP '2020-01-31 12:30:15'"),
    ("joined < LOCALTIMESTAMP", "joined < TIMESTAMP '2020-01-31 12:30:15'"),
    ("joined >= CURRENT_DATE - INTERVAL '2 days'", "joined >= DATE '2020-01-29'"),
    ("joined >= CURRENT_TIMESTAMP + INTERVAL '-1 month'", "joined > DATE '2019-12-31'"),
    ("joined >= DATE_TRUNC('month', NOW())", "joined >= DATE '2020-01-01'"),
    ("joined > DATEADD(day, -1, CURRENT_DATE)", "joined > DATE '2020-01-30'"),
    ("joined > DATE_SUB(CURRENT_DATE, INTERVAL 1 DAY)", "joined > DATE '2020-01-30'"),
    ("AGE(joined) > INTERVAL '1 day'", "AGE(DATE '2020-01-31', joined) > INTERVAL '1 day'"),
    ("DATEDIFF(CURRENT_DATE, joined) > 1", "DATE '2020-01-31' - joined > 1"),
    # Half a day ahead of UTC it is tomorrow; what is on the clock of a zone is put on that of UTC.
    (
        "joined < NOW() AT TIME ZONE 'Pacific/Kiritimati'",
        "joined < TIMESTAMP '2020-02-01 02:30:15'",
    ),
    ("joined < (NOW() AT TIME ZONE 'Pacific/Kiritimati')::date", "joined < DATE '2020-02-01'"),
    (
        "joined < (TIMESTAMPTZ '2020-01-31 12:30Z' AT TIME ZONE 'Pacific/Kiritimati')::date",
        "joined < DATE '2020-02-01'",
    ),
    (
        "joined < (LOCALTIMESTAMP AT TIME ZONE 'Pacific/Kiritimati')::date",
        "joined < DATE '2020-01-30'",
    ),
]


@pytest.mark.parametrize(("read", "written"), SAME)
def test_the_clock_is_a_constant(read: str, written: str) -> None:
    one = block_of(at(NOON).plan(f"SELECT COUNT(*) FROM people WHERE {read}"))  # noqa: S608 - the test's
    other = block_of(planner().plan(f"SELECT COUNT(*) FROM people WHERE {written}"))  # noqa: S608 - the test's
    assert terms_of(one.query) == terms_of(other.query)


def test_every_reading_in_a_statement_is_of_one_moment() -> None:
    workload = at(NOON).plan("SELECT NOW() AS a, NOW() AS b, CURRENT_DATE, AGE(DATE '2020-01-01')")
    assert workload.outer is not None
    assert workload.outer.sql.count("2020-01-31 12:30:15") == 2
    assert '"current_date"' in workload.outer.sql


def test_a_plan_is_of_its_moment() -> None:
    tomorrow = NOON + dt.timedelta(days=1)
    used = at(NOON, NOON + dt.timedelta(minutes=5), tomorrow)
    sql = "SELECT COUNT(*) FROM people WHERE joined > CURRENT_DATE"
    first, again, later = (used.plan(sql) for _ in range(3))
    assert again is first
    assert later is not first
    assert first.moment == dt.datetime(2020, 1, 31, tzinfo=dt.UTC)
    assert later.moment == dt.datetime(2020, 2, 1, tzinfo=dt.UTC)
    assert later.notes == ("CURRENT_DATE and NOW() were evaluated as 2020-02-01 00:00:00 UTC.",)


def test_a_moment_is_named_only_if_the_clock_was_read() -> None:
    used = at(NOON)
    assert used.plan("SELECT age, COUNT(*) FROM people GROUP BY age").moment is None
    assert used.plan("SELECT COUNT(*) AS now FROM people").moment is None


def test_today_may_be_a_day_that_nobody_has() -> None:
    workload = at(dt.datetime(2031, 1, 1, tzinfo=dt.UTC)).plan(
        "SELECT COUNT(*) FROM people WHERE joined = CURRENT_DATE"
    )
    assert block_of(workload).query.is_constant
    assert part_of(workload).n_rows == 1


@pytest.mark.parametrize("written", ["CURRENT_TIME", "LOCALTIME", "CLOCK_TIMESTAMP()"])
def test_other_readings_of_the_clock_are_refused(written: str) -> None:
    with pytest.raises(Refused):
        at(NOON).plan(f"SELECT COUNT(*) FROM people WHERE {written} IS NULL")  # noqa: S608 - the test's
