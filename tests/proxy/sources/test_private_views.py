"""Private views: what they give, what they refuse, what stays inside."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import PrivateView, SourceLocation
from tests.support.loaded import database_of
from tests.support.shop import (
    AGE,
    CANARY,
    SPENT,
    VISITS,
    refusal,
    rows,
    schema_of,
    view_of,
    write_shop,
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_shop(tmp_path)


def test_a_view_is_counted_as_the_table_it_gives(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE, VISITS, SPENT, unit="ID"), view_of(shop))
    assert rows(source, "age", "visits", "spent") == [(30, 0, 0, 1), (30, 2, 100, 1), (41, 2, 7, 1)]
    assert rows(source, "age") == [(30, 2), (41, 1)]


def test_a_view_gives_what_duckdb_gives_on_the_same_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    lines = [f"{rng.integers(0, 300)},{rng.integers(-20, 60)}" for _ in range(2000)]
    (tmp_path / "visits.csv").write_text("\n".join(["person,amount", *lines]))
    sql = (
        "SELECT person, count(*) AS visits, sum(CAST(amount AS BIGINT)) AS spent "
        "FROM visits GROUP BY ALL"
    )
    axes = (IntegerAxis(name="visits", low=0, high=30), SPENT)
    visits = SourceLocation(path=tmp_path / "visits.csv")
    view = PrivateView(sql=sql, sources=(("visits", visits),))
    found = rows(
        DuckDbSource(schema_of(*axes, unit="person", n_records_max=1000), view), "visits", "spent"
    )
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW visits AS FROM '{visits.path}'")
        expected = connection.execute(
            "SELECT visits, greatest(0, least(100, spent)) AS spent, count(*) "  # noqa: S608 - this test's own text
            f"FROM ({sql}) GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    assert found == expected
    assert len(found) > 100


def test_a_view_that_joins_the_rows_of_a_person_may_have_several(shop: Path) -> None:
    """What a refused join of private tables advises: two orders of a, and two of b, of whom one."""
    joined = (
        "SELECT id, CAST(age AS INTEGER) AS age, amount AS spent FROM people JOIN orders USING (id)"
    )
    several = replace(schema_of(AGE, SPENT, unit="id"), rows_per_unit_max=2)
    found = rows(DuckDbSource(several, view_of(shop, joined), RowsRead(b"k" * 32)), "age")
    assert found == [(30, 2), (41, 2)]
    one = replace(several, rows_per_unit_max=1)
    assert "or declare rows_per_unit_max" in refusal(one, view_of(shop, joined))


def test_two_tables_of_one_database_file_may_be_joined(shop: Path) -> None:
    other = SourceLocation(path=shop / "shop.duckdb", source_table="other")
    sql = "SELECT one AS age FROM other UNION ALL SELECT amount FROM orders WHERE amount = 7"
    source = DuckDbSource(schema_of(AGE), view_of(shop, sql, other=other))
    assert rows(source, "age") == [(1, 1), (7, 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS age; SELECT 2 AS age",
        "CREATE TABLE x AS SELECT 1 AS age",
        "COPY people TO 'copied.csv'",
        "SET threads = 4",
        "-- nothing",
    ],
)
def test_a_view_is_one_select(shop: Path, sql: str) -> None:
    said = refusal(schema_of(AGE), view_of(shop, sql))
    assert said.startswith("tables.people.view: is not one SELECT statement.")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELEC '{CANARY}'", "is not SQL that DuckDB can parse"),
        (
            f"SELECT {CANARY}::INTEGER + age AS age FROM nobody",  # noqa: S608 - a fixed text
            "tables.people.view: names a table nobody that is not among its sources. Its sources",
        ),
        (
            "SELECT agee AS age FROM people",
            (
                "tables.people.view: names a column agee that its sources do not have. "
                "people has what its first line says; orders has id, amount."
            ),
        ),
        ("SELECT p.nothing AS age FROM people p", "a column nothing that its sources do not have"),
        ("SELECT nobody.age FROM people", "a table nobody that is not among its sources"),
        ("SELECT sum(age) AS age FROM people", "calls sum, which DuckDB does not have for"),
        ("SELECT frob(age) AS age FROM people", "calls frob, which DuckDB does not have for"),
        ("SELECT id, count(*) AS age FROM people", "selects id, which is neither grouped by nor"),
        (
            "SELECT age.nothing.more AS age FROM people",
            "names columns or tables that its sources do not have, or does not fit their types",
        ),
        ("SELECT CAST(name AS DATE) AS age FROM people", "fails on the rows of its sources"),
        ("SELECT error(name) AS age FROM people", "fails on the rows of its sources"),
        ("SELECT 1 AS age, 2 AS AGE", "gives two columns with the same name"),
        (
            "SELECT age FROM people",
            (
                "tables.people.columns.age: is VARCHAR in the source, which does not fit the "
                "declared kind; the view may give CAST(age AS BIGINT)"
            ),
        ),
        (
            "SELECT 1 AS years, 2 AS aged",
            (
                "tables.people.columns.age: the view has no such column; it has years, aged. Did "
                "you mean 'aged'?"
            ),
        ),
    ],
)
def test_a_view_that_fails_is_refused_by_stage_without_a_word_of_its_rows(
    shop: Path, sql: str, expected: str
) -> None:
    assert expected in refusal(schema_of(AGE), view_of(shop, sql))


def test_columns_that_are_guessed_from_rows_are_not_listed(shop: Path) -> None:
    """A view that reads its file by itself may give columns the names of values."""
    people = shop / "people.csv"
    people.write_text(f"id,age\nname_{CANARY},1\nname_{CANARY},2\n")
    sql = f"SELECT name_ AS age FROM read_csv('{people}', skip = 1, header = true)"  # noqa: S608 - a path of this test
    said = refusal(schema_of(AGE), view_of(shop, sql))
    assert said.startswith("tables.people.view: names a column name_ that its sources do not have")
    assert said.endswith("people has what its first line says; orders has id, amount.")


def test_the_first_line_of_a_csv_file_is_never_shown(shop: Path) -> None:
    """A file without a header line begins with a person's row."""
    (shop / "people.csv").write_text(f"a,30,{CANARY}\nb,41,x\n")
    for sql in ("SELECT agee AS age FROM people", "SELECT * FROM people"):
        assert CANARY not in refusal(schema_of(AGE), view_of(shop, sql))


