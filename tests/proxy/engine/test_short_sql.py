"""Tests for the grammar of SQL that is short whatever it says."""

# ruff: noqa: S608 - texts that are made here alone

import time

import numpy as np
import pyarrow as pa
import pytest

from proxy.outer_sql.closed_database import ClosedDatabase, SqlEnded
from proxy.outer_sql.postprocessing import N_BYTES_A_NUMBER, REACH_MAX, OuterSql, reach, read
from proxy.outer_sql.process import PROCESSES

SEED = 11
N_ROWS = 300
PART = pa.table(
    {
        "tacit_key_0": [f"city {place % 7}" for place in range(N_ROWS)],
        "tacit_answer_1": np.linspace(-3.0, 90.0, N_ROWS),
        "a0": np.arange(N_ROWS) % 5,
    }
)
FROM = ' FROM "tacit_part_0"'
SHORT = (
    f'SELECT "tacit_key_0" AS "city"{FROM} WHERE a0 > 2 ORDER BY "city" DESC NULLS FIRST LIMIT 3',
    f"""SELECT CASE WHEN a0 > 2 AND NOT "tacit_key_0" = 'x' THEN 'large; --' END AS "size"{FROM}""",
    f'SELECT CAST(TRY((54 + a0 / NULLIF("tacit_answer_1", 0))) AS DOUBLE) AS "x"{FROM}',
    f'SELECT round(abs(-a0), CAST(0 AS INTEGER)) AS "x"{FROM} WHERE a0 IS NOT NULL',
    f'SELECT SQRT(GREATEST(a0, 1e-3)) AS "y"{FROM}',
)
# Each makes something large or slow, reads something else, or may mean what is not seen here.
NOT_SHORT = (
    'SELECT a0 + a0 AS "b", "b" + "b" AS "c" FROM "tacit_part_0"',  # b is written out
    'SELECT a0 + a0 AS "a0", a0 + a0 AS "c" FROM "tacit_part_0"',
    'SELECT a0 AS "x" FROM "tacit_part_0", "tacit_part_0" AS "b"',
    'SELECT a0 AS "x" FROM "tacit_part_0" JOIN "tacit_part_0" AS "b" ON TRUE',
    'SELECT a0 AS "x" FROM "tacit_part_0" UNION ALL SELECT a0 AS "x" FROM "tacit_part_0"',
    'SELECT (SELECT MAX(a0) FROM "tacit_part_0") AS "x" FROM "tacit_part_0"',
    'SELECT * FROM "tacit_part_0"',
    'SELECT "tacit_part_0".* AS "x" FROM "tacit_part_0"',
    'SELECT range(a0) AS "x" FROM "tacit_part_0"',
    'SELECT "range"(a0) AS "x" FROM "tacit_part_0"',
    'SELECT "range" (a0) AS "x" FROM "tacit_part_0"',
    'SELECT unnest(range(a0)) AS "x" FROM "tacit_part_0"',
    'SELECT repeat("tacit_key_0", 9) AS "x" FROM "tacit_part_0"',
    'SELECT "tacit_key_0" || "tacit_key_0" AS "x" FROM "tacit_part_0"',
    'SELECT "tacit_key_0".repeat(9) AS "x" FROM "tacit_part_0"',
    'SELECT CAST(a0 AS VARCHAR) AS "x" FROM "tacit_part_0"',
    'SELECT a0::DOUBLE AS "x" FROM "tacit_part_0"',
    'SELECT SUM(a0) OVER () AS "x" FROM "tacit_part_0"',
    'SELECT a0 AS "x" FROM "tacit_part_0" ORDER BY "x" + "x"',
    'SELECT a0 AS "x" FROM "tacit_part_0" -- \' \n, "tacit_part_0" AS "b" -- \'',
    'SELECT a0 AS "x" FROM "tacit_part_0" /* \' */ , "tacit_part_0" AS "b" /* \' */',
    'SELECT a0 AS "x" FROM "tacit_part_0"; SELECT a0 AS "x" FROM "tacit_part_0"',
    'SELECT a0 AS "x", $$ \' $$ AS "y" FROM "tacit_part_0" -- \'',
    'SELECT E\'\\\' AS "x" FROM "tacit_part_0" --\'',
    'SELECT a0 ** a0 AS "x" FROM "tacit_part_0"',
    'SELECT a0 AS "x" FROM "elsewhere"',
    'SELECT "elsewhere" AS "x" FROM "tacit_part_0"',
    'SELECT CASE a0 WHEN 1 THEN 2 END AS "x" FROM "tacit_part_0"',
    'SELECT a0 AS "x" FROM "tacit_part_0" WHERE a0 IN (1, 2)',
    'SELECT now() AS "x" FROM "tacit_part_0"',
    'SELECT current_date AS "x" FROM "tacit_part_0"',
    f'SELECT {"(" * 60}a0{")" * 60} AS "x" FROM "tacit_part_0"',
    f'SELECT a0{" + a0" * 2000} AS "x" FROM "tacit_part_0"',
)


