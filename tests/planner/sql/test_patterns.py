"""Patterns of LIKE that clients put together: the same as written in one, and nothing else is."""

import duckdb
import pytest
from sqlglot import exp, parse_one

from planner.sql.dialect import TACIT
from planner.sql.forms import write_patterns
from planner.sql.parameters import Parameter, ParameterKind
from planner.sql.query_tree import parse
from planner.sql.statements import Query, read_statement

JOINED = (
    "'%' || 'b' || '%'",
    "('%' || 'b') || ('%')",
    "CONCAT('%', 'b', '%')",
    "'%b%'::varchar",
    "'%' || CAST('b' AS TEXT) || '%'",
    "'%' || '/%' || ''",
    "UPPER('%é%')",
    "'%' || REPLACE(REPLACE(LOWER('A_%'), '%', '!%'), '_', '!_') || '%'",
    "REPLACE('abc', '', 'x')",
)
OTHERS = ("'%' || NULL", "'%' || city", "CAST('%b' AS VARCHAR(1))", "UPPER(city)", "'%' || 5")


def rewritten(pattern: str) -> exp.Expr:
    tree = parse_one(f"SELECT city LIKE {pattern}", dialect=TACIT)
    write_patterns(tree.walk())
    (like,) = tree.find_all(exp.Like)
    found: exp.Expr = like.expression
    return found


@pytest.mark.parametrize("pattern", JOINED)
def test_a_pattern_of_texts_is_the_text_that_duckdb_makes_of_it(pattern: str) -> None:
    ((text,),) = duckdb.execute(f"SELECT {pattern}").fetchall()
    found = rewritten(pattern)
    assert isinstance(found, exp.Literal)
    assert found.is_string
    assert found.name == text


@pytest.mark.parametrize("pattern", OTHERS)
def test_anything_else_is_left_as_it_is(pattern: str) -> None:
    assert not isinstance(rewritten(pattern), exp.Literal)


def test_a_long_chain_is_no_deep_one() -> None:
    assert rewritten(" || ".join(["'a'"] * 2000)).name == "a" * 2000


def test_a_bound_value_is_part_of_the_pattern() -> None:
    statement = read_statement("SELECT COUNT(*) FROM t WHERE city NOT ILIKE '%' || $1::text || '%'")
    assert isinstance(statement, Query)
    tree = parse(statement, (Parameter(ParameterKind.TEXT, "b'c", name="1"),)).tree
    (like,) = tree.find_all(exp.ILike)
    assert like.expression.name == "%b'c%"
