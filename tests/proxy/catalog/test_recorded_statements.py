"""What clients ask the catalog is answered, with the columns that PostgreSQL itself gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.wire.postgres.pg_types import type_of_arrow
from tests.support.catalog_statements import (
    DEFINITIONS,
    Asked,
    asked_of_catalog,
    catalog_engine,
    numbers_of,
)
from tests.support.postgres import PostgresServer

ASKED: Final = list(asked_of_catalog())
# PostgreSQL's types that the catalog gives as another: one of each kind stands for all of it.
_KINDS: Final = {
    25: (18, 19, 22, 24, 30, 114, 194, 705, 1033, 1042, 1043, 2205, 2206, 2277, 13000),  # texts
    20: (28,),  # numbers of transactions
    701: (1700,),  # numbers with a point
    1009: (1002, 1003, 1015, 1034, 2211),  # lists of texts
}
_SAME: Final = {number: kind for kind, numbers in _KINDS.items() for number in numbers}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("catalog")
    with catalog_engine(folder) as engine:
        yield engine


@pytest.fixture(scope="module")
def numbers(engine: Engine) -> dict[str, int]:
    def number(sql: str) -> int:
        (row,) = engine.answer(QueryRequest(sql=sql)).data.to_pylist()
        return int(row["oid"])

    return numbers_of(number)


def test_there_are_statements_of_every_client() -> None:
    assert len(ASKED) > 250
    assert len({asked.client.split()[0] for asked in ASKED}) > 10


@pytest.mark.parametrize("asked", ASKED, ids=[asked.client for asked in ASKED])
def test_it_is_answered_for_nothing(engine: Engine, numbers: dict[str, int], asked: Asked) -> None:
    request = QueryRequest(sql=asked.of(numbers))
    answer = engine.answer(request)
    assert answer.receipt is None
    assert answer.data.schema == engine.result_schema(request)
    assert engine.budgets(LOCAL)[0].spent == 0


def test_columns_are_those_of_a_real_server(
    engine: Engine, numbers: dict[str, int], postgres_server: PostgresServer
) -> None:
    wrong = []
    with postgres_server.connect() as admin:
        admin.execute("CREATE DATABASE catalog")
    with postgres_server.connect("catalog") as real:
        real.execute(DEFINITIONS)

        def number(sql: str) -> int:
            (found,) = real.execute(sql).fetchone() or ()
            return int(found)

        of_the_server = numbers_of(number)
        for asked in ASKED:
            described = real.execute(asked.of(of_the_server)).description or ()
            theirs = [(one.name, _kind(one.type_code)) for one in described]
            answer = engine.answer(QueryRequest(sql=asked.of(numbers))).data
            ours = [(one.name, _kind(type_of_arrow(one.type).oid)) for one in answer.schema]
            if ours != theirs:
                differ = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]]
                wrong.append((asked.client, asked.sql[:100], len(ours), len(theirs), differ))
    assert not wrong, "\n".join(map(str, wrong))


def _kind(number: int) -> int:
    return _SAME.get(number, number)
