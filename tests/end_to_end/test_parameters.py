"""Bind parameters through real drivers: what is bound is what would have been written."""

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from adbc_driver_flightsql import dbapi
from adbc_driver_manager import OperationalError, ProgrammingError

from proxy.api.requests import LOCAL
from proxy.engine.engine import Engine
from tests.support.fakes import NoNoise
from tests.support.serving import serving
from tests.support.worlds import people_engine, random_rows

ROWS = random_rows(500)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, ROWS, budget=Fraction(50), noise=NoNoise()) as engine:
        yield engine


@pytest.fixture
def cursor(engine: Engine) -> Iterator[Any]:
    with (
        serving(engine) as address,
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor


def asked(cursor: Any, sql: str, *values: object) -> list[tuple[object, ...]]:
    cursor.execute(sql, values)
    found: list[tuple[object, ...]] = cursor.fetchall()
    return found


def n_rows(**wanted: object) -> int:
    names = ("age", "city", "member", "visits")
    rows = [dict(zip(names, row, strict=True)) for row in ROWS]
    return sum(all(row[name] == value for name, value in wanted.items()) for row in rows)


def test_values_of_every_type_are_compared_as_they_are(cursor: Any) -> None:
    count = "SELECT COUNT(*) FROM people WHERE "
    for where, values, n in (
        ("age = ?", (41,), n_rows(age=41)),
        ("city = $1", ("Oslo",), n_rows(city="Oslo")),
        ("member = ?", (True,), n_rows(member=True)),
        ("visits <= ? AND age < ?", (2.5, 40), sum(row[3] <= 2.5 and row[0] < 40 for row in ROWS)),
        ("city = ?", (None,), 0),
    ):
        assert asked(cursor, count + where, *values)[0][0] == pytest.approx(n)
    day = dt.date(2024, 2, 29)
    assert asked(cursor, "SELECT CAST(? AS DATE) AS d, COUNT(*) AS n FROM people", day)[0][0] == day


def test_limit_and_the_same_statement_with_other_values(cursor: Any) -> None:
    sql = "SELECT city, COUNT(*) AS n FROM people WHERE age > ? GROUP BY 1 ORDER BY n DESC LIMIT ?"
    assert len(asked(cursor, sql, 20, 2)) == 2
    assert len(asked(cursor, sql, 20, 3)) == 3


def test_a_text_that_looks_like_sql_is_a_text(cursor: Any) -> None:
    sql = "SELECT {} COUNT(*) FROM people WHERE city = ?"
    assert asked(cursor, sql.format(""), "x' OR '1' = '1") == [(0,)]
    strict = "WITH DIFFERENTIAL_PRIVACY OPTIONS(refuse_unknown_values => true)"
    with pytest.raises(ProgrammingError, match="never equals"):
        asked(cursor, sql.format(strict), "x' OR '1' = '1")


def test_preparing_describes_and_charges_nothing(cursor: Any, engine: Engine) -> None:
    sql = "SELECT city, COUNT(*) AS n FROM people WHERE age = ? GROUP BY city LIMIT ?"
    assert cursor.adbc_execute_schema(sql).names == ["city", "n"]
    assert [field.name for field in cursor.adbc_prepare(sql)] == ["1", "2"]
    assert engine.budgets(LOCAL)[0].spent == 0


@pytest.mark.parametrize("values", [(), (1, 2)])
def test_values_that_do_not_fit_are_refused(cursor: Any, values: tuple[int, ...]) -> None:
    with pytest.raises((ProgrammingError, OperationalError), match=r"parameter"):
        asked(cursor, "SELECT COUNT(*) FROM people WHERE age = ?", *values)
