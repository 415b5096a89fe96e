"""BEGIN, COMMIT, ROLLBACK and DISCARD ALL, in the forms that clients send."""

import pytest

from cube.refusals import InvalidSql
from planner.sql.statements import (
    DiscardAll,
    Savepoint,
    SavepointWord,
    TransactionWord,
    Unlisten,
    read_statement,
)

# By the text: where it stops being one of them.
REFUSED = {
    "BEGIN READ": "line 1, column 7",
    "COMMIT WORK TRANSACTION": "line 1, column 13",
    "COMMIT PREPARED 'x'": "line 1, column 8",
    "ROLLBACK TO SAVEPOINT a b": "line 1, column 25",
    "SAVEPOINT 'a'": "line 1, column 11",
    "RELEASE": "line 1, column 1",
    "ROLLBACK AND": "line 1, column 10",
    "END IF": "line 1, column 5",
    "DISCARD": "line 1, column 1",
    "DISCARD\nPLANTS": "line 2, column 1",
    "DISCARD ALL ALL": "line 1, column 13",
    "UNLISTEN": "line 1, column 1",
    "UNLISTEN * a": "line 1, column 12",
}


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("BEGIN", TransactionWord.BEGIN),
        ("begin work;", TransactionWord.BEGIN),
        ("BEGIN TRANSACTION READ ONLY", TransactionWord.BEGIN),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", TransactionWord.BEGIN),
        (
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, NOT DEFERRABLE",
            TransactionWord.BEGIN,
        ),
        ("COMMIT", TransactionWord.COMMIT),
        ("END WORK AND NO CHAIN", TransactionWord.COMMIT),
        ("ROLLBACK", TransactionWord.ROLLBACK),
        ("/* x */ ABORT TRANSACTION AND CHAIN -- y", TransactionWord.ROLLBACK),
        ("DISCARD ALL", DiscardAll()),
        ("DISCARD TEMP", DiscardAll(is_everything=False)),
        ("UNLISTEN *", Unlisten()),
        ('unlisten "my channel"', Unlisten()),
        ("SAVEPOINT A", Savepoint(SavepointWord.SET, "a")),
        ('RELEASE "A"', Savepoint(SavepointWord.RELEASE, "A")),
        ("RELEASE SAVEPOINT a", Savepoint(SavepointWord.RELEASE, "a")),
        ("ROLLBACK TO a", Savepoint(SavepointWord.ROLLBACK_TO, "a")),
        ("rollback work to savepoint a;", Savepoint(SavepointWord.ROLLBACK_TO, "a")),
    ],
)
def test_words_are_read_in_every_form(sql: str, word: object) -> None:
    assert read_statement(sql) == word


@pytest.mark.parametrize("sql", REFUSED)
def test_what_goes_on_otherwise_is_pointed_at(sql: str) -> None:
    with pytest.raises(InvalidSql, match="has a syntax error") as caught:
        read_statement(sql)
    assert str(caught.value.position) == REFUSED[sql]
    assert caught.value.hint
