"""The two wires, statement by statement: the same rows, history, cost and refusals.

Each serves an engine of its own on the same records without noise, so that whatever differs is the
wire's doing. Whole numbers of counts are a default of one wire alone, and switched off here.
"""

import io
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog

import tacit_client
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from tests.support.fakes import NoNoise
from tests.support.postgres_wire import postgres_serving
from tests.support.serving import serving
from tests.support.worlds import people_engine, random_rows

ROWS = random_rows(400)
ANSWERED = (
    "SELECT 1 AS a, 'b' AS b, NULL AS c, TRUE AS d, DATE '2024-02-29' AS e, 1.25 AS f",
    "SELECT COUNT(*) AS n FROM people",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC, city",
    "SELECT member, AVG(age) AS a, SUM(visits) AS v FROM people GROUP BY member",
    "SELECT COUNT(*) AS count FROM public.people WHERE city IN ('Oslo', 'Rome') AND age > 30",
    "SELECT city, COUNT(*) FILTER (WHERE member) AS n FROM people WHERE city LIKE '%o%' GROUP BY 1",
    "SELECT city, SUM(visits) AS v FROM people GROUP BY city HAVING COUNT(*) > 100 LIMIT 2",
    "SELECT * FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) AS t LIMIT 1001",
    "SELECT DISTINCT city FROM people",
    "SELECT age / 10 * 10 AS decade, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 1",
    "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_COST(n), DP_SOURCE(n) FROM people",
    "SELECT city, DP_BEST(COUNT(*), prior => ((60, 0.5), (90, 0.5))) AS b FROM people GROUP BY 1",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 5) COUNT(*) AS n FROM people",
    "SELECT city, COUNT(*) AS n FROM people WHERE age > 200 GROUP BY city",
    "EXPLAIN PRIVACY SELECT COUNT(*) FROM people WHERE visits > 3",
    "SELECT table_name, column_name FROM information_schema.columns ORDER BY 1, ordinal_position",
    "SELECT * FROM data_privacy.history",
    "SELECT place, epsilon, epsilon_total, n_blocks FROM data_privacy.losses",
    "SELECT * FROM data_privacy.budgets",
    "SHOW tacit.half_width",
)
REFUSED = (
    "SELECT nonsense FROM people",
    "SELECT COUNT(*) FROM nobody",
    "SELECT MAX(age, 2) FROM people",
    "SELECT age FROM people",
    "SELEC 1",
    "DELETE FROM people",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.01) COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people WHERE citi = 'Oslo'",
)


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    folders = tmp_path / "flight", tmp_path / "postgres"
    for folder in folders:
        folder.mkdir()
    budget, noise = Fraction(5), NoNoise()
    with (
        people_engine(folders[0], ROWS, budget=budget, noise=noise) as first,
        people_engine(folders[1], ROWS, budget=budget, noise=noise) as second,
    ):
        yield first, second


@pytest.fixture
def flight(engines: tuple[Engine, Engine]) -> Iterator[tacit_client.Connection]:
    with serving(engines[0]) as address, tacit_client.connect(address) as connection:
        yield connection


@pytest.fixture
def postgres(engines: tuple[Engine, Engine]) -> Iterator[psycopg.Connection[Any]]:
    with postgres_serving(engines[1]) as address:
        host, _, port = address.partition(":")
        known = f"host={host} port={port} user=ann dbname=tacit sslmode=disable"
        with psycopg.connect(known, autocommit=True) as connection:
            connection.execute("SET tacit.integer_counts = off")
            yield connection


def test_both_answer_the_same_and_charge_the_same(
    flight: tacit_client.Connection, postgres: psycopg.Connection[Any]
) -> None:
    for sql in ANSWERED:
        answer = flight.sql(sql)
        with postgres.cursor() as cursor:
            cursor.execute(sql)
            assert cursor.description is not None
            assert [column.name for column in cursor.description] == answer.columns, sql
            assert cursor.fetchall() == answer.fetchall(), sql
    assert balance(flight.budget().fetchall()) == balance(
        postgres.execute("SELECT * FROM data_privacy.budgets").fetchall()
    )


def test_what_is_bound_is_the_same(
    flight: tacit_client.Connection, postgres: psycopg.Connection[Any]
) -> None:
    wanted = ("Oslo", 30)
    found = flight.sql("SELECT COUNT(*) FROM people WHERE city = $1 AND age > $2", wanted)
    for is_binary in (False, True):
        rows = postgres.execute(
            "SELECT COUNT(*) FROM people WHERE city = %s AND age > %s", wanted, binary=is_binary
        ).fetchall()
        assert rows == found.fetchall()


@pytest.mark.parametrize("sql", REFUSED)
def test_both_refuse_in_the_same_words(
    flight: tacit_client.Connection, postgres: psycopg.Connection[Any], sql: str
) -> None:
    with pytest.raises(tacit_client.Refused) as by_flight:
        flight.sql(sql)
    with pytest.raises(psycopg.Error) as by_postgres:
        postgres.execute(sql)
    told = by_postgres.value.diag
    assert told.message_primary is not None
    message, _, code = told.message_primary.partition(" [")
    assert code == f"{by_flight.value.code}]"
    assert message.removesuffix(".") in by_flight.value.message
    assert told.message_hint == by_flight.value.hint
    if by_flight.value.position is not None and told.statement_position is not None:
        lines = sql[: int(told.statement_position) - 1].split("\n")
        assert (len(lines), len(lines[-1]) + 1) == by_flight.value.position
    free = "SELECT spent FROM data_privacy.budgets"
    assert flight.sql(free).fetchall() == postgres.execute(free).fetchall() == [(0.0,)]


def balance(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Budgets, some of which must have been spent."""
    assert all(spent > 0 for _, _, spent, *_ in rows)
    return rows
