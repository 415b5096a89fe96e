"""City, region and country: groups of levels in public tables, against DuckDB on the same rows.

The groups of cities and of days together have few members, and their levels 5.5 million
combinations, more than are ever written out.
"""

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from accountant.auditor.verify import verify
from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from cube.axis import CategoryAxis, DateAxis
from cube.query import N_FACTOR_CELLS_MAX
from cube.schema import Schema
from cube.target import AccuracyTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from proxy.tables.private_table import ServedTable
from tests.sql.comparing import oracle_rows, rows_of, same_rows
from tests.support.fakes import KnownTable, NoNoise

N_CITIES, N_ROWS = 3000, 4000
FIRST = dt.date(2020, 1, 1)
CITIES = tuple(f"c{number:04}" for number in range(N_CITIES))
SCHEMA = Schema(
    table="orders",
    axes=(
        CategoryAxis(name="city", values=CITIES),
        DateAxis(name="day", low=FIRST, high=dt.date(2024, 12, 31)),
    ),
    n_records_max=10_000,
)
# Neighbouring cities are in different regions, and one in ten in none.
REGION_OF = [None if number % 10 == 9 else f"r{number % 7}" for number in range(N_CITIES)]
PUBLIC = (
    PublicTable("cities", "city", pa.table({"city": CITIES, "region": REGION_OF})),
    PublicTable(
        "regions",
        "region",
        pa.table(
            {
                "region": [f"r{number}" for number in range(6)],
                "country": ["Norway", "Sweden", "Norway", "Denmark", "Sweden", "Norway"],
            }
        ),
    ),
)
ROWS = np.stack(
    [
        np.random.default_rng(7).integers(N_CITIES, size=N_ROWS),
        np.random.default_rng(8).integers(SCHEMA.axes[1].size, size=N_ROWS),
    ],
    axis=1,
)


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:")
    places = pa.table({"city": ROWS[:, 0], "day": ROWS[:, 1]})
    connection.register("places", places)
    connection.execute(
        "CREATE TABLE orders AS SELECT 'c' || lpad(CAST(city AS VARCHAR), 4, '0') AS city, "
        "DATE '2020-01-01' + CAST(day AS INTEGER) AS day FROM places"
    )
    for table in PUBLIC:
        connection.register(table.name, table.data)
    return connection


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """At the end, the auditor finds the same costs, and every charge names cities and days once."""
    with open_ledger(tmp_path_factory.mktemp("orders") / "orders.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(4000), KnownTable(SCHEMA, ROWS), NoNoise())
        served = ServedTable(SCHEMA, AccuracyTarget(half_width=25.0, confidence=0.95), gate)
        yield Engine({SCHEMA.table: served}, PUBLIC)
        assert verify(ledger.entries()).problem is None
        assert max(len(entry.body) for entry in ledger.entries()) < 100_000


STATEMENTS = """
SELECT region, COUNT(*) FROM orders JOIN cities USING (city) GROUP BY region;
SELECT region, COUNT(*) FROM orders LEFT JOIN cities USING (city) GROUP BY region;
SELECT country, COUNT(*) FROM orders JOIN cities USING (city) JOIN regions USING (region)
GROUP BY country;
SELECT r.country, COUNT(*) FROM orders AS o LEFT JOIN cities AS c ON o.city = c.city
LEFT JOIN regions AS r ON c.region = r.region GROUP BY r.country;
SELECT c.region, DATE_TRUNC('year', day) AS y, COUNT(*) FROM orders AS o, cities AS c
WHERE o.city = c.city GROUP BY 1, 2;
SELECT country, EXTRACT(dow FROM day) AS d, COUNT(*) FROM orders JOIN cities USING (city)
JOIN regions USING (region) WHERE day >= '2022-06-01' AND region <> 'r1' GROUP BY 1, 2;
SELECT COUNT(*) FROM orders JOIN cities USING (city) JOIN regions USING (region)
WHERE country = 'Norway' AND day BETWEEN '2021-01-01' AND '2021-12-31';
"""


def test_the_levels_are_more_than_are_written_out() -> None:
    assert SCHEMA.n_cells(("city", "day")) > N_FACTOR_CELLS_MAX


@pytest.mark.parametrize("sql", [one.strip() for one in STATEMENTS.split(";")[:-1]])
def test_groups_of_levels_are_keys_and_conditions(
    sql: str, exact: Engine, oracle: duckdb.DuckDBPyConnection
) -> None:
    answer = exact.answer(QueryRequest(sql=sql)).data
    assert same_rows(rows_of(answer), oracle_rows(oracle, sql))


def test_a_group_of_every_region_and_month_is_shown(exact: Engine) -> None:
    """Seven regions and the cities in none, by the months of five years."""
    sql = (
        "SELECT region, DATE_TRUNC('month', day) AS m, COUNT(*) FROM orders "
        "JOIN cities USING (city) GROUP BY 1, 2"
    )
    assert exact.answer(QueryRequest(sql=sql)).data.num_rows == 8 * 60
