"""COPY (query) TO STDOUT in the forms that clients send; every other COPY is refused."""

import pytest

from cube.refusals import InvalidSql, ReadOnly, Refused
from planner.sql.cursors import CopyFormat, CopyOut
from planner.sql.statements import read_statement

# By the text: what it is.
REFUSED = {
    "COPY t TO STDOUT": ReadOnly,
    "COPY t FROM STDIN": ReadOnly,
    "COPY () TO STDOUT": ReadOnly,
    "COPY (SELECT 1": ReadOnly,
    "COPY (SELECT 1) TO '/a/file'": ReadOnly,
    "COPY (SELECT 1) TO PROGRAM 'x'": ReadOnly,
    "COPY (SELECT 1) TO STDOUT (FORMAT parquet)": InvalidSql,
    "COPY (SELECT 1) TO STDOUT (FORCE_QUOTE *)": InvalidSql,
    "COPY (SELECT 1) TO STDOUT (FORMAT csv": InvalidSql,
    "COPY (SELECT 1) TO STDOUT QUICKLY": InvalidSql,
    "COPY (SELECT 1) TO STDOUT CSV now": InvalidSql,
}


@pytest.mark.parametrize(
    ("sql", "form", "has_header"),
    [
        ("COPY (SELECT 1) TO STDOUT", CopyFormat.TEXT, False),
        ("COPY (SELECT 1) TO STDOUT (FORMAT binary)", CopyFormat.BINARY, False),
        ("copy (SELECT 1) to stdout with (format 'csv', header)", CopyFormat.CSV, True),
        ("COPY (SELECT 1) TO STDOUT WITH (HEADER true, FORMAT csv);", CopyFormat.CSV, True),
        ("COPY (SELECT 1) TO STDOUT (FORMAT csv, HEADER off)", CopyFormat.CSV, False),
        ("COPY (SELECT 1) TO STDOUT WITH CSV HEADER", CopyFormat.CSV, True),
        ("COPY (SELECT 1) TO STDOUT WITH BINARY", CopyFormat.BINARY, False),
    ],
)
def test_the_answer_of_a_query_is_copied(sql: str, form: CopyFormat, has_header: bool) -> None:
    assert read_statement(sql) == CopyOut("      SELECT 1", form, has_header)


def test_the_query_keeps_its_place_and_its_parentheses() -> None:
    statement = read_statement("COPY (SELECT (1)\n  FROM (t)) TO STDOUT")
    assert statement == CopyOut("      SELECT (1)\n  FROM (t)")


@pytest.mark.parametrize("sql", REFUSED)
def test_everything_else_is_refused_with_the_way_out(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        read_statement(sql)
    assert type(caught.value) is REFUSED[sql]
    assert caught.value.hint
