"""What there is, in SQL: tools find the tables that their user may know of, and no others."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cube.refusals import UnknownName
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from tests.support.worlds import SCHEMA, people_engine, random_rows

SPOKEN = {"BIGINT": "bigint", "VARCHAR": "text", "BOOLEAN": "boolean"}
NOBODY = replace(LOCAL, tables=())


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, random_rows(20)) as engine:
        yield engine


def rows(engine: Engine, sql: str) -> list[dict[str, Any]]:
    result = engine.answer(QueryRequest(sql=sql))
    assert result.receipt is None
    assert result.data.schema == engine.result_schema(QueryRequest(sql=sql))
    found: list[dict[str, Any]] = result.data.to_pylist()
    return found


def test_tables_and_columns_are_listed(engine: Engine) -> None:
    sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    assert rows(engine, sql) == [{"table_name": "people"}]
    columns = rows(
        engine,
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_name = 'people' ORDER BY ordinal_position",
    )
    assert [tuple(row.values()) for row in columns] == [
        (axis.name, SPOKEN[axis.sql_type], "YES" if axis.null else "NO") for axis in SCHEMA.axes
    ]
    assert rows(engine, "DESCRIBE people") == columns
    schemas = rows(engine, "SELECT schema_name FROM information_schema.schemata")
    assert {"schema_name": "data_privacy"} in schemas


def test_short_statements_list_the_same(engine: Engine) -> None:
    names = [row["table_name"] for row in rows(engine, "SHOW TABLES")]
    assert {"people", "budgets", "history"} <= set(names)


def test_pg_catalog_is_joined_as_tools_join_it(engine: Engine) -> None:
    sql = (
        "SELECT c.relname FROM pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind = 'r' AND n.nspname = 'public'"
    )
    assert rows(engine, sql) == [{"relname": "people"}]


def test_a_table_that_one_may_not_know_of_is_not_listed(engine: Engine) -> None:
    sql = "SELECT COUNT(*) AS n FROM information_schema.columns WHERE table_name = 'people'"
    hidden = engine.answer(QueryRequest(sql=sql, caller=NOBODY)).data.to_pylist()
    assert hidden == [{"n": 0}]
    assert rows(engine, sql) == [{"n": len(SCHEMA.axes)}]


def test_a_view_that_is_not_there_is_named_with_those_that_are(engine: Engine) -> None:
    with pytest.raises(UnknownName, match=r"no table information_schema\.tabels.*"):
        rows(engine, "SELECT * FROM information_schema.tabels")


def test_a_name_of_with_hides_a_view_of_pg_catalog(engine: Engine) -> None:
    assert rows(engine, "WITH pg_class AS (SELECT 1 AS a) SELECT a FROM pg_class") == [{"a": 1}]
