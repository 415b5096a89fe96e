"""A guard decides where something is evaluated: a level that it leaves out cannot fail a statement.

The oracle is DuckDB on the rows themselves, which evaluates a key or a summand on rows that WHERE
let through, and a CASE branch by branch.
"""

from collections.abc import Iterator

import duckdb
import pytest

from cube.refusals import UnsupportedSql
from planner.planner import Planner
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from tests.sql import world
from tests.sql.comparing import agree, oracle_rows, rows_of
from tests.support.fakes import KnownTable, NoNoise

# Levels that fail: visits 0 and NULL, cost 0, age 18, 30 or 40, any city as a number.
GUARDED = """
SELECT COUNT(*) FROM patients WHERE visits > 0 AND 12 / visits >= 3;
SELECT COUNT(*) FROM patients WHERE 12 / visits >= 3 AND visits > 0;
SELECT 12 / visits AS k, COUNT(*) AS n FROM patients WHERE visits > 0 GROUP BY 1;
SELECT 12 / visits AS k, COUNT(*) AS n FROM patients WHERE visits <> 0 GROUP BY 1 HAVING
    COUNT(*) > 5;
SELECT SUM(12 / visits) AS s FROM patients WHERE visits BETWEEN 1 AND 5;
SELECT sex, SUM(12 / visits) FILTER (WHERE visits > 0) AS s FROM patients GROUP BY sex;
SELECT COUNT(*) FILTER (WHERE visits > 0 AND 12 / visits > 2) AS n FROM patients;
SELECT COUNT(12 / visits) AS n FROM patients WHERE visits IN (1, 2, 3);
SELECT AVG(LN(cost)) AS a FROM patients WHERE cost > 0;
SELECT SUM(SQRT(age - 40)) AS s FROM patients WHERE age >= 40;
SELECT COUNT(*) FROM patients WHERE cost > 0 AND LN(cost) > 5;
SELECT SUM(CASE WHEN visits > 0 AND 12 / visits > 2 THEN 1 ELSE 0 END) AS s FROM patients;
SELECT CASE WHEN visits > 0 THEN 12 / visits END AS k, COUNT(*) AS n FROM patients GROUP BY 1;
SELECT COUNT(*) FROM patients WHERE CASE WHEN visits = 0 THEN FALSE ELSE 12 / visits > 2 END;
SELECT COUNT(*) FROM patients WHERE sex = 'male' OR (visits > 0 AND 12 / visits > 2);
SELECT COUNT(*) FROM patients WHERE NOT (visits = 0 OR 12 / visits < 3);
SELECT (visits > 0 AND 12 / visits > 2) AS k, COUNT(*) AS n FROM patients GROUP BY 1;
SELECT COUNT(*) FROM patients WHERE COALESCE(NULLIF(visits, 0), 1) > 0 AND 12 / NULLIF(visits,
    0) > 2;
SELECT COUNT(*) FROM patients WHERE age > 18 AND visits > 0 AND 100 / ((age - 18) * visits) >
    1;
SELECT 100 / (age - visits * 9) AS k, COUNT(*) AS n FROM patients WHERE age <> visits * 9
    GROUP BY 1;
SELECT SUM(100 / (age - 30)) AS s FROM patients WHERE (age <> 30 OR sex = 'male') AND sex =
    'female';
SELECT COUNT(*) FROM patients WHERE city LIKE 'B%' AND CAST(REPLACE(city, 'Bergen', '7') AS
    INTEGER) = 7;
SELECT CAST(REPLACE(city, 'Oslo', '3') AS INTEGER) AS k, COUNT(*) AS n FROM patients WHERE
    city = 'Oslo' GROUP BY 1;
SELECT MAKE_DATE(2024, 1, visits) AS d, COUNT(*) AS n FROM patients WHERE visits > 0 GROUP BY
    1;
SELECT COUNT(*) FROM patients WHERE visits > 0 AND MAKE_DATE(2024, visits, 1) > DATE
    '2024-06-01';
SELECT COUNT(*) FROM (SELECT 12 / visits AS k FROM patients WHERE visits > 0) AS t WHERE k > 3;
SELECT k, COUNT(*) AS n FROM (SELECT 12 / visits AS k, visits FROM patients) AS t WHERE visits
    > 0 GROUP BY k;
SELECT COUNT(*) FROM patients WHERE bmi >= 25 AND bmi < 27 AND bmi >= 30;
"""
UNGUARDED = """
SELECT COUNT(*) FROM patients WHERE 12 / visits >= 3;
SELECT COUNT(*) FROM patients WHERE visits >= 0 AND 12 / visits >= 3;
SELECT 12 / visits AS k, COUNT(*) FROM patients WHERE visits < 5 GROUP BY 1;
SELECT SUM(12 / visits) FROM patients WHERE sex = 'male';
SELECT SUM(12 / visits) FROM patients WHERE visits > 0 OR sex = 'male';
SELECT SUM(12 / visits) AS a, SUM(12 / visits) FILTER (WHERE visits > 0) AS b FROM patients;
SELECT COUNT(*) FROM patients WHERE visits = 0 OR 12 / (visits - 1) > 2;
SELECT SUM(LN(cost)) FROM patients WHERE cost < 100;
SELECT CAST(city AS INTEGER) AS k, COUNT(*) FROM patients WHERE city <> 'Oslo' GROUP BY 1;
"""


def statements(text: str) -> list[str]:
    """The statements of a text, each in one line."""
    return [" ".join(one.split()) for one in text.split(";") if one.strip()]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("guards"), source, NoNoise()) as engine:
        yield engine


@pytest.fixture(scope="module")
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    with world.database(world.positions()) as database:
        database.execute("SET integer_division = true")
        database.execute("SET error_on_division_by_zero = false")  # it evaluates before FILTER
        yield database


@pytest.mark.parametrize("sql", statements(GUARDED))
def test_what_a_guard_leaves_out_is_not_evaluated(
    engine: Engine, rows: duckdb.DuckDBPyConnection, sql: str
) -> None:
    found = rows_of(engine.answer(QueryRequest(sql=sql)).data)
    expected = oracle_rows(rows, sql)
    missing = [row for row in expected if not any(agree(row, other) for other in found)]
    assert not missing, (missing[:3], found[:3])


@pytest.mark.parametrize("sql", statements(UNGUARDED))
def test_a_level_that_no_guard_leaves_out_is_still_a_mistake(sql: str) -> None:
    planner = Planner({"patients": world.SCHEMA}, {"patients": world.DEFAULT})
    with pytest.raises(UnsupportedSql, match="cannot be evaluated"):
        planner.plan(sql)
