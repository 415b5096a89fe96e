"""Python's clients of PostgreSQL: each connects as it is, under verified TLS, with a token."""

import asyncio
import datetime as dt
import ssl
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import asyncpg
import pandas as pd
import polars as pl
import psycopg
import psycopg2
import psycopg2.extras
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from tests.clients.conftest import BY_CITY, N_ROWS, PEOPLE, Served

IN_OSLO = "SELECT COUNT(*) AS n FROM people WHERE age >= {} AND city = {}"
BY_DAY = "SELECT joined, COUNT(*) AS n FROM people WHERE joined < {} GROUP BY joined"
NARROW = 150  # of counts whose default interval is 30 wide with probability 0.95 each


def is_by_city(rows: list[tuple[Any, ...]]) -> bool:
    """Whether rows are the four groups, whole numbers that add up to about everybody."""
    found = dict(rows)
    is_whole = all(type(count) is int for count in found.values())
    total = sum(found.values())
    return (
        is_whole
        and found.keys() == {"Oslo", "Paris", "Rome", None}
        and abs(total - N_ROWS) < NARROW
    )


def test_psycopg(served: Served) -> None:
    with psycopg.connect(served.uri, autocommit=True) as connection:
        assert is_by_city(connection.execute(BY_CITY).fetchall())
        rows = connection.execute(IN_OSLO.format("%s", "%s"), (30, "Oslo")).fetchall()
        before = served.spent
        for _ in range(9):  # from the fifth on it is prepared on the server
            again = connection.execute(IN_OSLO.format("%s", "%s"), (30, "Oslo")).fetchall()
            assert again == rows
        assert served.spent == before
        binary = connection.cursor(binary=True)
        assert binary.execute(IN_OSLO.format("%s", "%s"), (30, "Oslo")).fetchall() == rows
        days = binary.execute(BY_DAY.format("%s"), (dt.date(2025, 1, 4),)).fetchall()
        assert {day for day, _ in days} == {dt.date(2025, 1, day) for day in (1, 2, 3)}
        with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
            connection.execute("SELECT COUNT(*) FROM people WHERE town = 'Oslo'")
        assert caught.value.diag.statement_position == "35"
        assert caught.value.diag.message_hint


def test_psycopg_takes_an_answer_in_pieces(served: Served) -> None:
    with psycopg.connect(served.uri) as connection:
        with connection.cursor(name="pieces") as cursor:
            cursor.execute("SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY age")
            before = served.spent
            first, rest = cursor.fetchmany(10), cursor.fetchall()
        assert [age for age, _ in first + rest] == list(range(100))
        assert served.spent == before


def test_psycopg_binds_what_a_function_gives_back(served: Served) -> None:
    with psycopg.connect(served.uri, autocommit=True) as connection:

        def ask(sql: str, *values: object, binary: bool = False) -> object:
            (row,) = connection.cursor(binary=binary).execute(sql.encode(), values).fetchall()
            return row[0]

        for binary in (False, True):
            assert ask("SELECT set_config('TimeZone', %s, false)", "UTC", binary=binary) == "UTC"
            assert ask("SELECT set_config(%s, %s, false)", "jit", "off", binary=binary) == "off"
            assert ask("SELECT set_config('role', %s, false)", "ann", binary=binary) == "ann"
            assert ask("SELECT %s", dt.timedelta(days=1)) == "1 day"
            number = "SELECT %s FROM pg_catalog.pg_class LIMIT 1"
            assert ask(number, 5, binary=binary) == 5
        assert ask("SHOW jit") == "off"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask("SELECT set_config('role', %s, false)", "somebody")


