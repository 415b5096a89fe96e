"""A few rows of a private table, where its owner lets a synthetic one stand for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cube.refusals import PrivateRows, UnknownName
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from tests.support.synthetic import asked, spent, synthetic_engine

MAKE = "CREATE SYNTHETIC TABLE s FROM people WITH (epsilon => 1, rows => 50)"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with synthetic_engine(tmp_path, previews=("people",)) as engine:
        yield engine


def answer(engine: Engine, sql: str) -> QueryResult:
    request = QueryRequest(sql=sql)
    result = engine.answer(request)
    assert result.data.schema.remove_metadata().equals(engine.result_schema(request))
    return result


def columns_of_people(engine: Engine) -> list[str]:
    (info,) = (one for one in engine.tables(LOCAL) if one.schema.table == "people")
    return [axis.name for axis in info.schema.axes]


def test_rows_come_from_the_newest_synthetic_table_for_nothing(engine: Engine) -> None:
    asked(engine, MAKE)
    before = spent(engine)
    result = answer(engine, "SELECT * FROM people LIMIT 20")
    assert result.data.num_rows == 20
    assert result.data.column_names == columns_of_people(engine)
    assert result.receipt is not None
    assert result.receipt.epsilon_spent == 0
    (note,) = result.receipt.notes
    assert "synthetic table s" in note
    assert spent(engine) == before


def test_columns_conditions_order_and_wrappers_work_as_on_rows(engine: Engine) -> None:
    asked(engine, MAKE)
    rows = answer(
        engine,
        "SELECT city, member FROM public.people WHERE city IS NOT NULL ORDER BY city LIMIT 2000",
    ).data.to_pylist()
    assert [row["city"] for row in rows] == sorted(row["city"] for row in rows)
    assert rows
    wrapped = "SELECT * FROM (SELECT city FROM people) AS virtual_table LIMIT 10"
    assert answer(engine, wrapped).data.num_rows == 10


def test_a_column_that_the_synthetic_table_has_not_is_null(engine: Engine) -> None:
    asked(engine, MAKE.replace("rows => 50", "rows => 50, columns => (city, member)"))
    result = answer(engine, "SELECT * FROM people LIMIT 5").data
    assert result.column_names == columns_of_people(engine)
    assert result.column("age").null_count == 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM people",
        "SELECT * FROM people LIMIT 10001",
        "SELECT age FROM people ORDER BY age",
    ],
)
def test_more_than_a_look_is_refused(engine: Engine, sql: str) -> None:
    asked(engine, MAKE)
    with pytest.raises(PrivateRows):
        answer(engine, sql)


def test_without_a_synthetic_table_it_is_refused_with_the_way_out(engine: Engine) -> None:
    with pytest.raises(PrivateRows) as caught:
        answer(engine, "SELECT * FROM people LIMIT 20")
    assert "CREATE SYNTHETIC TABLE" in str(caught.value.hint)


def test_an_owner_who_has_not_allowed_it_shows_none(tmp_path: Path) -> None:
    with synthetic_engine(tmp_path) as engine:
        asked(engine, MAKE)
        with pytest.raises(PrivateRows):
            answer(engine, "SELECT * FROM people LIMIT 20")


def test_a_wrong_name_is_named(engine: Engine) -> None:
    asked(engine, MAKE)
    with pytest.raises(UnknownName):
        answer(engine, "SELECT town FROM people LIMIT 20")
