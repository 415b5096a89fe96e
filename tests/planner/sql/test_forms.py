"""Forms that clients write, and strings with escapes: what PostgreSQL means by them."""

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import InvalidSql
from planner.sql.query_tree import parse
from planner.sql.statements import Query, read_statement
from planner.sql.words import worded_statements
from tests.support.postgres import PostgresServer

PLAIN = {
    "SELECT a FROM tacit.public.t": "SELECT a FROM public.t",
    'SELECT "tacit"."public"."t"."a" FROM "tacit"."public"."t"': (
        'SELECT "public"."t"."a" FROM "public"."t"'
    ),
    "SELECT a FROM TACIT.public.t JOIN postgres.public.u ON TRUE": (
        "SELECT a FROM public.t JOIN public.u ON TRUE"
    ),
    "SELECT * FROM current_schema()": (
        'SELECT * FROM (SELECT CURRENT_SCHEMA AS "current_schema") AS "current_schema"'
    ),
    "SELECT s FROM version() AS s": "SELECT s FROM (SELECT VERSION() AS s) AS s",
    "SELECT x FROM current_setting('jit') AS s(x)": (
        "SELECT x FROM (SELECT CURRENT_SETTING('jit') AS x) AS s"
    ),
    "SELECT * FROM current_user": (
        'SELECT * FROM (SELECT CURRENT_USER AS "current_user") AS "current_user"'
    ),
    "SELECT 1 FROM t WHERE (a, b) = (1, 2)": "SELECT 1 FROM t WHERE (a = 1 AND b = 2)",
    "SELECT 1 FROM t WHERE ROW(a, b) <> ROW(1, 2)": (
        "SELECT 1 FROM t WHERE (NOT (a = 1 AND b = 2))"
    ),
    "SELECT 1 FROM t WHERE (a, b) IN ((1, 2), (3, 4))": (
        "SELECT 1 FROM t WHERE ((a = 1 AND b = 2) OR (a = 3 AND b = 4))"
    ),
    "SELECT 1 FROM t WHERE (a, b) <= (1, 2)": (
        "SELECT 1 FROM t WHERE (a < 1 OR (a = 1 AND (b <= 2)))"
    ),
    'SELECT a FROM t WHERE a = \'x\' COLLATE "C" ORDER BY a COLLATE "POSIX"': (
        "SELECT a FROM t WHERE a = 'x' ORDER BY a"
    ),
    "SELECT a FROM t LIMIT ALL": "SELECT a FROM t",
    "SELECT a FROM t FETCH FIRST ROW ONLY": "SELECT a FROM t FETCH FIRST 1 ROWS ONLY",
}
KEPT = (
    "SELECT a FROM other.public.t",
    'SELECT a FROM "Tacit".public.t',
    'SELECT * FROM "current_user"',
    "SELECT 1 FROM t WHERE (a, b) = (1, 2, 3)",
    "SELECT 1 FROM t WHERE (a, b) IN (SELECT 1, 2)",
    "SELECT 1 FROM t WHERE ((a, b), c) = ((1, 2), 3)",
)
STRINGS = (
    r"E'a\nb\t\\'", r"E'it\'s'", "E'it''s'", r"E'\x41\102\u0043\U00000044'", r"E'\xc3\xbc'",
    r"E'\q\%'", r"U&'d\0061t\+000061'", "U&'d!0061' UESCAPE '!'", r"U&'a\\b'", "$$it's$$",
    "$a$b$$c$a$", "N'abc'", r"'a\nb'", r"E'\303\274'", "e''",
)  # fmt: skip
BAD = (r"E'\xff'", r"E'\0'", r"E'\x00'", r"U&'\0000'", r"U&'\D800'", "U&'a' UESCAPE 'ab'")


def plainly(sql: str) -> str:
    statement = read_statement(sql)
    assert isinstance(statement, Query)
    return parse(statement).tree.sql("postgres")


@pytest.mark.parametrize("sql", PLAIN)
def test_a_form_is_written_plainly(sql: str) -> None:
    assert plainly(sql) == plainly(PLAIN[sql])


@pytest.mark.parametrize("sql", KEPT)
def test_what_is_none_of_them_is_kept(sql: str) -> None:
    assert plainly(sql).replace('"', "") == sql.replace('"', "")


def test_strings_are_read_as_postgresql_reads_them(postgres_server: PostgresServer) -> None:
    with postgres_server.connect() as connection:
        for written in STRINGS:
            (there,) = connection.execute(f"SELECT {written}::text".encode()).fetchone() or (None,)
            (statement,) = worded_statements(f"SELECT {written}")
            assert [one.text for one in statement.words][1:] == [there], written
        for written in BAD:
            with pytest.raises(psycopg.Error):
                connection.execute(f"SELECT {written}".encode())
            with pytest.raises(InvalidSql):
                worded_statements(f"SELECT {written}")


@given(st.text(st.sampled_from("\\'xuU0af8nq $"), max_size=20))
def test_no_escape_is_an_internal_error(text: str) -> None:
    for written in (f"E'{text}'", f"U&'{text}'", f"$a${text}$a$"):
        try:
            worded_statements(f"SELECT {written}")
        except InvalidSql:
            continue
