"""The same table in every place that it may be in, each as the source that reads it."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accountant.ledger.stores.postgres_location import PostgresLocation
from accountant.source import Source
from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract_file import ExtractPlace
from proxy.sources.location import PostgresRows, SourceLocation, SparkTable
from proxy.sources.opening import open_rows
from proxy.sources.pushdown.postgres import Postgres
from proxy.sources.pushdown.source import PushedDownSource
from proxy.sources.pushdown.spark import Spark
from tests.support.postgres import PostgresServer
from tests.support.sail import SailServer

KEY = b"k" * 32
SECONDS = 120.0


@dataclass(frozen=True)
class Rows:
    """A table of values, one Arrow array a column; PostgreSQL's type of each."""

    table: pa.Table
    types: Mapping[str, str]


class Files:
    """A table as a file of some kind, read by DuckDB."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self.folder, self.suffix = folder, suffix

    def source(self, schema: Schema, rows: Rows) -> Source:
        path = self.folder / f"{uuid4().hex}{self.suffix}"
        writers: dict[str, Callable[[Path, pa.Table], None]] = {
            ".csv": write_csv,
            ".parquet": lambda path, table: pq.write_table(table, path),
            ".duckdb": _write_duckdb,
        }
        writers[self.suffix](path, rows.table)
        inside = "t" if self.suffix == ".duckdb" else None
        return DuckDbSource(schema, SourceLocation(path=path, source_table=inside))


class InPostgres:
    """A table that stays in PostgreSQL."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.connection = server.connect()

    def source(self, schema: Schema, rows: Rows) -> PushedDownSource:
        table = f"t_{uuid4().hex}"
        fill(self.connection, table, rows)
        return PushedDownSource(schema, self.engine(table), KEY)

    def engine(self, table: str, timeout: float = SECONDS) -> Postgres:
        where = f"host={self.server.folder} port=5432 user=owner dbname=postgres"
        return Postgres(table, f"public.{table}", timeout, lambda: where)


class FromPostgres:
    """A table of PostgreSQL that is read into memory, or into an encrypted file."""

    def __init__(self, there: InPostgres, folder: Path | None) -> None:
        self.there, self.folder = there, folder

    def source(self, schema: Schema, rows: Rows) -> Source:
        table = f"t_{uuid4().hex}"
        fill(self.there.connection, table, rows)
        server = PostgresLocation.parse(self.there.server.location())
        location = PostgresRows(server=server, table=f"public.{table}")
        place = None if self.folder is None else ExtractPlace(self.folder / table, KEY)
        return open_rows(schema, location, RowsRead(KEY), place)


class BehindSpark:
    """A Parquet file that stays behind Spark Connect."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address

    def source(self, schema: Schema, rows: Rows) -> PushedDownSource:
        path = self.folder / f"{uuid4().hex}.parquet"
        pq.write_table(rows.table, path)
        return PushedDownSource(schema, self.engine(path), KEY)

    def engine(self, path: Path, timeout: float = SECONDS) -> Spark:
        return Spark(
            SparkTable(
                address=self.address,
                parts=("parquet", str(path)),
                immutable=True,
                tls=False,
            ),
            timeout,
        )


Place = Files | InPostgres | FromPostgres | BehindSpark


@pytest.fixture(
    scope="module",
    params=[
        *("csv", "parquet", "duckdb", "postgres", "postgres-memory", "postgres-file", "spark"),
        pytest.param("java-spark", marks=[pytest.mark.slow, pytest.mark.spark]),
    ],
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Each of them in turn."""
    folder = tmp_path_factory.mktemp("rows")
    if request.param.startswith("postgres"):
        server: PostgresServer = request.getfixturevalue("postgres_server")
        there = InPostgres(server)
        kept = folder if request.param == "postgres-file" else None
        yield there if request.param == "postgres" else FromPostgres(there, kept)
        there.connection.close()
    elif request.param.endswith("spark"):
        name = "sail" if request.param == "spark" else "java_spark"
        running: SailServer = request.getfixturevalue(name)
        yield BehindSpark(folder, running.address)
    else:
        yield Files(folder, f".{request.param}")


def write_csv(path: Path, table: pa.Table) -> None:
    """A CSV file that means the same; a text must not be empty, which is NULL there."""
    with path.open("w", encoding="utf-8", newline="") as file:
        # A line of one field that is NULL would be no line.
        file.write(",".join(["row", *table.column_names]) + "\n")
        for number, row in enumerate(table.to_pylist()):
            file.write(",".join([str(number), *map(_field, row.values())]) + "\n")


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        escaped = value.replace('"', '""')
        return f'"{escaped}"'
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _write_duckdb(path: Path, table: pa.Table) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS FROM given")


def fill(connection: psycopg.Connection, table: str, rows: Rows) -> None:
    """A table of PostgreSQL with these rows."""
    declared = ", ".join(f'"{name}" {kind}' for name, kind in rows.types.items())
    connection.execute(f"CREATE TABLE {table} ({declared})".encode())
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} FROM STDIN".encode()) as copied,
    ):
        for row in rows.table.select(list(rows.types)).to_pylist():
            copied.write_row(tuple(row.values()))