def test_times_of_day_are_bound(served: Served) -> None:
    after = "SELECT joined FROM people WHERE joined + {} >= TIMESTAMP '2025-12-31 12:00' GROUP BY 1"
    noon, last = dt.time(12, 30), [(dt.date(2025, 12, 31),)]
    with psycopg.connect(served.uri) as connection:
        for one in (noon, "12:30:00+00", "12:30 PM UTC"):
            sql = after.format("%s::time")
            assert connection.execute(sql.encode(), (one,)).fetchall() == last
            assert connection.execute(sql.encode(), (one,), binary=True).fetchall() == last
        assert connection.execute(b"SELECT %s::time", (noon,), binary=True).fetchall() == [(noon,)]
        with pytest.raises(psycopg.errors.InvalidDatetimeFormat):
            connection.cursor().execute(b"SELECT %s::time", ("noonish",))
    with adbc.connect(served.uri) as by_arrow, by_arrow.cursor() as cursor:
        cursor.execute(after.format("$1"), (noon,))  # which is bound in binary
        assert cursor.fetchall() == last


def test_a_stale_filter_is_told_of(served: Served) -> None:
    told: list[str] = []
    with psycopg.connect(served.uri) as connection:
        connection.add_notice_handler(lambda one: told.append(f"{one.severity} {one.sqlstate}"))
        connection.add_notice_handler(lambda one: told.append(one.message_primary or ""))
        rows = connection.execute("SELECT COUNT(*) FROM people WHERE city = 'Osol'").fetchall()
        assert len(rows) == 1
        assert told == ["WARNING 01000", "city never equals 'Osol'. Did you mean 'Oslo'?"]
    second = psycopg2.connect(served.uri)
    with second, second.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM people WHERE city IN ('Oslo', 'rome')")
        assert "city never equals 'rome'" in second.notices[0]
    second.close()


def test_a_question_whether_there_are_any_rows_has_a_way_out(served: Served) -> None:
    any_of = 'SELECT 1 AS "a" FROM "{0}" WHERE "{0}"."city" = %s LIMIT 1'  # Django's exists()
    with psycopg.connect(served.uri, autocommit=True) as connection:
        public = connection.execute(any_of.format("cities").encode(), ("Oslo",)).fetchall()
        assert public == [(1,)]
        with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
            connection.execute(any_of.format("people").encode(), ("Oslo",))
        assert "count() instead of exists()" in str(caught.value.diag.message_hint)
        counted = "SELECT COUNT(*) FROM people WHERE city = %s"
        assert connection.execute(counted, ("Oslo",)).fetchall()[0][0] > 0


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT "count" FROM (SELECT COUNT(*) FROM cities) AS x',
        'SELECT "?column?" FROM (SELECT 1) AS x',
        'SELECT x."max" FROM (SELECT MAX(city), COUNT(*) FROM cities) AS x',
        "WITH x AS (SELECT upper(city), country FROM cities) SELECT upper FROM x",
        'SELECT "count" FROM (SELECT COUNT(*) FROM people) AS x',
        'SELECT "count" > 0 FROM (SELECT COUNT(*) FROM pg_catalog.pg_class) AS x',
        'SELECT x."max" FROM pg_catalog.pg_am JOIN (SELECT MAX(oid::int) FROM pg_type) x ON true',
    ],
)
def test_columns_of_subqueries_have_the_names_that_postgresql_gives(
    served: Served, sql: str
) -> None:
    with psycopg.connect(served.uri) as connection:  # DuckDB's extension asks by these names
        assert connection.execute(sql.encode()).fetchone() is not None


def test_psycopg2(served: Served) -> None:
    connection = psycopg2.connect(served.uri)
    with connection, connection.cursor() as cursor:
        cursor.execute(BY_CITY)
        assert is_by_city(cursor.fetchall())
        cursor.execute(IN_OSLO.format("%s", "%s"), (30, "Oslo"))
        assert cursor.rowcount == 1
        with pytest.raises(psycopg2.errors.UndefinedTable):
            cursor.execute("SELECT COUNT(*) FROM persons")
        with pytest.raises(psycopg2.errors.InFailedSqlTransaction):
            cursor.execute(BY_CITY)
    connection.rollback()
    with (
        connection,
        connection.cursor("named", cursor_factory=psycopg2.extras.DictCursor) as cursor,
    ):
        cursor.itersize = 3
        cursor.execute(BY_CITY)
        assert is_by_city([(row["city"], row["n"]) for row in cursor])
    connection.close()


