"""Statements about streams, read from text: what is one, and what it says."""

from fractions import Fraction

import pytest

from cube.refusals import InvalidSql, InvalidTarget
from planner.sql.statements import read_statement
from planner.sql.stream_statements import CreateStream, DropStream

MALFORMED_STREAMS = {
    "CREATE STREAM": "line 1, column 8",
    "CREATE STREAM 'v' (user UNIVERSE 10)": "line 1, column 15",
    "CREATE STREAM select (user UNIVERSE 10)": "line 1, column 15",
    "CREATE STREAM v user UNIVERSE 10": "line 1, column 17",
    "CREATE STREAM v (user\nUNIVERS 10)": "line 2, column 1",
    "CREATE STREAM v (user UNIVERSE 10) WITH epsilon => 1": "line 1, column 41",
    "CREATE STREAM v (user UNIVERSE 10) now": "line 1, column 36",
    "CREATE STREAM v (user UNIVERSE 10, paid)": "line 1, column 40",
    "CREATE STREAM v (user UNIVERSE 10, paid INT)": "line 1, column 41",
    "CREATE STREAM v (user UNIVERSE 10,)": "line 1, column 35",
    "CREATE STREAM v (paid BOOLEAN)": "line 1, column 23",
    "DROP STREAM v, w": "line 1, column 14",
}
OUT_OF_RANGE = {
    "(user UNIVERSE 0)": "UNIVERSE must be a whole number from 1",
    "(user UNIVERSE 1.5)": "UNIVERSE must be a whole number",
    "(user UNIVERSE many)": "UNIVERSE must be a number",
    "(user BUCKETS 1)": "BUCKETS must be a whole number from 2",
    "(user UNIVERSE 10) WITH (bits => 11)": "bits must be a whole number from 1 to 10",
    "(user UNIVERSE 4000000000)": "too many for a state",
    "(user UNIVERSE 600000000, paid BOOLEAN)": "for all users and for each predicate are too many",
    "(user BUCKETS 100000000, paid BOOLEAN)": "are too many",
    "(epoch UNIVERSE 10)": "cannot be named 'epoch'",
    "(user UNIVERSE 10, Left BOOLEAN)": "cannot be named 'Left'",
    "(user UNIVERSE 10, User BOOLEAN)": "cannot be named 'User'",
    "(user UNIVERSE 10, a BOOLEAN, A BOOLEAN)": "cannot be named 'A'",
    '(user UNIVERSE 10, "stra\N{LATIN SMALL LETTER SHARP S}e" BOOLEAN, "STRASSE" BOOLEAN)': (
        "cannot be named 'STRASSE'"
    ),
    '("a\nb" UNIVERSE 10)': "cannot be the name of a column",
    '(user UNIVERSE 10, " a" BOOLEAN)': "cannot be the name of a predicate",
    f"(user UNIVERSE 10, {'a' * 64} BOOLEAN)": "cannot be the name of a predicate",
    f"(user UNIVERSE 10, {', '.join(f'b{k} BOOLEAN' for k in range(17))})": "at most 16",
    "(user BUCKETS 10) WITH (bits => 5)": "each bucket is one bit",
    "(user BUCKETS 10) WITH (sample => 'a')": "each bucket is one bit",
    "(user UNIVERSE 10) WITH (sample => 'a')": "all of them have one",
    "(user UNIVERSE 10) WITH (bits => 10, sample => 'a')": "all of them have one",
    "(user UNIVERSE 10) WITH (bits => 5, sample => 7)": "sample must be a text of 1 to 63",
    "(user UNIVERSE 10) WITH (bits => 5, sample => '')": "sample must be a text of 1 to 63",
    "(user BUCKETS 10) WITH (departures => true)": "users share it",
    "(user UNIVERSE 10) WITH (epsilon => 2, budget => 1)": "at least epsilon",
    "(user UNIVERSE 10) WITH (epochs => 'hour')": "a window of time",
    "(user UNIVERSE 10) WITH (epoch => 'day')": "WITH has no option epoch",
    "(user UNIVERSE 10) WITH (epsilon => 1, epsilon => 2)": "epsilon twice",
    "(user UNIVERSE 10) WITH (visits => 1)": "visits must be a whole number from 2 to 100",
    "(user UNIVERSE 10) WITH (visits => 101)": "visits must be a whole number from 2 to 100",
    "(user BUCKETS 10) WITH (visits => 5)": "cannot have BUCKETS or departures",
    "(user UNIVERSE 10) WITH (visits => 5, departures => true)": "a visit cannot be taken back",
    "(visits UNIVERSE 10) WITH (visits => 5)": "is the column of a stream",
    "(user UNIVERSE 10, Visits BOOLEAN) WITH (visits => 5)": "is the column of a stream",
    "(user UNIVERSE 20000000) WITH (visits => 5)": "each of 8 for visits, are too many",
    "(user UNIVERSE 10) WITH (visits => 5, releases => 2)": "epochs that end by the clock",
    "(user UNIVERSE 10) WITH (epochs => 'day', releases => 2)": "need counters of visits",
    "(user UNIVERSE 10) WITH (visits => 5, epochs => 'day', releases => 25)": "from 1 to 24",
}


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        (
            (
                "create stream visits (user universe 1e5) with (epsilon => 0.5, epochs => 'Day',"
                " bits => 1000, departures => true, budget => 15);"
            ),
            CreateStream(
                name="visits",
                column="user",
                universe=100_000,
                n_bits=1000,
                epsilon=Fraction(1, 2),
                epochs="day",
                has_departures=True,
                budget=Fraction(15),
            ),
        ),
        (
            "CREATE STREAM v (user UNIVERSE 10) WITH (bits => 5, sample => 'a text')",
            CreateStream(name="v", column="user", universe=10, n_bits=5, sample="a text"),
        ),
        (
            'CREATE STREAM v ("who" BUCKETS 20)',
            CreateStream(name="v", column="who", universe=None, n_bits=20),
        ),
        (
            "CREATE STREAM v (user UNIVERSE 10, paid BOOLEAN, Mobile boolean) WITH (epsilon => 3)",
            CreateStream(
                name="v",
                column="user",
                universe=10,
                n_bits=10,
                predicates=("paid", "Mobile"),
                epsilon=Fraction(3),
            ),
        ),
        (
            (
                "CREATE STREAM v (user UNIVERSE 10) WITH (visits => 7, epochs => 'week', "
                "releases => 7)"
            ),
            CreateStream(
                name="v",
                column="user",
                universe=10,
                n_bits=10,
                epochs="week",
                visits=7,
                n_releases=7,
            ),
        ),
        (
            "CREATE STREAM v (visits UNIVERSE 10)",
            CreateStream(name="v", column="visits", universe=10, n_bits=10),
        ),
        ("DROP STREAM IF EXISTS v", DropStream(name="v", if_exists=True)),
    ],
)
def test_statements_are_read(sql: str, statement: object) -> None:
    assert read_statement(sql) == statement


@pytest.mark.parametrize("sql", MALFORMED_STREAMS)
def test_what_does_not_parse_is_pointed_at(sql: str) -> None:
    with pytest.raises(InvalidSql) as caught:
        read_statement(sql)
    assert str(caught.value.position) == MALFORMED_STREAMS[sql]
    assert caught.value.hint


@pytest.mark.parametrize("rest", OUT_OF_RANGE)
def test_numbers_are_in_range(rest: str) -> None:
    with pytest.raises(InvalidTarget, match=OUT_OF_RANGE[rest]) as caught:
        read_statement(f"CREATE STREAM v {rest}")
    assert caught.value.hint


def test_options_in_a_comment_are_for_select() -> None:
    with pytest.raises(InvalidSql, match="comment"):
        read_statement("CREATE /*+ tacit(half_width=5) */ STREAM v (user UNIVERSE 10)")