def test_a_damaged_source_is_refused_without_a_word_of_it(shop: Path) -> None:
    (shop / "people.csv").write_text(f"id,age\na,1,{CANARY}\n")
    assert "has lines with more fields" in refusal(schema_of(AGE), view_of(shop))
    (shop / "people.csv").write_bytes(b"\xff\xfe" + CANARY.encode())
    assert "is not text in utf-8" in refusal(schema_of(AGE), view_of(shop))
    (shop / "shop.duckdb").write_text(CANARY * 1000)
    (shop / "people.csv").write_text("id,age\na,1\n")
    assert "tables.people.sources: cannot be read" in refusal(schema_of(AGE), view_of(shop))
    (shop / "people.csv").unlink()
    assert "cannot be read" in refusal(schema_of(AGE), view_of(shop))


def test_a_view_reaches_its_own_files_and_nothing_else(shop: Path) -> None:
    secret = shop / "secret.csv"
    secret.write_text("age\n1\n")
    local_table = {"age": np.array([1])}
    assert local_table["age"].size == 1
    for sql in (
        f"FROM read_csv('{secret}')",
        f"FROM '{secret}'",
        f"SELECT 1 AS age FROM read_text('{secret}')",  # noqa: S608 - a path of this test
        f"SELECT 1 AS age FROM glob('{shop}/*')",  # noqa: S608 - a path of this test
        "SELECT 1 AS age FROM read_csv('https://localhost/a.csv')",
        "FROM local_table",
    ):
        said = refusal(schema_of(AGE), view_of(shop, sql))
        assert re.match(r"tables\.people\.view: names .* its sources", said)
    people = shop / "people.csv"
    own = f"SELECT CAST(age AS INTEGER) AS age FROM '{people}'"  # noqa: S608 - a path of this test
    assert rows(DuckDbSource(schema_of(AGE), view_of(shop, own)), "age") == [(30, 2), (41, 1)]


def test_what_is_held_of_a_view_is_positions_of_declared_columns_only(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE, unit="id"), view_of(shop))
    assert database_of(source).execute("SHOW ALL TABLES").fetchall()[0][2] == "cells"
    assert len(database_of(source).execute("SHOW ALL TABLES").fetchall()) == 1
    assert CANARY not in repr(vars(source))
    for attempt in (f"FROM read_csv('{shop / 'people.csv'}')", f"ATTACH '{shop / 'shop.duckdb'}'"):
        with pytest.raises(duckdb.Error):
            database_of(source).execute(attempt)
    (shop / "people.csv").unlink()
    assert rows(source, "age") == [(30, 2), (41, 1)]


@pytest.mark.parametrize(
    "changed",
    [
        {"sql": ""},
        {"sources": ()},
        {"sources": (("", SourceLocation(path=Path("a.csv"))),)},
        {"sources": (("a\n", SourceLocation(path=Path("a.csv"))),)},
        {"sources": tuple((name, SourceLocation(path=Path("a.csv"))) for name in "aA")},
    ],
)
def test_a_view_checks_itself(changed: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "sql": "SELECT 1 AS age",
        "sources": (("a", SourceLocation(path=Path("a.csv"))),),
    }
    PrivateView(**good)
    with pytest.raises(ValueError, match=r"view|source"):
        PrivateView(**{**good, **changed})


def test_text_that_a_view_casts_may_be_of_any_kind(shop: Path) -> None:
    axes = (CategoryAxis(name="kind", values=("x", "y")), AGE)
    sql = "SELECT 'y'::ENUM('z', 'y') AS kind, CAST(sum(amount) AS HUGEINT) AS age FROM orders"
    assert rows(DuckDbSource(schema_of(*axes), view_of(shop, sql)), "kind", "age") == []
    wide = (axes[0], IntegerAxis(name="age", low=0, high=200))
    assert rows(DuckDbSource(schema_of(*wide), view_of(shop, sql)), "kind", "age") == [(1, 127, 1)]
