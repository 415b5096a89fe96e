"""Statements about synthetic tables, read from text: what is one, and what it says."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import InvalidSql, InvalidTarget, TooLarge, UnsupportedSql
from planner.sql.statements import Explain, Query, Statement, read_statement
from planner.sql.synthetic_statements import (
    CreateSynthetic,
    DropSynthetic,
)
from planner.sql.words import is_new_name

WORDS = [
    "CREATE",
    "OR",
    "REPLACE",
    "SYNTHETIC",
    "TABLE",
    "DROP",
    "IF",
    "EXISTS",
    "EXPLAIN",
    "PRIVACY",
    "FROM",
    "WITH",
    "(",
    ")",
    ",",
    "=>",
    "=",
    "-",
    "1",
    "0.5",
    "1e400",
    "'x'",
    "$$",
    "s",
    "adult",
    "epsilon",
    "delta",
    "method",
    "rows",
    "seed",
    "columns",
    "pairwise",
    "score",
    "degree",
    "hierarchies",
    "true",
    "target",
    "workload",
    "evaluate",
    "structure",
    "public_rows",
    ";",
    "--",
    "/*",
    "*/",
    "'",
    "SELECT",
]
# By the text: where it stops being a statement.
MALFORMED = {
    "CREATE SYNTHETIC TABLE s\nFORM t": "line 2, column 1",
    "CREATE SYNTHETIC TABLE s FROM t WITH (epsilon 1)": "line 1, column 47",
    "CREATE SYNTHETIC TABLE s FROM t WITH (columns => (a, 'b'))": "line 1, column 54",
    "CREATE SYNTHETIC TABLE s FROM t WITH (epsilon =>": "line 1, column 47",
    "CREATE SYNTHETIC TABLE 1s FROM t": "line 1, column 24",
    "CREATE SYNTHETIC TABLE": "line 1, column 18",
    "DROP SYNTHETIC TABLE a, b": "line 1, column 23",
}


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        (
            "create synthetic table S from main_table",
            CreateSynthetic(name="S", table="main_table"),
        ),
        (
            (
                'CREATE OR REPLACE SYNTHETIC TABLE s FROM "my table" WITH (epsilon => 0.1, '
                "method => 'PairWise', rows = 1e3, seed => 0, "
                'columns => (age, date, "Blood Type"));'
            ),
            CreateSynthetic(
                name="s",
                table="my table",
                is_replacing=True,
                epsilon=Fraction(1, 10),
                method="pairwise",
                n_rows=1000,
                seed=0,
                columns=("age", "date", "Blood Type"),
            ),
        ),
        (
            "/* made */ EXPLAIN PRIVACY CREATE SYNTHETIC TABLE s FROM t WITH (method => privbayes)",
            Explain(CreateSynthetic(name="s", table="t", method="privbayes")),
        ),
        (
            "CREATE SYNTHETIC TABLE s FROM t WITH (epsilon => 1, delta => 1e-9)",
            CreateSynthetic(name="s", table="t", epsilon=Fraction(1), delta=Fraction(1, 10**9)),
        ),
        (
            (
                "CREATE SYNTHETIC TABLE s FROM t WITH (method => 'privbayes', score => 'r', "
                "degree => 0, hierarchies => TRUE)"
            ),
            CreateSynthetic(
                name="s", table="t", method="privbayes", score="R", degree=0, hierarchies=True
            ),
        ),
        (
            (
                "CREATE SYNTHETIC TABLE s FROM t WITH (target => Income, evaluate => 0.05, "
                "workload => 'SELECT COUNT(*) FROM t WHERE city = ''Oslo''; SELECT 2')"
            ),
            CreateSynthetic(
                name="s",
                table="t",
                target=("Income",),
                workload="SELECT COUNT(*) FROM t WHERE city = 'Oslo'; SELECT 2",
                evaluate=Fraction(1, 20),
            ),
        ),
        (
            'CREATE SYNTHETIC TABLE s FROM t WITH (target => (a, "b c"), workload => $$SELECT 1$$)',
            CreateSynthetic(name="s", table="t", target=("a", "b c"), workload="SELECT 1"),
        ),
        (
            (
                "CREATE SYNTHETIC TABLE s FROM t WITH (structure => 'Votes', votes => one_each, "
                "clip => 'holders', smoothing => 'deviation', public_rows => 5e4)"
            ),
            CreateSynthetic(
                name="s",
                table="t",
                structure="votes",
                votes="one_each",
                clip="holders",
                smoothing="deviation",
                public_rows=50_000,
            ),
        ),
        ("DROP SYNTHETIC TABLE IF EXISTS s -- no more", DropSynthetic(name="s", if_exists=True)),
        ("drop synthetic table if", DropSynthetic(name="if")),
    ],
)
def test_a_statement_says_what_it_says(sql: str, statement: Statement) -> None:
    assert read_statement(sql) == statement


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM synthetic",
        "SELECT 'CREATE SYNTHETIC TABLE s FROM t'",
        "-- CREATE SYNTHETIC TABLE s FROM t\nSELECT 1",
    ],
)
def test_a_query_that_names_synthetic_tables_is_a_query(sql: str) -> None:
    assert read_statement(sql) == Query(sql, sql.index("SELECT", sql.find("\n") + 1))
    explained = f"EXPLAIN PRIVACY {sql}"
    start = explained.index("SELECT", explained.find("\n") + 1)
    assert read_statement(explained) == Explain(Query(explained, start))


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE synthetic (x INT)",
        "DROP TABLE synthetic",
        "DROP 'SYNTHETIC' TABLE s",
        'CREATE "SYNTHETIC" TABLE s FROM t',
        "EXPLAIN PRIVACY DROP SYNTHETIC TABLE s",
    ],
)
def test_other_tables_are_neither_made_nor_dropped(sql: str) -> None:
    with pytest.raises(UnsupportedSql, match="Only SELECT is supported"):
        read_statement(sql)


@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_whatever_is_written_is_a_statement_or_a_refusal_or_neither(sql: str) -> None:
    with suppress(InvalidSql, InvalidTarget, TooLarge, UnsupportedSql):
        statement = read_statement(f"CREATE SYNTHETIC TABLE {sql}")
        assert isinstance(statement, CreateSynthetic)
        assert is_new_name(statement.name)
        assert statement.epsilon >= 0


@given(st.text(max_size=40))
def test_a_name_is_an_identifier_or_none(text: str) -> None:
    if is_new_name(text):
        assert text.isascii()
        assert text.isidentifier()
        statement = read_statement(f"CREATE SYNTHETIC TABLE {text} FROM t")
        assert statement == CreateSynthetic(name=text, table="t")


@pytest.mark.parametrize("sql", MALFORMED)
def test_what_does_not_parse_is_pointed_at(sql: str) -> None:
    with pytest.raises(InvalidSql) as caught:
        read_statement(sql)
    assert str(caught.value.position) == MALFORMED[sql]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("degree => 9", "degree must be a whole number from 0 to 8"),
        ("degree => 1.5", "degree must be a whole number from 0 to 8"),
        ("degree => many", "degree must be a number"),
        ("hierarchies => 1", "hierarchies must be true or false"),
        ("scores => 'R'", "WITH has no option scores"),
    ],
)
def test_settings_of_networks_are_in_range(option: str, said: str) -> None:
    with pytest.raises(InvalidTarget, match=said) as caught:
        read_statement(f"CREATE SYNTHETIC TABLE s FROM t WITH ({option})")
    assert caught.value.hint


@pytest.mark.parametrize("delta", ["0", "1", "-1e-9", "2"])
def test_a_delta_is_a_probability(delta: str) -> None:
    with pytest.raises(InvalidTarget, match="delta must be a probability"):
        read_statement(f"CREATE SYNTHETIC TABLE s FROM t WITH (epsilon => 1, delta => {delta})")
