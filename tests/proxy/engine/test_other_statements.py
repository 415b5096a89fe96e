"""Statements that are no queries: what they give, their columns, and what explaining them says."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from accountant.ledger.limits import Payer
from cube.refusals import UnsupportedSql
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.engine.explain import EXPLANATION_SCHEMA
from proxy.engine.visibility import VERSION
from tests.support.worlds import people_engine, random_rows

ALICE = replace(LOCAL, payer=Payer("alice"))
FACTS = "SELECT pg_catalog.version(), current_schema(), current_database() AS db, current_user"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, random_rows(50)) as engine:
        yield engine


def test_facts_of_the_server_are_told_for_nothing(engine: Engine) -> None:
    request = QueryRequest(sql=FACTS, caller=ALICE)
    release = engine.answer(request)
    assert release.data.to_pylist() == [
        {"version": VERSION, "current_schema": "public", "db": "tacit", "current_user": "alice"}
    ]
    assert release.receipt is None
    assert release.data.schema == engine.result_schema(request)
    explanation = engine.explain(request)
    assert explanation.epsilon == 0
    assert explanation.data.num_rows == 0
    assert explanation.data.schema == EXPLANATION_SCHEMA
    assert engine.budgets(LOCAL)[0].spent == 0


def test_the_version_is_one_that_clients_can_read() -> None:
    assert VERSION.startswith("PostgreSQL 15.0 (Tacit ")


@pytest.mark.parametrize(
    "sql", ["SET tacit.epsilon = 1", "RESET ALL", "SHOW tacit.epsilon", "COMMIT", "DISCARD ALL"]
)
def test_what_is_about_a_session_is_not_the_engines(engine: Engine, sql: str) -> None:
    request = QueryRequest(sql=sql)
    for ask in (engine.answer, engine.explain, engine.result_schema):
        verb, *_ = sql.split()
        with pytest.raises(UnsupportedSql, match=f"not {verb}"):
            ask(request)


def test_explaining_a_statement_gives_the_columns_that_are_promised(engine: Engine) -> None:
    for sql in ("SELECT COUNT(*) FROM people", "SELECT * FROM data_privacy.budgets"):
        request = QueryRequest(sql=f"EXPLAIN PRIVACY {sql}")
        assert engine.answer(request).data.schema == engine.result_schema(request)
        assert engine.answer(request).data == engine.explain(QueryRequest(sql=sql)).data
