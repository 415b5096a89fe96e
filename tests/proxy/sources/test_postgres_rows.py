# ruff: noqa: DTZ001 - what a clock shows has no zone
"""Tables in PostgreSQL, read into cells: the same as of the same rows in a file.

The oracle is a Parquet file, whose encoding has tests of its own.
"""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accountant.ledger.stores.postgres_location import PostgresLocation
from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
    TimestampAxis,
)
from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
from proxy.sources import postgres_rows
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import PostgresRows, SourceLocation, UnitRows
from proxy.sources.opening import GrowingFile
from tests.support.groupings import each
from tests.support.postgres import PostgresServer

KEY = b"k" * 32
FAR = dt.date(9999, 12, 31)
PLACE = CategoryAxis(name="place", values=("Oslo", "Bergen", "Bergen ", "oslo"), other="else")
AXES: tuple[Axis, ...] = (
    PLACE,
    CategoryAxis(name="mood", values=("sad", "glad"), null=True),
    CategoryAxis(name="code", values=("ab", "abcd")),
    IntegerAxis(name="small", low=-2, high=9, other=99),
    IntegerAxis(name="large", low=0, high=10, null=True, other=-1),
    IntegerAxis(name="whole", low=0, high=10, other=-1),
    NumericAxis(name="real", edges=(-1.0, 0.0, 0.1, 1.0), other=5.0, null=True),
    NumericAxis(name="exact", edges=(0.0, 0.3, 0.5, 1.0), other=5.0, null=True),
    NumericAxis(name="free", edges=(0.0, 0.3, 0.5, 1.0), other=5.0),
    MeasureAxis(name="cents", low=Fraction(0), high=Fraction(3), step=Fraction(1, 100), null=True),
    BooleanAxis(name="is_new", null=True),
    DateAxis(name="day", low=dt.date(2024, 1, 1), high=dt.date(2024, 1, 9), other=FAR, null=True),
    TimestampAxis(
        name="at",
        low=dt.datetime(2024, 1, 1),
        high=dt.datetime(2024, 1, 2),
        step="hour",
        null=True,
    ),
    TimestampAxis(
        name="instant",
        low=dt.datetime(2024, 1, 1),
        high=dt.datetime(2024, 1, 2),
        step="hour",
        time_zone="Europe/Oslo",
        null=True,
    ),
)
TABLE = """
CREATE TYPE mood AS ENUM ('sad', 'glad', 'none');
CREATE DOMAIN cents AS numeric(6, 3);
CREATE TABLE people (
  place varchar(20), "Mood" mood, code char(6), small smallint, large bigint, whole numeric(4, 1),
  real double precision, exact numeric(5, 3), free numeric, cents cents, is_new boolean,
  day date, at timestamp, instant timestamptz, secret text, who uuid, money money
)
"""
BY_ZERO = "SELECT 1 / (x - 9999) AS small, 'a' AS place FROM generate_series(1, 99999) x"
UTC = dt.UTC
MOMENT = dt.datetime(2024, 1, 1, 12, 30)
ROWS: list[tuple[Any, ...]] = [
    *(("Oslo", "sad", "ab", 1, 2, Decimal(3), 0.1, Decimal("0.3"), Decimal("0.3"), Decimal("0.005"),
       True, dt.date(2024, 1, 1), MOMENT, MOMENT.replace(tzinfo=UTC)),) * 3,
    ("Bergen", "glad", "abcd", -2, 0, Decimal(0), -0.0, Decimal("0.299"), Decimal("0.2999"),
     Decimal(-9), False, dt.date(2024, 1, 9), dt.datetime(2024, 1, 2),
     dt.datetime(2023, 12, 31, 23, tzinfo=UTC)),
    ("Bergen ", "none", "ab", 12, 11, Decimal(10), 1.0, Decimal("0.5"), Decimal("1.0"),
     Decimal("2.995"), None, dt.date(2024, 1, 5), dt.datetime(2024, 1, 2, 0, 59),
     dt.datetime(2023, 12, 31, 22, 59, tzinfo=UTC)),
    ("oslo", None, "ab", 9, None, Decimal(11), None, None, None, None, True, None, None, None),
    ("\N{LATIN SMALL LETTER O WITH STROKE}", "sad", "abcd", 3, 3, Decimal(4), 0.5, Decimal("0.9"),
     Decimal("99999999999999999999.5"), Decimal("99.999"), True, dt.date(2024, 1, 2),
     dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1, tzinfo=UTC)),
]  # fmt: skip


