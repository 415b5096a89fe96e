"""One reader of intervals, which says what PostgreSQL says."""

import random

import psycopg
import pytest

from planner.sql.moment_texts import IntervalValue, NoInterval, read_interval
from tests.support.postgres import PostgresServer

N_TEXTS = 3000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 day 12:00:00", (0, 1, 43_200_000_000)),
        ("3 months ago", (-3, 0, 0)),
        ("- 1 month", (-1, 0, 0)),
        ("P1M", (1, 0, 0)),
        ("PT1M", (0, 0, 60_000_000)),
        ("P0001-02-03T04:05:06", (14, 3, 14_706_000_000)),
        ("@ 1 year 2 mons -3 days", (14, -3, 0)),
        ("1-2", (14, 0, 0)),
        ("3 4:05:06", (0, 3, 14_706_000_000)),
        ("1.5 months", (1, 15, 0)),
        ("1.5 weeks", (0, 10, 43_200_000_000)),
        ("2 decades", (240, 0, 0)),
        ("-1 day +02:03", (0, -1, 7_380_000_000)),
    ],
)
def test_an_interval_is_read_in_every_form(text: str, expected: tuple[int, int, int]) -> None:
    assert read_interval(text) == IntervalValue(*expected)


@pytest.mark.parametrize(
    "text", ["", "day", "1 dag", "1 day 2 days", "abc", "P", "1:99:00", "1e3 s"]
)
def test_a_text_that_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(NoInterval):
        read_interval(text)


def test_fields_behind_a_literal_say_what_a_number_counts() -> None:
    assert read_interval("1-2", "YEAR TO MONTH") == IntervalValue(14)
    assert read_interval("5", "DAY") == IntervalValue(days=5)
    assert read_interval("1:30", "MINUTE TO SECOND") == IntervalValue(microseconds=90_000_000)
    assert read_interval("1.26 seconds", "", 1) == IntervalValue(microseconds=1_300_000)


def test_postgresql_reads_generated_texts_as_the_reader_does(
    postgres_server: PostgresServer,
) -> None:
    draws = random.Random(35)  # noqa: S311 - texts, no secrets
    texts = [_text(draws) for _ in range(N_TEXTS)]
    differences = []
    with postgres_server.connect() as connection:
        connection.execute(_READS)
        rows = connection.execute(
            "SELECT t, read_interval(t) FROM unnest(%s::text[]) AS t", [texts]
        ).fetchall()
        for text, found in rows:
            try:
                own: str | None = _own(read_interval(text))
            except NoInterval:
                own = None
            if own != found:
                differences.append((text, own, found))
    assert differences[:10] == []


def test_postgresql_multiplies_intervals_as_the_value_does(
    postgres_server: PostgresServer,
) -> None:
    draws = random.Random(36)  # noqa: S311 - numbers, no secrets
    with postgres_server.connect() as connection:
        connection.execute(_READS)
        for _ in range(100):
            months, days, seconds = (draws.randint(-40, 40) for _ in range(3))
            factor = draws.choice([0.5, 1.5, -2.25, 0.1, 3, 1 / 3, 12.7])
            text = f"{months} mons {days} days {seconds} secs"
            (found,) = _row(connection, text, factor)
            assert _own(read_interval(text).scaled(factor)) == found, (text, factor)


def _row(connection: psycopg.Connection, text: str, factor: float) -> tuple[str]:
    sql = "SELECT read_interval((%s::interval * %s::float8)::text)"
    row = connection.execute(sql, [text, factor]).fetchone()
    assert row is not None
    return (str(row[0]),)


_READS = """
CREATE OR REPLACE FUNCTION read_interval(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE i interval;
BEGIN
  i := t::interval;
  RETURN (extract(year FROM i) * 12 + extract(month FROM i))::bigint || ' ' ||
    extract(day FROM i)::bigint || ' ' ||
    (extract(hour FROM i)::bigint * 3600000000 + extract(minute FROM i)::bigint * 60000000
     + extract(microseconds FROM i)::bigint);
EXCEPTION WHEN others THEN RETURN NULL;
END $$
"""


def _own(value: IntervalValue) -> str:
    return f"{value.months} {value.days} {value.microseconds}"


_UNIT_NAMES = [
    "year",
    "years",
    "y",
    "yr",
    "mon",
    "mons",
    "month",
    "months",
    "day",
    "days",
    "d",
    "week",
    "weeks",
    "w",
    "hour",
    "hours",
    "h",
    "hr",
    "min",
    "mins",
    "minute",
    "m",
    "second",
    "seconds",
    "sec",
    "s",
    "ms",
    "msec",
    "milliseconds",
    "us",
    "microseconds",
    "decade",
    "decades",
    "century",
    "centuries",
    "c",
    "millennium",
    "mil",
    "ago",
    "Day",
    "MONTHS",
    "quarter",
    "foo",
]


def _number(draws: random.Random) -> str:
    sign = draws.choice(["", "", "", "-", "+", "- "])
    whole = str(draws.randint(0, 40))
    return sign + whole + draws.choice(["", "", "", ".5", ".25", ".1", ".", ".333333"])


def _clock(draws: random.Random) -> str:
    parts = [str(draws.randint(0, 30)), f"{draws.randint(0, 62):02d}"]
    if draws.random() < 0.6:
        parts.append(f"{draws.randint(0, 61):02d}" + draws.choice(["", ".5", ".123456"]))
    elif draws.random() < 0.2:
        parts[-1] += ".5"
    return draws.choice(["", "", "-", "+"]) + ":".join(parts)


def _iso(draws: random.Random) -> str:
    if draws.random() < 0.3:
        date = f"{draws.randint(0, 20):04d}-{draws.randint(0, 13):02d}-{draws.randint(0, 33):02d}"
        return f"P{date}" + draws.choice(["", "T04:05:06", "T4:5", "T040506"])
    if draws.random() < 0.1:
        return "P" + draws.choice(["00010203", "00010203T040506", "0001", "1", "00010203T04:05"])

    def number() -> str:
        return f"{draws.choice(['', '-'])}{draws.randint(0, 30)}{draws.choice(['', '.5'])}"

    date = "".join(number() + unit for unit in "YMWD" if draws.random() < 0.4)
    time = "".join(number() + unit for unit in "HMS" if draws.random() < 0.4)
    return f"P{date}" + (f"T{time}" if time or draws.random() < 0.1 else "")


def _text(draws: random.Random) -> str:
    kind = draws.random()
    if kind < 0.2:
        return _iso(draws)
    pieces = []
    if draws.random() < 0.1:
        pieces.append("@")
    for _ in range(draws.randint(0, 4)):
        blank = draws.choice([" ", " ", ""])
        pieces.append(_number(draws) + blank + draws.choice(_UNIT_NAMES))
    if draws.random() < 0.2:
        pieces.append(_number(draws))
    if draws.random() < 0.1:
        pieces.append(f"{draws.choice(['', '-'])}{draws.randint(0, 9)}-{draws.randint(0, 13)}")
    if draws.random() < 0.4:
        pieces.append(_clock(draws))
    if draws.random() < 0.1:
        pieces.append("ago")
    return draws.choice([" ", " ", ", "]).join(pieces)
