"""Cursors and prepared statements in words, in the forms that PostgreSQL's clients send."""

import pytest

from cube.refusals import InvalidSql, Refused
from planner.sql.cursors import (
    N_ROWS_ALL,
    CloseCursor,
    Deallocate,
    DeclareCursor,
    ExecutePrepared,
    FetchRows,
    PrepareQuery,
)
from planner.sql.parameters import Parameter, ParameterKind
from planner.sql.statements import read_statement

REFUSED = (
    "DECLARE c",
    "DECLARE c CURSOR",
    "DECLARE 'c' CURSOR FOR SELECT 1",
    "DECLARE c CURSOR FOR",
    "FETCH BACKWARD 5 FROM c",
    "FETCH -1 FROM c",
    "FETCH 5 FROM c AND d",
    "FETCH",
    "CLOSE",
    "CLOSE c d",
    "PREPARE s",
    "PREPARE s (int",
    "EXECUTE s (1 + 1)",
    "EXECUTE s (1",
    "EXECUTE s (a)",
    "EXECUTE s (",
    "DEALLOCATE s s",
)


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        (
            "DECLARE C BINARY INSENSITIVE NO SCROLL CURSOR WITH HOLD FOR\nSELECT 1",
            DeclareCursor("c", " " * 59 + "\nSELECT 1", is_held=True),
        ),
        ('DECLARE "C" CURSOR FOR SELECT 1', DeclareCursor("C", " " * 23 + "SELECT 1", False)),
        ("FETCH c", FetchRows("c", 1)),
        ("FETCH NEXT FROM c", FetchRows("c", 1)),
        ("FETCH FORWARD 20 IN c", FetchRows("c", 20)),
        ("FETCH 99999999999 FROM c", FetchRows("c", N_ROWS_ALL)),
        ("FETCH FORWARD ALL FROM c", FetchRows("c", N_ROWS_ALL)),
        ("MOVE 3 FROM c", FetchRows("c", 3, is_move=True)),
        ("CLOSE c", CloseCursor("c")),
        ("CLOSE ALL", CloseCursor(None)),
        ("PREPARE s AS SELECT 1", PrepareQuery("s", (), " " * 13 + "SELECT 1")),
        (
            "PREPARE s (double precision, INT) AS SELECT $1",
            PrepareQuery("s", ("DOUBLE PRECISION", "INT"), " " * 37 + "SELECT $1"),
        ),
        ("EXECUTE s", ExecutePrepared("s", ())),
        (
            "EXECUTE s(-1.5, 'a', true, NULL)",
            ExecutePrepared(
                "s",
                (
                    Parameter(ParameterKind.NUMBER, "-1.5"),
                    Parameter(ParameterKind.TEXT, "a"),
                    Parameter(ParameterKind.BOOLEAN, "true"),
                    Parameter(ParameterKind.NULL),
                ),
            ),
        ),
        ("DEALLOCATE PREPARE s", Deallocate("s")),
        ("DEALLOCATE ALL", Deallocate(None)),
    ],
)
def test_statements_are_read_in_every_form(sql: str, statement: object) -> None:
    assert read_statement(sql) == statement


@pytest.mark.parametrize("sql", REFUSED)
def test_what_goes_on_otherwise_is_refused_with_the_way_out(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        read_statement(sql)
    assert caught.value.hint


def test_a_query_keeps_its_place_in_the_text() -> None:
    with pytest.raises(InvalidSql) as caught:
        read_statement("DECLARE c CURSOR\n  FROM SELECT 1")
    assert str(caught.value.position) == "line 2, column 3"