@pytest.fixture(scope="module")
def people(postgres_server: PostgresServer) -> PostgresRows:
    """A table with every kind of column, in a database of its own."""
    with postgres_server.connect() as owner:
        owner.execute("CREATE DATABASE people")
    with postgres_server.connect("people") as owner:
        owner.execute(TABLE)
        marks = ", ".join(["%s"] * len(AXES))
        for row in ROWS:
            owner.execute(f"INSERT INTO people VALUES ({marks})".encode(), row)  # noqa: S608 - marks
        owner.execute("UPDATE people SET secret = 'canary', who = gen_random_uuid(), money = 3")
    return rows_of(postgres_server, table="people")


def rows_of(server: PostgresServer, **what: Any) -> PostgresRows:
    return PostgresRows(server=PostgresLocation.parse(server.location("people")), **what)


def schema_of(*axes: Axis, **more: Any) -> Schema:
    return Schema(table="people", axes=axes, n_records_max=1000, **more)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> SourceLocation:
    """The same rows in a file."""
    types = [pa.string()] * 3 + [pa.int16(), pa.int64(), pa.decimal128(4, 1), pa.float64()]
    types += [pa.decimal128(5, 3), pa.float64(), pa.decimal128(6, 3), pa.bool_(), pa.date32()]
    types += [pa.timestamp("us"), pa.timestamp("us", "UTC")]
    columns = [
        pa.array([None if one is None else float(one) for one in column], kind)
        if kind == pa.float64()
        else pa.array(column, kind)
        for column, kind in zip(zip(*ROWS, strict=True), types, strict=True)
    ]
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    pq.write_table(pa.table(columns, [axis.name for axis in AXES]), path)
    return SourceLocation(path=path)


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_each_column_has_the_levels_it_has_in_a_file(
    axis: Axis, people: PostgresRows, parquet: SourceLocation
) -> None:
    schema = schema_of(axis)
    of_table, of_file = (
        DuckDbSource(schema, where).measure(each(schema, axis.name)) for where in (people, parquet)
    )
    assert [one.tolist() for one in of_table.levels] == [one.tolist() for one in of_file.levels]
    assert of_table.counts.tolist() == of_file.counts.tolist()


def test_all_columns_have_the_cells_they_have_in_a_file(
    people: PostgresRows, parquet: SourceLocation
) -> None:
    schema = schema_of(*AXES[3:])
    of_table, of_file = (DuckDbSource(schema, where) for where in (people, parquet))
    assert of_table.rows_fingerprint(KEY) == of_file.rows_fingerprint(KEY)


def test_a_query_is_read_as_the_table_that_it_selects(people: PostgresRows) -> None:
    query = PostgresRows(server=people.server, query="SELECT * FROM people -- all\n;")
    schema = schema_of(*AXES)
    found = {DuckDbSource(schema, where).rows_fingerprint(KEY) for where in (people, query)}
    assert len(found) == 1


