"""What the catalog shows and does is bounded: no data, nothing hidden, listed functions alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

import pyarrow as pa
import pytest

from accountant.gate.gate import Gate
from cube.refusals import Refused, UnknownName
from proxy.api.requests import LOCAL, QueryRequest
from proxy.catalog.pg_relations import PG_ROWS
from proxy.catalog.world import relations
from proxy.engine.engine import Engine
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.public.table import PublicTable
from tests.support.catalog_statements import Asked, asked_of_catalog, catalog_engine, numbers_of
from tests.support.worlds import people_served, random_rows

NOBODY: Final = replace(LOCAL, tables=())
HIDDEN: Final = ("people", "visits")  # a private table, and a column of it


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("catalog")
    with catalog_engine(folder) as engine:
        yield engine


def rows(engine: Engine, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = engine.answer(QueryRequest(sql=sql)).data.to_pylist()
    return found


def test_no_relation_shows_what_was_not_granted(engine: Engine) -> None:
    shown = 0
    for schema, name in relations():
        sql = f"SELECT * FROM {schema}.{name}"  # noqa: S608 - the catalog's own names
        hidden = engine.answer(QueryRequest(sql=sql, caller=NOBODY)).data
        values = {str(value) for column in hidden.columns for value in column.to_pylist()}
        assert not values & set(HIDDEN), sql
        assert not any("people" in value for value in values), sql
        everything = engine.answer(QueryRequest(sql=sql)).data
        shown += any("people" in column.to_pylist() for column in everything.columns)
    assert shown > 5  # the search finds what is there to be found


def test_a_name_that_was_not_granted_is_like_one_that_is_not_there(engine: Engine) -> None:
    messages = []
    for name in ("people", "peoplf"):
        request = QueryRequest(sql=f"SELECT '{name}'::regclass::oid", caller=NOBODY)
        with pytest.raises(UnknownName) as caught:
            engine.answer(request)
        messages.append(caught.value.message.replace(name, "x"))
    assert messages[0] == messages[1]
    asked = QueryRequest(sql="SELECT to_regclass('people') AS there", caller=NOBODY)
    assert engine.answer(asked).data.to_pylist() == [{"there": None}]


@pytest.mark.parametrize("part", range(3))
def test_no_question_to_the_catalog_reaches_a_source_or_a_gate(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """In three parts, each as long as a fast test may be."""

    def number(sql: str) -> int:
        return int(rows(engine, sql)[0]["oid"])

    numbers = numbers_of(number)

    def reached(*_: object, **__: object) -> NoReturn:
        raise AssertionError

    monkeypatch.setattr(DuckDbSource, "measure", reached)
    for name in [name for name in vars(Gate) if not name.startswith("_")]:
        if callable(getattr(Gate, name)):
            monkeypatch.setattr(Gate, name, reached)
    asked: list[Asked] = list(asked_of_catalog())
    for one in asked[part::3]:
        engine.answer(QueryRequest(sql=one.of(numbers)))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pg_class, read_csv('/etc/passwd')",
        "SELECT relname, read_text('/etc/passwd') FROM pg_class",
        "SELECT getenv('HOME'), relname FROM pg_class",
        "SELECT version(), getenv('HOME')",
        "SELECT repeat('x', 1000000000), relname FROM pg_class",
        "SELECT * FROM pg_class, duckdb_settings()",
        "SELECT * FROM pg_catalog.duckdb_settings",
        "SELECT * FROM pg_catalog.pragma_database_list()",
        "SELECT * FROM pg_catalog.pg_class, tacit.definitions",
        "SELECT * FROM information_schema.tables, main.sqlite_master",
        "SELECT pg_sleep(100), version()",
        "SELECT pg_read_file('/etc/passwd'), version()",
        "SELECT pg_terminate_backend(pg_backend_pid())",
        "SELECT lo_import('/etc/passwd'), version()",
        "SELECT relname INTO other FROM pg_class",
        "SELECT relname OPERATOR(pg_catalog.<->) 'x' FROM pg_class",
        "SELECT 'nothing'::regproc::oid",
        "SELECT relname FROM pg_class, people",
        "SELECT relname FROM pg_class WHERE relname = (SELECT city FROM people LIMIT 1)",
        "SELECT * FROM generate_series(1, 1000000000000) AS n, pg_class",
        "SELECT generate_series(1, 1000000000000), version()",
    ],
)
def test_what_would_reach_further_is_refused(engine: Engine, sql: str) -> None:
    request = QueryRequest(sql=sql)
    with pytest.raises(Refused) as caught:
        engine.answer(request)
    assert "passwd:" not in caught.value.explain()
    with pytest.raises(Refused):
        engine.result_schema(request)


def test_sizes_are_unknown(engine: Engine) -> None:
    sizes = rows(
        engine,
        "SELECT pg_relation_size(oid) AS a, pg_total_relation_size(oid) AS b, reltuples AS c "
        "FROM pg_class WHERE relname IN ('people', 'cities')",
    )
    assert [tuple(row.values()) for row in sizes] == [(None, None, -1.0)] * 2


def test_a_caller_may_read_and_do_no_more(engine: Engine) -> None:
    asked = "has_table_privilege('people', '{0}')"
    for privilege, is_granted in {
        "SELECT": True,
        "INSERT": False,
        "update": False,
        "delete, truncate": False,
        "SELECT WITH GRANT OPTION": False,
    }.items():
        (row,) = rows(engine, f"SELECT {asked.format(privilege)} AS granted")
        assert row == {"granted": is_granted}, privilege


def test_rows_have_the_columns_of_their_relations(engine: Engine) -> None:
    for name in PG_ROWS:
        sql = f"SELECT * FROM pg_catalog.{name}"  # noqa: S608 - the catalog's own names
        data = engine.answer(QueryRequest(sql=sql)).data
        assert data.schema.names == relations()["pg_catalog", name].names
        assert data.num_rows > 0


def test_vectors_are_written_as_postgresql_writes_them(engine: Engine) -> None:
    found = rows(engine, "SELECT indkey, indkey AS keys, indkey[0] AS first FROM pg_index")
    assert found == [{"indkey": "1", "keys": "1", "first": 1}]
    beyond = rows(engine, "SELECT indkey[1] AS a, indkey[-1] AS b, conkey[0] AS c, conkey[1] AS d "
                  "FROM pg_index CROSS JOIN pg_constraint")  # fmt: skip
    assert beyond == [{"a": None, "b": None, "c": None, "d": 1}]
    (row,) = rows(engine, "SELECT * FROM pg_index")
    assert row["indoption"] == "0"
    assert rows(engine, "SELECT conkey FROM pg_constraint") == [{"conkey": [1]}]


def test_a_key_is_told_of_in_sql(engine: Engine) -> None:
    found = rows(
        engine,
        "SELECT pg_get_indexdef(indexrelid) AS made, pg_get_indexdef(indexrelid, 1, true) AS of, "
        "pg_get_constraintdef(c.oid) AS said FROM pg_index i JOIN pg_constraint c "
        "ON c.conindid = i.indexrelid",
    )
    made = "CREATE UNIQUE INDEX cities_pkey ON public.cities USING btree (city)"
    assert found == [{"made": made, "of": "city", "said": "PRIMARY KEY (city)"}]


def test_a_key_of_several_columns_is_told_of_in_its_order(tmp_path: Path) -> None:
    offers = PublicTable(
        "offers", ("Seller", "part"), pa.table({"part": [1], "cost": [2], "Seller": ["x"]})
    )
    with people_served(tmp_path, random_rows(20)) as table:
        engine = Engine({table.info.schema.table: table}, [offers])
        (index,) = rows(engine, "SELECT indnatts, indkey, indoption, indclass FROM pg_index")
        assert index == {"indnatts": 2, "indkey": "3 1", "indoption": "0 0", "indclass": "0 0"}
        (constraint,) = rows(
            engine, "SELECT conkey, pg_get_constraintdef(oid) AS said FROM pg_constraint"
        )
        assert constraint == {"conkey": [3, 1], "said": 'PRIMARY KEY ("Seller", part)'}
        (made,) = rows(
            engine,
            "SELECT pg_get_indexdef(indexrelid) AS made, "
            "pg_get_indexdef(indexrelid, 1, true) AS a, "
            "pg_get_indexdef(indexrelid, 2, true) AS b FROM pg_index",
        )
        assert made == {
            "made": 'CREATE UNIQUE INDEX offers_pkey ON public.offers USING btree ("Seller", part)',
            "a": '"Seller"',
            "b": "part",
        }
        attributes = rows(
            engine,
            "SELECT attname, attnum FROM pg_attribute JOIN pg_index ON attrelid = indexrelid "
            "ORDER BY attnum",
        )
        assert attributes == [
            {"attname": "Seller", "attnum": 1},
            {"attname": "part", "attnum": 2},
        ]
        usage = rows(
            engine,
            "SELECT k.column_name, k.ordinal_position "
            "FROM information_schema.key_column_usage AS k "
            "JOIN information_schema.table_constraints AS t USING (constraint_name) "
            "WHERE t.constraint_type = 'PRIMARY KEY' ORDER BY 2",
        )
        assert usage == [
            {"column_name": "Seller", "ordinal_position": 1},
            {"column_name": "part", "ordinal_position": 2},
        ]