def test_asyncpg(served: Served) -> None:
    async def ask() -> None:
        connection = await asyncpg.connect(
            served.uri, server_settings={"tacit.half_width": "25", "application_name": "a test"}
        )
        try:
            assert is_by_city([tuple(row) for row in await connection.fetch(BY_CITY)])
            prepared = await connection.prepare(IN_OSLO.format("$1", "$2"))
            assert [kind.name for kind in prepared.get_parameters()] == ["int8", "text"]
            first = await prepared.fetchval(30, "Oslo")
            before = served.spent
            assert [await prepared.fetchval(30, "Oslo") for _ in range(10)] == [first] * 10
            assert served.spent == before
            some = "SELECT COUNT(*) FROM people WHERE city = ANY($1)"
            assert await connection.fetchval(some, ["Oslo", "Rome"]) > 0
            async with connection.transaction():
                rows = [row async for row in connection.cursor(BY_CITY, prefetch=2)]
            assert is_by_city([tuple(row) for row in rows])
            assert await connection.fetchval("SHOW tacit.half_width") == "25"
            with pytest.raises(asyncpg.UndefinedColumnError):
                await connection.fetch("SELECT town FROM people")
        finally:
            await connection.close()

    asyncio.run(ask())


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_sqlalchemy_by_postgresql(served: Served, driver: str) -> None:
    tls = {"sslmode": "verify-full", "sslrootcert": str(served.authority)}
    engine = sa.create_engine(served.sqlalchemy(driver), connect_args=tls)
    told = sa.inspect(engine)
    assert sorted(told.get_table_names()) == ["cities", "people"]
    assert {"public", "data_privacy"} <= set(told.get_schema_names())
    assert "budgets" in told.get_view_names("data_privacy")
    assert told.get_pk_constraint("cities")["constrained_columns"] == ["city"]
    assert told.get_foreign_keys("people") == []
    assert told.get_indexes("people") == []
    assert "Private" in str(told.get_table_comment("people")["text"])
    people = sa.Table("people", sa.MetaData(), autoload_with=engine)
    assert people.columns.keys() == [axis.name for axis in PEOPLE.axes]
    assert isinstance(people.c.joined.type, sa.Date)
    with engine.connect() as connection:
        counted = sa.func.count().label("n")
        asked = sa.select(people.c.city, counted).group_by(people.c.city)
        assert is_by_city([tuple(row) for row in connection.execute(asked)])
        some = sa.select(sa.func.count()).where(people.c.city.in_(["Oslo", "Rome"]))
        assert connection.execute(some).scalar_one() > 0
    engine.dispose()


def test_sqlalchemy_by_asyncpg(served: Served) -> None:
    async def ask() -> None:
        context = ssl.create_default_context(cafile=str(served.authority))
        engine = create_async_engine(served.sqlalchemy("asyncpg"), connect_args={"ssl": context})
        async with engine.connect() as connection:
            assert is_by_city([tuple(row) for row in await connection.execute(sa.text(BY_CITY))])
            names = await connection.run_sync(
                lambda inner: [one["name"] for one in sa.inspect(inner).get_columns("people")]
            )
            assert names == [axis.name for axis in PEOPLE.axes]
        await engine.dispose()

    asyncio.run(ask())


def test_pandas(served: Served) -> None:
    tls = {"sslmode": "verify-full", "sslrootcert": str(served.authority)}
    engine = sa.create_engine(served.sqlalchemy("psycopg2"), connect_args=tls)
    frame = pd.read_sql(BY_CITY, engine)
    assert is_by_city([(None if pd.isna(city) else city, int(n)) for city, n in frame.to_numpy()])
    engine.dispose()


def test_polars(served: Served) -> None:
    with psycopg.connect(served.uri) as connection:
        frame = pl.read_database(BY_CITY, connection)
    assert is_by_city(frame.rows())


def test_adbc_by_postgresql(served: Served) -> None:
    with adbc.connect(served.uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(BY_CITY)
        assert is_by_city(cursor.fetchall())
