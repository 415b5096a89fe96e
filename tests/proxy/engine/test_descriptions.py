"""What is told of a statement with parameters before they have values: the oracle is the answer.

The columns that are described must be those that come once values are bound, and a value of each
type must be one that the statement takes.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cube.refusals import UnknownName, UnsupportedSql
from planner.sql.parameters import Parameter, list_of, parameter_of
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from tests.sql import world
from tests.support.fakes import KnownTable, NoNoise

DAY = dt.date(2024, 1, 1)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    folder = tmp_path_factory.mktemp("described")
    with world.patients_engine(folder, source, NoNoise()) as engine:
        yield engine


STATEMENTS: dict[str, tuple[list[str], list[object]]] = {
    "SELECT COUNT(*) FROM patients WHERE sex = $1 AND age > $2": (
        ["VARCHAR", "BIGINT"],
        ["male", 30],
    ),
    "SELECT city, AVG(cost) FROM patients WHERE insured = ? GROUP BY city": (["BOOLEAN"], [True]),
    "SELECT p.city FROM patients AS p WHERE p.admitted BETWEEN $1 AND $2 GROUP BY 1 LIMIT $3": (
        ["DATE", "DATE", "BIGINT"],
        [DAY, DAY, 5],
    ),
    "SELECT COUNT(*) AS n FROM patients WHERE city = ANY($1)": (["VARCHAR[]"], [["Oslo", "Rome"]]),
    "SELECT COUNT(*) AS n FROM patients WHERE age IN ($1,$2,$3)": (["BIGINT"] * 3, [30, 40, 50]),
    "SELECT COUNT(*) FROM patients WHERE admitted >= $1::timestamp": (
        ["TIMESTAMP"],
        [dt.datetime(2024, 1, 1)],  # noqa: DTZ001 - without a zone, as the column
    ),
    "SELECT DATE_TRUNC($1, admitted) AS m, COUNT(*) FROM patients GROUP BY 1": (
        ["VARCHAR"],
        ["month"],
    ),
    "SELECT x, n / $1 AS share FROM (SELECT age AS x, COUNT(*) AS n FROM patients GROUP BY age) "
    "AS t WHERE x < $2 AND n > $3": (["DOUBLE", "BIGINT", "DOUBLE"], [2.0, 40, 3]),
    "SELECT country, COUNT(*) FROM patients JOIN cities USING (city) WHERE population > $1 AND "
    "city LIKE $2 GROUP BY country HAVING COUNT(*) > $3": (
        ["BIGINT", "VARCHAR", "DOUBLE"],
        [500_000, "%o%", 10.0],
    ),
    "SELECT name FROM holidays WHERE day = $1": (["DATE"], [DAY]),
    "SELECT $1 AS tag, COUNT(*) FROM patients WHERE $2 IS NULL OR sex = $2": (
        ["VARCHAR", "VARCHAR"],
        ["x", "female"],
    ),
    "SELECT COALESCE(visits, $1) AS v, COUNT(*) FROM patients WHERE NOT $2 GROUP BY 1": (
        ["BIGINT", "BOOLEAN"],
        [0, False],
    ),
    "SELECT COUNT(*) FROM patients WHERE cost >= $1 AND EXTRACT(YEAR FROM admitted) = $2": (
        ["BIGINT", "DOUBLE"],
        [100, 2024],
    ),
    "SELECT CASE WHEN age < $1 THEN $2 ELSE sex END AS g, COUNT(*) FROM patients GROUP BY 1": (
        ["BIGINT", "VARCHAR"],
        [40, "young"],
    ),
    "SELECT COUNT(*) FROM patients WHERE sex = :sex": (["VARCHAR"], ["male"]),
    "SELECT COUNT(*) FROM patients WHERE age <> ALL($1)": (["BIGINT[]"], [[30, 31]]),
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_types_are_those_of_what_stands_beside(engine: Engine, sql: str) -> None:
    kinds, _ = STATEMENTS[sql]
    assert list(engine.describe(QueryRequest(sql=sql)).parameters.values()) == kinds


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_columns_are_those_that_come(engine: Engine, sql: str) -> None:
    request = QueryRequest(sql=sql)
    spent = [budget.spent for budget in engine.budgets(request.caller)]
    described = engine.describe(request)
    assert [budget.spent for budget in engine.budgets(request.caller)] == spent, "free"
    values = STATEMENTS[sql][1]
    bound = tuple(map(_bound, described.parameters, list(values)))
    promised = engine.result_schema(replace(request, parameters=bound))
    assert described.schema is not None
    assert described.schema.names == promised.names
    assert described.schema.types == promised.types
    answer = engine.answer(replace(request, parameters=bound)).data
    assert answer.schema.names == described.schema.names
    assert answer.schema.types == described.schema.types


def _bound(name: str, value: object) -> Parameter:
    return list_of(value, name) if isinstance(value, list) else parameter_of(value, name)


def test_a_level_of_the_column_stands_in_where_another_value_would_be_refused(
    engine: Engine,
) -> None:
    schema = engine.describe(QueryRequest(sql="SELECT sex FROM patients WHERE city = $1 LIMIT 0"))
    assert schema.schema is not None


def test_explain_is_described_too(engine: Engine) -> None:
    sql = "EXPLAIN PRIVACY SELECT COUNT(*) FROM patients WHERE age > $1"
    described = engine.describe(QueryRequest(sql=sql))
    assert described.parameters == {"1": "BIGINT"}
    assert described.schema == engine.result_schema(QueryRequest(sql="EXPLAIN SELECT 1"))


def test_without_parameters_the_columns_are_those_of_the_statement(engine: Engine) -> None:
    request = QueryRequest(sql="SELECT COUNT(*) AS n FROM patients WHERE sex = '?'")
    described = engine.describe(replace(request, sql=request.sql.replace("?", "male")))
    assert described.schema == engine.result_schema(
        QueryRequest(sql="SELECT COUNT(*) AS n FROM patients")
    )
    assert described.parameters == {}


def test_a_name_that_is_unknown_is_refused_whatever_the_values_are(engine: Engine) -> None:
    with pytest.raises(UnknownName, match="no column sexx"):
        engine.describe(QueryRequest(sql="SELECT COUNT(*) FROM patients WHERE sexx = $1"))


def test_where_values_decide_the_columns_are_not_told(engine: Engine) -> None:
    described = engine.describe(QueryRequest(sql="SELECT * FROM patients LIMIT $1"))
    assert described.schema is None
    assert described.parameters == {"1": "BIGINT"}
    with pytest.raises(UnsupportedSql):
        engine.describe(QueryRequest(sql="PIVOT patients ON sex USING COUNT(*)"))
