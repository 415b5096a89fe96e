"""The one reader: every text is statements of the closed set, or is refused."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cube.refusals import InvalidSql, Refused, TooLarge, UnsupportedSql
from cube.runtime import uncollected
from planner.sql.settings import ResetAll, SetSetting, ShowSetting
from planner.sql.statements import (
    Explain,
    Query,
    Statement,
    TransactionWord,
    read_file,
    read_query,
    read_statement,
    read_text,
)
from planner.sql.words import FILE, ONE_STATEMENT

KEYWORDS = """
SELECT WITH EXPLAIN PRIVACY SET RESET SHOW ALL TO LOCAL SESSION DEFAULT BEGIN START TRANSACTION
COMMIT END ROLLBACK AND CHAIN DISCARD CREATE OR REPLACE SYNTHETIC TABLE DROP IF EXISTS FROM INSERT
version current_user tacit half_width epsilon TIME ZONE names
"""
SIGNS = """
( ) . , = => + - 1 0.5 1e400 0x1f 'x' "q" $$ $t$ E' ' " ; -- /* */ {# #} é \\
"""
WORDS = [*KEYWORDS.split(), *SIGNS.split(), "\n", "\t"]


@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.text(max_size=60))
@example("set" + "/*" * 30)
@example("\ud800")
@example("SELECT \0")
def test_any_text_is_read_or_refused(sql: str) -> None:
    for text in (sql, f"SET {sql}", f"SET tacit.half_width = 5;{sql}", f"BEGIN {sql}"):
        try:
            found = read_text(text)
        except Refused:
            continue
        starts = [one.start for one in found]
        assert starts == sorted(set(starts))
        for _, statement in found:
            assert isinstance(statement, Statement)
            assert statement.verb
            if isinstance(statement, Query):
                assert statement.text in text
        assert read_text(text) == found


def test_the_set_is_closed_and_each_of_it_says_how_it_begins() -> None:
    assert {kind.__name__ for kind in get_args(Statement)} == {
        "ClientSetting",
        "CloseCursor",
        "CopyOut",
        "CreateStream",
        "CreateSynthetic",
        "Deallocate",
        "DeclareCursor",
        "DiscardAll",
        "Unlisten",
        "DropStream",
        "DropSynthetic",
        "ExecutePrepared",
        "Explain",
        "FetchRows",
        "PrepareQuery",
        "Query",
        "ResetAll",
        "ResetSetting",
        "Savepoint",
        "SetSetting",
        "ShowAll",
        "ShowClientSetting",
        "ShowSetting",
        "TransactionWord",
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people",
        "  SELECT ';' -- SET tacit.half_width = 1",
        "/* SET */ (SELECT 1) ;",
        "WITH a AS (SELECT 1) SELECT * FROM a",
    ],
)
def test_a_query_keeps_its_text_as_it_was_written(sql: str) -> None:
    query = read_statement(sql)
    assert isinstance(query, Query)
    assert query.text == sql
    assert sql[query.start :].startswith(("SELECT", "(SELECT", "WITH"))
    explained = read_statement(f"explain -- it\n privacy {sql}")
    assert isinstance(explained, Explain)
    assert explained.of == read_query(f"explain -- it\n privacy {sql}")


def test_of_several_statements_each_has_its_own_text() -> None:
    found = read_text("BEGIN;\n SET tacit.half_width = 5; SELECT 1 /* ; */ ;; COMMIT -- done")
    assert [(one.start, one.statement.verb) for one in found] == [
        (0, "BEGIN"),
        (8, "SET"),
        (34, "SELECT"),
        (54, "COMMIT"),
    ]
    assert found[2].statement == Query("SELECT 1")
    assert read_text(" ; -- nothing\n") == ()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT 1; SELECT 2", "Only one statement may be sent at a time"),
        ("INSERT INTO people VALUES (1)", "Only SELECT is supported, not INSERT"),
        ("settle; everything", "Only SELECT is supported, not SETTLE"),
        ('"set" tacit.half_width = 50', "Only SELECT is supported, not SET"),
        ("'set'", "Only SELECT is supported, not SET"),
        ("LISTEN a", "Only SELECT is supported, not LISTEN"),
        ("CALL a()", "Only SELECT is supported, not CALL"),
        ("EXPLAIN PRIVACY SET tacit.epsilon = 1", "Only SELECT is supported, not SET"),
    ],
)
def test_what_is_not_in_the_set_is_refused(sql: str, says: str) -> None:
    with pytest.raises(UnsupportedSql) as caught:
        read_statement(sql)
    assert says in caught.value.explain()
    assert caught.value.hint


def test_only_queries_are_queries() -> None:
    assert read_query("EXPLAIN PRIVACY SELECT 1").start == len("EXPLAIN PRIVACY ")
    for sql in ("SHOW tacit.epsilon", "EXPLAIN PRIVACY CREATE SYNTHETIC TABLE s FROM t"):
        with pytest.raises(UnsupportedSql, match="Only SELECT is supported"):
            read_query(sql)


def test_places_count_from_where_a_statement_begins() -> None:
    with pytest.raises(InvalidSql) as caught:
        read_text("SET tacit.epsilon = 1;\n\n  CREATE SYNTHETIC TABLE s\nFORM t")
    assert str(caught.value.position) == "line 2, column 1"


def test_lengths_are_checked_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_sql: str) -> None:
        raise AssertionError("was read")

    monkeypatch.setattr("planner.sql.words.TACIT.tokenize", never)
    for limits in (ONE_STATEMENT, FILE):
        with pytest.raises(TooLarge, match=f"The {limits.what} has"):
            read_text("é" * (limits.n_bytes // 2 + 1), limits)


def test_a_file_may_hold_what_one_statement_may_not() -> None:
    sql = f"SELECT '{'x' * 1000}';" * 100
    assert len(read_file(sql)) == 100
    with pytest.raises(TooLarge):
        read_text(sql)


def test_equal_texts_are_read_once() -> None:
    sql = "SELECT 'read once'"
    assert read_statement(sql) is read_statement(sql)


# Texts made of many equal pieces: each could make a careless reader go back far.
REPEATED = [
    "/*",
    "/**/",
    "/* * / ",
    "-- x\n",
    "'' ",
    "'",
    '" "',
    "$",
    "$ x ",
    "$a$ ",
    "E'\\'",
    "a.",
    "a ",
    "GROUP ",
    " ",
    "\n",
    ";",
    "SET tacit.epsilon = 1;",
    "BEGIN;",
    "SET x = $a$",
    "(",
    "SELECT version(), ",
    "version(), ",
    "READ ONLY, ",
    "{{",
    "{#",
    "1e",
    "\\",
    "é",
]


@pytest.mark.parametrize("beginning", ["", "SET search_path = ", "BEGIN ", "SELECT "])
@pytest.mark.parametrize("piece", REPEATED)
def test_a_text_of_twice_the_length_takes_twice_the_steps(beginning: str, piece: str) -> None:
    n_pieces = 300

    def read(times: int) -> Callable[[], object]:
        return lambda: read_text(beginning + piece * (n_pieces * times))

    once, twice = (_steps(read(times)) for times in (1, 2))
    assert twice <= 2.2 * once + 2000


def _steps(work: Callable[[], object]) -> int:
    """Lines of Python that a piece of work runs through, without what other tests left behind."""
    n_steps = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        nonlocal n_steps
        n_steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        with uncollected():
            work()
    except Refused:
        pass
    finally:
        sys.settrace(before)
    return n_steps


def test_statements_are_what_a_match_tells_apart() -> None:
    assert read_statement("RESET ALL") == ResetAll()
    assert read_statement("SHOW tacit.epsilon") == ShowSetting("epsilon")
    assert isinstance(read_statement("SET tacit.epsilon = 1"), SetSetting)
    assert read_statement("COMMIT") is TransactionWord.COMMIT