def test_what_is_no_number_and_no_moment_is_outside_of_all_levels_and_is_not_null(
    postgres_server: PostgresServer, people: PostgresRows
) -> None:
    with postgres_server.connect("people") as owner:
        owner.execute("DROP TABLE IF EXISTS odd")
        owner.execute("CREATE TABLE odd AS TABLE people WITH NO DATA")
        for real, free, exact in (
            ("'NaN'", "'NaN'", "'NaN'"),
            ("'infinity'", "'infinity'", "NULL"),
        ):
            some = f"({real}, {free}, {exact}, {exact}, 'infinity', '-infinity', 'infinity')"
            named = "(real, free, exact, cents, day, at, instant)"
            owner.execute(f"INSERT INTO odd {named} VALUES {some}".encode())  # noqa: S608 - constants
    where = PostgresRows(server=people.server, table="odd")
    expected = {"real": [2], "free": [2], "exact": [1, 1], "day": [2]}
    for axis in AXES:
        counts = DuckDbSource(schema_of(axis), where).measure(each(schema_of(axis), axis.name))
        if axis.name in expected:
            levels = [axis.other_position, axis.null_position][: counts.counts.size]
            assert counts.levels[0].tolist() == sorted(level for level in levels if level)
            assert counts.counts.tolist() == expected[axis.name]
        if axis.name in {"at", "instant"}:
            assert counts.counts.tolist() == []
        if axis.name == "cents":  # NaN is left out; NULL has a level
            assert counts.levels[0].tolist() == [axis.null_position]


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        (IntegerAxis(name="money", low=0, high=9), "is MONEY in the source"),
        (IntegerAxis(name="secret", low=0, high=9), "is VARCHAR in the source"),
        (IntegerAxis(name="absent", low=0, high=9), "no such column"),
        (IntegerAxis(name="exact", low=0, high=9), "not of type BIGINT"),
    ],
)
def test_a_column_that_does_not_fit_is_a_problem_of_its_key(
    axis: Axis, said: str, people: PostgresRows
) -> None:
    with pytest.raises(ConfigurationInvalid, match=said) as refused:
        DuckDbSource(schema_of(axis), people)
    assert f"tables.people.columns.{axis.name}" in str(refused.value)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"table": "nobody"}, "there is no such table"),
        ({"table": "nobody.people"}, "there is no such"),
        ({"query": "SELECT nothing FROM people"}, "a column that is not there"),
        ({"query": "SELEC 1"}, "not one SELECT"),
        ({"query": "SELECT 1; SELECT 2"}, "not one SELECT"),
        ({"query": "SELECT secret::int AS small, place FROM people"}, "reading a row fails"),
        ({"query": BY_ZERO}, "reading a row fails"),
        ({"query": "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone"}, "SQLSTATE"),
        ({"query": "SELECT 1 AS small, pg_sleep(30)::text AS place"}, "longer than the server"),
    ],
)
def test_a_refusal_says_what_kind_it_is_and_nothing_of_a_row(
    what: dict[str, Any], said: str, people: PostgresRows, postgres_server: PostgresServer
) -> None:
    with postgres_server.connect("people") as owner:
        owner.execute("ALTER DATABASE people SET statement_timeout = '300ms'")
        try:
            with pytest.raises(ConfigurationInvalid, match=said) as refused:
                DuckDbSource(schema_of(AXES[3], PLACE), PostgresRows(server=people.server, **what))
            assert "canary" not in refused.value.explain()
            assert refused.value.__cause__ is None
        finally:
            owner.execute("ALTER DATABASE people RESET statement_timeout")


@pytest.mark.usefixtures("people")
def test_who_may_not_read_or_connect_is_told_so(postgres_server: PostgresServer) -> None:
    with postgres_server.connect("people") as owner:
        owner.execute("DROP ROLE IF EXISTS stranger")
        owner.execute("CREATE ROLE stranger LOGIN")
    for user, said in (("stranger", "may not read it"), ("nobody", "cannot be reached")):
        location = PostgresLocation.parse(postgres_server.location("people", user))
        with pytest.raises(ConfigurationInvalid, match=said):
            DuckDbSource(schema_of(PLACE), PostgresRows(server=location, table="people"))


