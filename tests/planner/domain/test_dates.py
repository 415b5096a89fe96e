"""Functions of days on edge days, against Python's calendar and values that PostgreSQL gives."""

import datetime as dt
from collections.abc import Callable

import pytest

from cube.axis import DateAxis
from cube.schema import Schema
from planner.domain.scratchpad import Scratchpad
from tests.planner.domain.test_polynomials import scalar

FIRST, LAST = dt.date(2019, 12, 28), dt.date(2025, 1, 6)  # two leap days, five ends of years
SCHEMA = Schema(
    table="t", axes=(DateAxis(name="d", low=FIRST, high=LAST, null=True),), n_records_max=10
)
SCRATCHPAD = Scratchpad({"t": SCHEMA})
DAYS = [FIRST + dt.timedelta(days=place) for place in range((LAST - FIRST).days + 1)]


def values(sql: str) -> list[object]:
    """The expression on every day; the last level is NULL, and so must be its value."""
    found = SCRATCHPAD.evaluate(scalar(sql), table="t")
    assert found.null.tolist() == [False] * len(DAYS) + [True]
    every: list[object] = found.values[: len(DAYS)].tolist()
    return every


def quarter(day: dt.date) -> int:
    return (day.month + 2) // 3


BY_CALENDAR: dict[str, Callable[[dt.date], object]] = {
    "TO_CHAR(d, 'YYYY-MM')": lambda day: f"{day:%Y-%m}",
    "TO_CHAR(d, 'FMDD.FMMM.YY')": lambda day: f"{day.day}.{day.month}.{day:%y}",
    "TO_CHAR(d, 'Mon DD, YYYY')": lambda day: f"{day:%b %d, %Y}",
    "TO_CHAR(d, 'MON mon')": lambda day: f"{day:%b}".upper() + " " + f"{day:%b}".lower(),
    "TO_CHAR(d, 'Month|')": lambda day: f"{day:%B}".ljust(9) + "|",
    "TO_CHAR(d, 'FMMonth FMMM')": lambda day: f"{day:%B} {day.month}",
    "TO_CHAR(d, 'Day|DY')": lambda day: f"{day:%A}".ljust(9) + "|" + f"{day:%a}".upper(),
    "TO_CHAR(d, 'FMDAY Dy dy')": lambda day: (
        f"{day:%A} ".upper() + f"{day:%a} " + f"{day:%a}".lower()
    ),
    "TO_CHAR(d, 'D ID')": lambda day: f"{day.isoweekday() % 7 + 1} {day.isoweekday()}",
    "TO_CHAR(d, 'YYYY\"Q\"Q')": lambda day: f"{day.year}Q{quarter(day)}",
    "TO_CHAR(d, 'IYYY-\"W\"IW')": lambda day: f"{day:%G-W%V}",
    "TO_CHAR(d, 'DDD WW W')": lambda day: (
        f"{day:%j} {(int(f'{day:%j}') - 1) // 7 + 1:02d} {(day.day - 1) // 7 + 1}"
    ),
    "TO_CHAR(d + INTERVAL '13 hours 5 minutes', 'HH24:MI:SS HH12 PM')": lambda _: "13:05:00 01 PM",
    "DAYNAME(d) || MONTHNAME(d)": lambda day: f"{day:%A%B}",
    "EXTRACT(WEEK FROM d)": lambda day: day.isocalendar().week,
    "EXTRACT(ISOYEAR FROM d)": lambda day: day.isocalendar().year,
    "EXTRACT(ISODOW FROM d)": lambda day: day.isoweekday(),
    "DATE_PART('dow', d)": lambda day: day.isoweekday() % 7,
    "QUARTER(d)": quarter,
    "EXTRACT(EPOCH FROM d)": lambda day: (day - dt.date(1970, 1, 1)).days * 86400.0,
    "DAYOFYEAR(d)": lambda day: int(f"{day:%j}"),
    "LAST_DAY(d) - d": lambda day: _days_to_next_month(day) - 1,
    "MAKE_DATE(YEAR(d)::int, 1, 1) - d": lambda day: 1 - int(f"{day:%j}"),
    "DATE_DIFF('day', d, DATE '2024-02-29')": lambda day: (dt.date(2024, 2, 29) - day).days,
    "DATEDIFF(month, DATE '2020-02-29', d)": lambda day: 12 * (day.year - 2020) + day.month - 2,
    "DATEDIFF(DATE '2021-01-01', d)": lambda day: (dt.date(2021, 1, 1) - day).days,
    "DATE(d + INTERVAL '5 hours') = d": lambda _: True,
    "d < TIMESTAMP '2024-02-29 00:00:01'": lambda day: day <= dt.date(2024, 2, 29),
    "DATE_TRUNC('week', d) = d": lambda day: day.isoweekday() == 1,
    # DuckDB counts buckets of days from a Monday, and of months from the beginning of 2000.
    "d - TIME_BUCKET(INTERVAL '7 days', d)": lambda day: day.weekday(),
    "TIME_BUCKET('10 days', d, DATE '2021-01-01') - d": lambda day: (
        -((day - dt.date(2021, 1, 1)).days % 10)
    ),
    "EXTRACT(MONTH FROM TIME_BUCKET(INTERVAL '3 months', d))": lambda day: (
        3 * (quarter(day) - 1) + 1
    ),
    "DATE(DATE_BIN('10 days', d, TIMESTAMP '2021-01-01')) - d": lambda day: (
        -((day - dt.date(2021, 1, 1)).days % 10)
    ),
    "EXTRACT(HOUR FROM DATE_BIN('18 hours', d, DATE '2020-01-01'))": lambda day: (
        (18 * ((day - dt.date(2020, 1, 1)).days * 24 // 18)) % 24
    ),
}


def _days_to_next_month(day: dt.date) -> int:
    after = (day.replace(day=28) + dt.timedelta(days=4)).replace(day=1)
    return (after - day).days


@pytest.mark.parametrize("sql", BY_CALENDAR)
def test_it_is_what_the_calendar_says(sql: str) -> None:
    assert values(sql) == [BY_CALENDAR[sql](day) for day in DAYS]


@pytest.mark.parametrize(
    ("later", "earlier", "age"),
    [
        # PostgreSQL 16.
        ("2001-04-10", "1957-06-13", "43 years 9 mons 27 days"),
        ("1957-06-13", "2001-04-10", "-43 years -9 mons -27 days"),
        ("2024-03-31", "2024-02-29", "1 mon 2 days"),
        ("2023-03-01", "2020-02-29", "3 years 1 day"),
        ("2026-01-01", "2000-02-29", "25 years 10 mons 1 day"),
    ],
)
def test_an_age_is_that_of_postgres(later: str, earlier: str, age: str) -> None:
    found = SCRATCHPAD.evaluate(
        scalar(f"CAST(AGE(DATE '{later}', DATE '{earlier}') AS VARCHAR)"), table="t"
    )
    assert found.values.item() == age


@pytest.mark.parametrize(
    ("origin", "beginning"),
    [
        # From PostgreSQL's documentation.
        ("2001-01-01", "2020-02-11 15:30:00"),
        ("2001-01-01 00:02:30", "2020-02-11 15:32:30"),
    ],
)
def test_a_bin_is_that_of_postgres(origin: str, beginning: str) -> None:
    for stride in ("INTERVAL '15 minutes'", "'15 minutes'"):
        moment = f"DATE_BIN({stride}, TIMESTAMP '2020-02-11 15:44:17', TIMESTAMP '{origin}')"
        found = SCRATCHPAD.evaluate(scalar(f"CAST({moment} AS VARCHAR)"), table="t")
        assert found.values.item() == beginning


def test_the_year_of_an_age_is_that_of_a_birthday() -> None:
    whole = values("EXTRACT(YEAR FROM AGE(d, DATE '2019-03-01'))")
    assert whole == [day.year - 2019 - ((day.month, day.day) < (3, 1)) for day in DAYS]
