"""EXPLAIN in PostgreSQL's forms says what our table says, and never runs the statement."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from accountant.noise.lattice_noise import SystemNoise
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.engine.explain import PLAN_SCHEMA
from tests.sql import world
from tests.support.fakes import KnownTable

COUNTS = "SELECT city, COUNT(*) AS n, SUM(cost) AS s FROM patients GROUP BY city"
LINES = (
    "ANALYZE",
    "VERBOSE",
    "ANALYZE VERBOSE",
    "(COSTS off)",
    "(ANALYZE, BUFFERS true, FORMAT text)",
)


@pytest.fixture
def source() -> KnownTable:
    return KnownTable(world.SCHEMA, world.positions())


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory, source: KnownTable) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("plans")
    with world.patients_engine(folder, source, SystemNoise()) as engine:
        yield engine


def plan(engine: Engine, form: str) -> list[str]:
    request = QueryRequest(sql=f"EXPLAIN {form} {COUNTS}")
    assert engine.result_schema(request) == PLAN_SCHEMA
    result = engine.answer(request)
    assert result.receipt is None
    assert result.data.schema == PLAN_SCHEMA
    lines: list[str] = result.data["QUERY PLAN"].to_pylist()
    return lines


@pytest.mark.parametrize("form", LINES)
def test_a_plan_is_lines_and_reads_nothing(engine: Engine, source: KnownTable, form: str) -> None:
    epsilon = float(engine.explain(QueryRequest(sql=COUNTS)).epsilon)
    first, *rest = plan(engine, form)
    assert first == f"Answer  (epsilon={epsilon:.6g} of 4000 left for patients)"
    assert [line.split()[1] for line in rest[:2]] == ["n", "s"]
    assert all("source=measured" in line for line in rest[:2])
    assert len(rest) == 2 + ("ANALYZE" in form), "what is not run is said"
    assert source.scopes_read == []


@pytest.mark.parametrize("form", ["(FORMAT JSON)", "(ANALYZE off, COSTS, FORMAT json)"])
def test_json_has_the_rows_that_are_chosen(engine: Engine, form: str) -> None:
    (text,) = plan(engine, form)
    ((explained,),) = (json.loads(text),)
    table = engine.answer(QueryRequest(sql=f"EXPLAIN PRIVACY {COUNTS}")).data
    chosen = table.filter(table["chosen"]).to_pylist()
    shown = explained["Plan"]["Plans"]
    assert [{name: one[name] for name in table.column_names} for one in shown] == chosen
    epsilon = engine.explain(QueryRequest(sql=COUNTS)).epsilon
    assert explained["Plan"]["Total Cost"] == float(epsilon)
    assert "Note" not in explained


def test_json_of_analyze_says_that_nothing_ran(engine: Engine, source: KnownTable) -> None:
    (text,) = plan(engine, "(ANALYZE, FORMAT JSON)")
    assert "does not run" in json.loads(text)[0]["Note"]
    assert source.scopes_read == []


def test_what_is_known_is_free(engine: Engine) -> None:
    engine.answer(QueryRequest(sql=COUNTS))
    first, *rest = plan(engine, "VERBOSE")
    assert first.startswith("Answer  (epsilon=0 of ")
    assert all("source=history" in line and "epsilon" not in line for line in rest)


def test_parentheses_around_the_query_are_no_options(engine: Engine) -> None:
    request = QueryRequest(sql=f"EXPLAIN ({COUNTS})")
    assert (
        engine.answer(request).data
        == engine.answer(QueryRequest(sql=f"EXPLAIN PRIVACY {COUNTS}")).data
    )
    assert engine.result_schema(request).field(0) == pa.field("aggregate", pa.string(), False)
