"""AS OF on a table whose data was replaced chooses the generation that there was."""

import datetime as dt

import pytest

from cube.axis import CategoryAxis
from cube.refusals import OutsideDomain, UnsupportedSql
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.lowering.as_of import TableGenerations
from planner.planner import Planner
from planner.workload import RequestedTarget

CITY = CategoryAxis(name="city", values=("Bergen", "Oslo"))
NAMES = ("customers, generation 1", "customers, generation 2", "customers")
BEGUN = tuple(dt.datetime(2026, month, 10, 9, 30, tzinfo=dt.UTC) for month in (8, 9, 10))
NOW = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def planner() -> Planner:
    schemas = {name: Schema(table=name, axes=(CITY,), n_records_max=100) for name in NAMES}
    return Planner(
        schemas,
        dict.fromkeys(NAMES, AccuracyTarget(half_width=2.0, confidence=0.95, epsilon_cap=None)),
        generations={"customers": TableGenerations(NAMES, BEGUN, clock=lambda: NOW)},
    )


def table_of(planner: Planner, as_of: str, session: str | None = None) -> str:
    sql = f"SELECT COUNT(*) FROM customers {as_of} WHERE city = 'Oslo'"  # noqa: S608 - a test's own
    (part,) = planner.plan(sql, RequestedTarget(as_of=session)).parts
    return part.table


@pytest.mark.parametrize(
    ("moment", "place"),
    [
        ("'2026-08-10'", 0),
        ("'2026-09-09'", 0),
        ("'2026-09-10T09:29'", 0),
        ("'2026-09-10T09:30:00'", 1),
        ("'2026-09-10T11:29:00+02:00'", 0),
        ("DATE '2026-09-10'", 1),
        ("TIMESTAMP '2026-10-10 09:00'", 1),
        ("'2026-11-23'", 2),
        ("'2026-11-23T18:00'", 2),
    ],
)
def test_the_last_generation_that_had_begun_is_meant(
    planner: Planner, moment: str, place: int
) -> None:
    assert table_of(planner, f"AS OF {moment}") == NAMES[place]
    assert table_of(planner, f"AS OF {moment} AS c") == NAMES[place]


def test_a_session_says_it_for_tables_that_do_not(planner: Planner) -> None:
    assert table_of(planner, "") == "customers"
    assert table_of(planner, "", "2026-08-31") == NAMES[0]
    assert table_of(planner, "AS OF '2026-09-30'", "2026-08-31") == NAMES[1]


@pytest.mark.parametrize(
    ("moment", "error", "says"),
    [
        ("'2026-08-09'", OutsideDomain, "served since 2026-08-10"),
        ("'2026-11-24'", OutsideDomain, "in the future"),
        ("'soon'", UnsupportedSql, "not a date"),
        ("7", UnsupportedSql, "not a date"),
    ],
)
def test_other_moments_are_refused(
    planner: Planner, moment: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        table_of(planner, f"AS OF {moment}")


@pytest.mark.parametrize("moment", ["7", "soon"])
def test_a_moment_of_a_session_that_is_no_day_is_refused(planner: Planner, moment: str) -> None:
    with pytest.raises(OutsideDomain, match="not a date"):
        table_of(planner, "", moment)


def test_a_table_without_a_moment_for_each_generation_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="needs a moment"):
        TableGenerations(NAMES, BEGUN[:2])
