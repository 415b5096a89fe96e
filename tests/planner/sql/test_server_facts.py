"""What clients ask of the server itself, and what only looks like it."""

import pytest

from planner.sql.server_facts import Fact, ServerFacts
from planner.sql.statements import Query, read_statement


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT version()", [("version", Fact.VERSION)]),
        ("select pg_catalog.version();", [("version", Fact.VERSION)]),
        ("SELECT Version() AS v", [("v", Fact.VERSION)]),
        ('SELECT current_schema() "Its name"', [("Its name", Fact.SCHEMA)]),
        ("SELECT current_schema", [("current_schema", Fact.SCHEMA)]),
        ("SELECT current_database() AS name", [("name", Fact.DATABASE)]),
        (
            "SELECT current_database(), current_user, session_user u -- who",
            [("current_database", Fact.DATABASE), ("current_user", Fact.USER), ("u", Fact.USER)],
        ),
    ],
)
def test_facts_are_read_with_the_names_of_their_columns(
    sql: str, columns: list[tuple[str, Fact]]
) -> None:
    assert read_statement(sql) == ServerFacts(tuple(columns))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT version",
        "SELECT version() FROM people",
        "SELECT version() || 'x'",
        "SELECT version() AS",
        "SELECT version() AS 'v'",
        "SELECT version(),",
        "SELECT pg_catalog version()",
        "SELECT public.version()",
        'SELECT "version"()',
        "SELECT current_user()",
        "SELECT 1, version()",
        "SELECT",
        "(SELECT version())",
    ],
)
def test_anything_else_is_a_query(sql: str) -> None:
    assert read_statement(sql) == Query(sql)