LEAVES = {
    "n": ("a0", "a1", "2", "0.5", "NULL"),
    "b": ("TRUE", "a0 > a1", "a1 IS NULL"),
    "t": ('"tacit_key_2"', "'y'"),
}
FORMS = {
    "n": (
        *(("({} + {})", *"nn"), ("({} / {})", *"nn"), ("(- {})", "n"), ("POWER({}, {})", *"nn")),
        *(("NULLIF({}, {})", *"nn"), ("TRY({})", "n"), ("GREATEST({}, {}, {})", *"nnn")),
        *(("CASE WHEN {} THEN {} ELSE {} END", *"bnn"), ("EXP({})", "n"), ("LN({})", "n")),
        *(("CAST({} AS DOUBLE)", "t"), ("CAST({} AS BIGINT)", "n"), ("ROUND({})", "n")),
    ),
    "b": (
        *(("({} > {})", *"nn"), ("({} = {} OR {} IS NULL)", *"ttn"), ("(NOT {})", "b")),
        ("({} AND {})", *"bb"),
    ),
    "t": (("COALESCE({}, {})", *"tt"), ("CASE WHEN {} THEN {} END", *"bt"), ("TRY({})", "t")),
}


@pytest.mark.parametrize("sql", SHORT)
def test_short_sql_gives_what_a_process_gives(sql: str) -> None:
    relations = {"tacit_part_0": PART}
    found = reach(sql, relations)
    assert found is not None
    assert found <= REACH_MAX
    assert OuterSql().run(sql, relations).equals(PROCESSES.run(sql, relations, 60.0))


@pytest.mark.parametrize("sql", NOT_SHORT)
def test_what_the_grammar_does_not_make_has_no_reach(sql: str) -> None:
    assert reach(sql, {"tacit_part_0": PART}) is None


def test_copies_are_counted_however_they_are_nested() -> None:
    def nested(function: str, depth: int) -> int:
        inner = "a0"
        for _ in range(depth):
            inner = function.format(inner)
        short = read(f'SELECT {inner} AS "x" FROM "t"')
        assert short is not None
        return short.n_nodes

    assert nested("NULLIF({}, 0)", 12) > 2**12
    assert nested("TRY({})", 6) > 2**6
    assert nested("ABS({})", 12) < 40


def test_columns_of_other_kinds_are_not_short() -> None:
    lists = pa.table({"a0": [[1], [2, 3]]})
    assert reach('SELECT a0 AS "x" FROM "t"', {"t": lists}) is None


def test_whatever_the_grammar_makes_is_bounded_by_its_reach() -> None:
    """Random statements of the grammar: rows, bytes and processor time are as `reach` says."""
    draw, database = np.random.default_rng(SEED), ClosedDatabase()
    n_run = 0
    for _ in range(80):
        n_rows = int(draw.integers(0, 1000))
        table = pa.table(
            {
                "a0": draw.normal(size=n_rows),
                "a1": draw.integers(-5, 5, size=n_rows),
                "tacit_key_2": ["x" * int(length) for length in draw.integers(0, 40, size=n_rows)],
            }
        )
        items = [
            f'{expression(draw, str(draw.choice(["n", "b", "t"])), 3)} AS "x{place}"'
            for place in range(draw.integers(1, 5))
        ]
        sql = f'SELECT {", ".join(items)} FROM "t" WHERE {expression(draw, "b", 2)} ORDER BY "x0"'
        found = reach(sql, {"t": table})
        assert found is not None, sql
        if found > REACH_MAX:
            continue
        began = time.process_time()
        try:
            result = database.run(sql, {"t": table})
        except SqlEnded:  # types that do not go together, and values out of range
            continue
        finally:
            assert time.process_time() - began < 2.0, sql  # a tenth is expected
        n_run += 1
        assert result.num_rows <= n_rows
        assert result.nbytes <= found + N_BYTES_A_NUMBER * (len(items) + 1)
    assert n_run > 30


def expression(draw: np.random.Generator, kind: str, depth: int) -> str:
    """A random expression of the grammar: a number, a condition or a text."""
    if depth == 0:
        return str(draw.choice(LEAVES[kind]))
    form, *kinds = FORMS[kind][int(draw.integers(len(FORMS[kind])))]
    parts = [expression(draw, one, depth - 1) for one in kinds]
    return str(form.format(*parts))
