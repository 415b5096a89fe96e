"""Tests for how much the functions of a statement can make, and how often arguments are copied."""

import re

import pytest
from sqlglot import exp

from cube.refusals import Refused
from planner.catalog_sql.functions import KNOWN_FUNCTIONS, CatalogFacts, written_out
from planner.meaning.made import check_made, n_nodes_run
from planner.sql.nodes import every_node
from planner.sql.query_tree import parse
from planner.sql.statements import Query

FACTS = CatalogFacts(
    *("bob", "tacit", "public", "PostgreSQL 15"),
    numbers={("pg_namespace", "pg_catalog"): 1, ("pg_namespace", "public"): 2},
)
# One copy of the argument stands for itself.
COPYING = [
    *("NULLIF(a, 1)", "a BETWEEN 1 AND 2", "a BETWEEN SYMMETRIC 1 AND 2", "a IN (1, 2, 3)"),
    *("CASE a WHEN 1 THEN 2 WHEN 3 THEN 4 END", "INITCAP(a)", "DECODE(a, 1, 2, 3, 4)"),
    *("ARRAY_TO_STRING(a, ',')", "SPLIT_PART(a, ',', 1)"),
]


def tree(sql: str) -> exp.Query:
    return parse(Query(sql)).tree


def longest(step: str, n_steps: int) -> str:
    """A text made longer in subqueries, one inside the other."""
    text = "(SELECT relname AS a FROM pg_class) t"
    for _ in range(n_steps):
        text = f"(SELECT {step} AS a FROM {text}) t"  # noqa: S608 - our own text
    return f"SELECT a FROM {text}"  # noqa: S608 - our own text


@pytest.mark.parametrize(
    "step",
    [
        "a || a",
        "CONCAT(a, a, a)",
        "CONCAT_WS(a, a, a, a)",
        "REPLACE(a, 'a', a)",
        "REPLACE(a, SUBSTRING(a FROM 1 FOR 1), a)",
        "REGEXP_REPLACE(a, '.', '\\&\\&\\&', 'g')",
        "ARRAY_TO_STRING(STRING_TO_ARRAY(a, 'a'), a)",
        "ARRAY_TO_STRING(ARRAY[a, a], a)",
        "LPAD(a, 900000000, a)",
        "REPEAT(a, 3)",
        "REPEAT(a, 100000000)",
        "STRING_AGG(a, a)",
        "ARRAY_CAT(a, a)",
        "CASE WHEN a > 'x' THEN a || a ELSE a END",
        "COALESCE(a || a, 'x')",
        "UPPER(a) || LOWER(a)",
        "(SELECT a || a)",
        "FORMAT('%s%s', a, a)",
    ],
)
def test_a_text_that_grows_by_every_step_is_refused_before_it_is_made(step: str) -> None:
    with pytest.raises(Refused):
        check_made(every_node(tree(longest(step, 24))))
    first = "r0 AS (SELECT relname AS a FROM pg_class)"
    names = ", ".join(
        f"r{place}(a) AS (SELECT {step} FROM r{place - 1})"  # noqa: S608 - our own text
        for place in range(1, 25)
    )
    with pytest.raises(Refused):
        check_made(every_node(tree(f"WITH {first}, {names} SELECT a FROM r24")))  # noqa: S608 - our own


@pytest.mark.parametrize(
    "call",
    [
        "GENERATE_SERIES(1, 20000)",
        "GENERATE_SERIES(-99999999999999999999999, 9)",
        "GENERATE_SERIES(1, 3, 0)",
        "GENERATE_SERIES(1, relnatts)",
        "GENERATE_SERIES(1, 10 ^ 9)",
        "GENERATE_SERIES(1, (SELECT 1000000000))",
        "LPAD(relname, relnatts * 1000000)",
        "REPEAT('x', 2000000000)",
        "REPEAT('x', (SELECT MAX(oid) FROM pg_class))",
    ],
)
def test_a_call_that_makes_too_much_by_itself_is_refused(call: str) -> None:
    with pytest.raises(Refused):
        check_made(every_node(tree(f"SELECT {call} FROM pg_class")))  # noqa: S608 - our own text


@pytest.mark.parametrize(
    "sql",
    [
        longest("a", 25),
        longest("SUBSTRING(a FROM 1 FOR 3)", 25),
        longest("NULLIF(TRIM(a), '')", 25),
        longest("LENGTH(a)::text", 25),
        "SELECT STRING_AGG(relname, ', ') || relname FROM pg_class GROUP BY relname",
        "SELECT GENERATE_SERIES(0, ARRAY_UPPER(x, 1)), REPLACE(x, '\"', '\"\"') FROM pg_class",
        "SELECT LPAD(relname, 40), REPEAT('-', 80) FROM pg_class",
        "SELECT relname FROM pg_class WHERE relname LIKE '%a%' AND relname ~ '^(a|b)$'",
    ],
)
def test_what_stays_short_is_not_refused(sql: str) -> None:
    check_made(every_node(tree(sql)))


@pytest.mark.parametrize("call", COPYING)
def test_every_copy_of_an_argument_is_counted(call: str) -> None:
    """As many as the text for DuckDB has, and those that DuckDB makes of it."""
    parsed = tree(f"SELECT {call}")
    written = len(re.findall(r"\ba\b", parsed.sql("duckdb")))
    longer = re.sub(r"\ba\b", "(a + 1)", call)
    long = tree(f"SELECT {longer}")
    more = n_nodes_run(every_node(long)) - n_nodes_run(every_node(parsed))
    copies = more / 3  # a bracket, a sum and a number
    assert copies >= max(written, 2)


@pytest.mark.parametrize("name", sorted(KNOWN_FUNCTIONS))
def test_no_function_of_the_catalog_writes_an_argument_twice(name: str) -> None:
    """Written out twice and nested, it would double with each level."""
    for n_arguments in range(4):
        arguments = [exp.column(f"argument_{place}") for place in range(n_arguments)]
        try:
            written = written_out(name, arguments, FACTS)
        except (IndexError, Refused):  # it has more, or others
            continue
        text = "" if written is None else written.sql("duckdb")
        for place in range(n_arguments):
            assert len(re.findall(rf"\bargument_{place}\b", text)) <= 1, text


@pytest.mark.parametrize("name", ["format_type", "quote_ident", "col_description"])
def test_functions_of_the_catalog_in_each_other_grow_by_the_same_each_time(name: str) -> None:
    inner: exp.Expr = exp.column("argument")
    sizes = []
    for _ in range(9):
        first = [exp.Literal.number(25)] if name != "quote_ident" else []
        written = written_out(name, [*first, inner.copy()], FACTS)
        assert written is not None
        inner = written
        sizes.append(len(inner.sql("duckdb")))
    assert sizes[8] - sizes[7] <= 2 * (sizes[1] - sizes[0])
