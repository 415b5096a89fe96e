"""SHOW TABLES and DESCRIBE as the SELECTs that they are short for."""

import pytest

from planner.sql.statements import Query, read_listing, read_statement
from planner.sql.words import worded_statements


def listing(sql: str) -> str:
    statement = read_statement(sql)
    assert isinstance(statement, Query)
    return statement.text


def test_tables_are_listed_from_information_schema() -> None:
    assert listing("show tables;").startswith("SELECT table_schema, table_name, table_type FROM")


@pytest.mark.parametrize("sql", ["DESCRIBE People", "DESC people", "SHOW COLUMNS FROM people"])
def test_a_table_is_described_by_its_columns(sql: str) -> None:
    assert "LOWER(table_name) = 'people'  ORDER BY" in listing(sql)


def test_a_schema_and_quotes_are_part_of_the_name() -> None:
    assert "= 's' AND table_schema = 'adult'" in listing("DESCRIBE TABLE adult.s")
    assert "= 'it''s'" in listing('DESCRIBE "it\'s"')


@pytest.mark.parametrize("sql", ["DESCRIBE", "DESCRIBE a b", "DESCRIBE a.b.c", "DESCRIBE 'a'"])
def test_anything_else_is_no_listing(sql: str) -> None:
    (worded,) = worded_statements(sql)
    assert read_listing(worded.words) is None
