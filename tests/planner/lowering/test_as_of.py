"""AS OF on a growing table is a condition on the axis along which it grows, and nothing else."""

import datetime as dt

import pytest

from cube.axis import Axis, CategoryAxis, DateAxis, IntegerAxis, TimestampAxis
from cube.encoding import fingerprint
from cube.refusals import OutsideDomain, UnsupportedSql
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.planner import Planner
from planner.workload import RequestedTarget

DAYS = DateAxis(name="day", low=dt.date(2026, 1, 1), high=dt.date(2026, 3, 31))
MOMENTS = TimestampAxis(
    name="day",
    low=dt.datetime.fromisoformat("2026-01-01T00:00"),
    high=dt.datetime.fromisoformat("2026-01-31T23:00"),
    step="hour",
)
NUMBERS = IntegerAxis(name="day", low=0, high=50)
CITY = CategoryAxis(name="city", values=("Bergen", "Oslo"))


def planner(axis: Axis, *, grows: bool = True) -> Planner:
    schema = Schema(
        table="orders", axes=(axis, CITY), n_records_max=100, grows="day" if grows else None
    )
    return Planner({"orders": schema}, {"orders": AccuracyTarget(half_width=10.0, confidence=0.95)})


def blocks(plans: Planner, sql: str) -> list[str]:
    return [
        fingerprint(block)
        for part in plans.plan(sql).parts
        for aggregate in part.aggregates
        for block in aggregate.blocks
    ]


@pytest.mark.parametrize(
    ("axis", "moment", "condition"),
    [
        (DAYS, "'2026-02-15'", "day <= '2026-02-15'"),
        (DAYS, "DATE '2026-02-15'", "day <= '2026-02-15'"),
        (DAYS, "DATE '2026-02-15' - INTERVAL '3 days'", "day <= '2026-02-12'"),
        (MOMENTS, "'2026-01-15'", "day < '2026-01-16'"),
        (MOMENTS, "TIMESTAMP '2026-01-15 07:00:00'", "day <= '2026-01-15 07:00:00'"),
        (NUMBERS, "17", "day <= 17"),
    ],
)
@pytest.mark.parametrize("alias", ["", " AS o", " o"])
def test_it_is_a_condition(axis: Axis, moment: str, condition: str, alias: str) -> None:
    plans = planner(axis)
    sql = "SELECT city, COUNT(*) FROM orders{} {} GROUP BY city"
    found = blocks(plans, sql.format(f" AS OF {moment}{alias}", ""))
    assert found == blocks(plans, sql.format(alias, f"WHERE {condition}"))
    more = sql.format(f" AS OF {moment}{alias}", "WHERE city = 'Oslo'")
    assert blocks(plans, more) == blocks(
        plans, sql.format(alias, f"WHERE city = 'Oslo' AND {condition}")
    )


def test_two_moments_of_one_table_are_two_tables() -> None:
    sql = (
        "SELECT (SELECT COUNT(*) FROM orders AS OF '2026-02-28') "
        "- (SELECT COUNT(*) FROM orders AS OF '2026-01-31') AS n"
    )
    plans = planner(DAYS)
    assert sorted(blocks(plans, sql)) == sorted(
        blocks(plans, "SELECT COUNT(*) FROM orders WHERE day <= '{}'".format(day))[0]  # noqa: S608, UP032
        for day in ("2026-01-31", "2026-02-28")
    )


def test_a_name_may_still_be_called_of() -> None:
    assert blocks(planner(DAYS), "SELECT COUNT(*) FROM orders AS of WHERE of.city = 'Oslo'")


def test_rows_that_are_not_there_yet_are_refused() -> None:
    with pytest.raises(OutsideDomain, match="through day 2026-03-31"):
        planner(DAYS).plan("SELECT COUNT(*) FROM orders AS OF '2026-04-01'")


def test_a_table_that_does_not_grow_has_no_moments() -> None:
    with pytest.raises(UnsupportedSql, match="does not grow"):
        planner(DAYS, grows=False).plan("SELECT COUNT(*) FROM orders AS OF '2026-02-01'")


@pytest.mark.parametrize(
    "sql",
    [
        "WITH o AS (SELECT * FROM orders) SELECT COUNT(*) FROM o AS OF '2026-02-01'",
        "SELECT COUNT(*) FROM orders FOR SYSTEM_TIME BETWEEN '2026-01-01' AND '2026-02-01'",
    ],
)
def test_no_moment_is_left_out_of_account(sql: str) -> None:
    with pytest.raises(UnsupportedSql):
        planner(DAYS).plan(sql)


@pytest.mark.parametrize(
    ("axis", "moment", "written"),
    [
        (DAYS, "2026-02-15", "'2026-02-15'"),
        (MOMENTS, "2026-01-15 07:00", "TIMESTAMP '2026-01-15 07:00:00'"),
        (NUMBERS, "17", "17"),
    ],
)
def test_a_session_has_a_moment(axis: Axis, moment: str, written: str) -> None:
    plans, sql = planner(axis), "SELECT city, COUNT(*) FROM orders{} GROUP BY city"
    found = plans.plan(sql.format(""), RequestedTarget(as_of=moment))
    (aggregate,) = found.parts[0].aggregates
    assert [fingerprint(one) for one in aggregate.blocks] == blocks(
        plans, sql.format(f" AS OF {written}")
    )


def test_a_table_s_own_moment_counts() -> None:
    plans = planner(DAYS)
    found = plans.plan(
        "SELECT COUNT(*) FROM orders AS OF '2026-01-31'", RequestedTarget(as_of="2026-02-15")
    )
    (aggregate,) = found.parts[0].aggregates
    assert [fingerprint(one) for one in aggregate.blocks] == blocks(
        plans, "SELECT COUNT(*) FROM orders WHERE day <= '2026-01-31'"
    )


def test_a_session_s_moment_is_for_tables_that_grow() -> None:
    target = RequestedTarget(as_of="2026-02-15")
    plans = planner(DAYS, grows=False)
    assert plans.plan("SELECT COUNT(*) FROM orders", target).parts
    with pytest.raises(OutsideDomain, match="not a value of day"):
        planner(NUMBERS).plan("SELECT COUNT(*) FROM orders", target)