def test_a_password_comes_from_its_file_and_is_shown_nowhere(
    people: PostgresRows, tmp_path: Path
) -> None:
    secret = r"it's a \ secret"  # noqa: S105 - made up
    path = tmp_path / "password"
    path.write_text(f"{secret}\n")
    where = PostgresRows(server=people.server, table="nobody", password_file=path)
    assert psycopg.conninfo.conninfo_to_dict(postgres_rows.conninfo(where))["password"] == secret
    with pytest.raises(ConfigurationInvalid) as refused:
        DuckDbSource(schema_of(PLACE), where)
    assert "secret" not in repr(refused.value) + refused.value.explain() + repr(where)
    path.unlink()
    with pytest.raises(ConfigurationInvalid, match=r"password file .* cannot be read"):
        DuckDbSource(schema_of(PLACE), where)


def test_other_rows_and_other_tables_are_other_data(
    people: PostgresRows, postgres_server: PostgresServer
) -> None:
    schema = schema_of(PLACE)
    first = DuckDbSource(schema, people)
    with postgres_server.connect("people") as owner:
        owner.execute("CREATE TABLE others AS TABLE people")
        others = DuckDbSource(schema, PostgresRows(server=people.server, table="others"))
        owner.execute("DELETE FROM others WHERE place = 'oslo'")
        fewer = DuckDbSource(schema, PostgresRows(server=people.server, table="others"))
    assert DuckDbSource(schema, people).fingerprint(KEY) == first.fingerprint(KEY)
    assert first.rows_fingerprint(KEY) == others.rows_fingerprint(KEY)
    assert len({one.fingerprint(KEY) for one in (first, others, fewer)}) == 3


def test_units_are_bounded_as_those_of_a_file(
    people: PostgresRows, parquet: SourceLocation
) -> None:
    schema = schema_of(AXES[3], unit="code", rows_per_unit_max=2)
    read = RowsRead(KEY)
    trimmed = PostgresRows(server=people.server, query="SELECT small, code FROM people")
    of_table, of_file = (DuckDbSource(schema, where, read) for where in (trimmed, parquet))
    assert of_table.rows_fingerprint(KEY) == of_file.rows_fingerprint(KEY)
    units = UnitRows(of=trimmed)
    one_each = Schema(table="people.units", axes=(PLACE,), n_records_max=9, unit="code")
    with pytest.raises(ConfigurationInvalid, match="place"):
        DuckDbSource(one_each, units)


def test_a_growing_table_is_read_up_to_its_horizon(people: PostgresRows) -> None:
    schema = schema_of(
        DateAxis(name="day", low=dt.date(2024, 1, 1), high=dt.date(2024, 1, 9)), grows="day"
    )
    source = GrowingFile(schema, people, KEY)
    assert source.read_up_to(2).measure(each(schema, "day")).counts.sum() == 4
    assert source.read_up_to(9).measure(each(schema, "day")).counts.sum() == 6
    other = PostgresRows(server=people.server, table="others")
    assert GrowingFile(schema, other, KEY).fingerprint(KEY) != source.fingerprint(KEY)


def test_a_connection_that_is_lost_is_made_again(
    people: PostgresRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.sources.reading.PAUSE_SECONDS", 0)
    refusing, attempts = postgres_rows._refusing, []

    def fails_twice(rows: PostgresRows, stream: pa.RecordBatchReader) -> Any:
        attempts.append(rows)
        if len(attempts) < 3:
            raise postgres_rows.refusal(rows, OSError("server closed the connection: canary"))
        yield from refusing(rows, stream)

    monkeypatch.setattr(postgres_rows, "_refusing", fails_twice)
    found = DuckDbSource(schema_of(PLACE), people)
    assert found.measure(each(schema_of(PLACE))).counts.tolist() == [len(ROWS)]
    assert len(attempts) == 3
    attempts[:] = []
    with monkeypatch.context() as patch:
        patch.setattr("proxy.sources.reading.N_ATTEMPTS", 2)
        with pytest.raises(ConfigurationInvalid, match="connection was lost"):
            DuckDbSource(schema_of(PLACE), people)


def test_a_missing_driver_is_named_with_its_extra(
    people: PostgresRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    with pytest.raises(ConfigurationInvalid) as refused:
        DuckDbSource(schema_of(PLACE), people)
    assert "tacit-dp[postgres]" in refused.value.explain()
