"""The same table through every source: what a start, a restart and a first count take.

    python -m benchmarks.sources [--quick | --rows N] [--kinds KIND ...]

Each kind of source is opened in a process of its own, whose processor time and largest memory are
reported, beside what the engine that has the rows takes to scan the same columns to Arrow. An
extract computes its digests when it is made. Where no kinds are named, tables that stay where they
are come too: sources_there.py.
"""

import argparse
import datetime as dt
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import adbc_driver_postgresql.dbapi as adbc
import duckdb
import psycopg

from accountant.grouping import Grouping
from accountant.ledger.stores.postgres_location import PostgresLocation
from benchmarks.apart import apart, peak_mib
from benchmarks.report import Bar, progress, run
from benchmarks.sources_there import there_compared
from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
)
from cube.schema import Schema
from proxy.monitoring.logs import configure_logs
from proxy.sources.bounding import RowsRead
from proxy.sources.extract_file import ExtractPlace
from proxy.sources.location import Location, PostgresRows, SourceFiles, SourceLocation
from proxy.sources.opening import open_rows
from proxy.sources.postgres_rows import conninfo
from tests.support.postgres import serving_postgres

KEY = b"k" * 32
READ = RowsRead(KEY)
TOWNS = tuple(f"town {number}" for number in range(50))
SCOPES = (("age",), ("age", "town"), ("age", "is_new", "town"))
EXTRACT_SHARE_MAX = 3.0  # of the engine's own scan
N_ROWS_CLAIMED = 10**7  # for it: a scan of fewer takes a tenth of a second, less than to begin
RESTART_SECONDS_MAX = 2.0
PEAK_MIB_MAX = 1024.0
FILES = ("csv", "parquet", "folder of parquet", "duckdb")
KINDS = (*FILES, "postgres")
N_PARTS = 4
SETTLES_SECONDS = 2.2
# One table, in the words of each engine that makes it.
COLUMNS = (
    "'town ' || (i * 7919 % 50) AS town, CAST(i * 31 % 100 AS integer) AS age, "
    "CAST((i * 104729 % 1000000) / 100.0 AS numeric(9, 2)) AS amount, "
    "CAST((i * 15485863 % 10007) / 10007.0 AS double precision) AS score, "
    "CAST(DATE '2025-01-01' + CAST(i % 365 AS integer) AS date) AS day, i % 3 = 0 AS is_new"
)


@dataclass(frozen=True)
class Kind:
    """A source, and where its rows are kept."""

    location: Location
    folder: Path | None


def schema_of(n_rows: int) -> Schema:
    """The public columns."""
    axes: tuple[Axis, ...] = (
        CategoryAxis(name="town", values=TOWNS),
        IntegerAxis(name="age", low=0, high=99),
        MeasureAxis(name="amount", low=Fraction(0), high=Fraction(10_000), step=Fraction(1)),
        NumericAxis(name="score", edges=tuple(place / 20 for place in range(21))),
        DateAxis(name="day", low=dt.date(2025, 1, 1), high=dt.date(2025, 12, 31)),
        BooleanAxis(name="is_new"),
    )
    return Schema(table="sales", axes=axes, n_records_max=n_rows)


def measured(kind: Kind, n_rows: int) -> dict[str, float]:
    """Processor seconds of a start and of first counts, and the process's largest memory."""
    schema = schema_of(n_rows)
    place = None if kind.folder is None else ExtractPlace(kind.folder, KEY)
    began, wall = time.process_time(), time.perf_counter()
    source = open_rows(schema, kind.location, READ, place)
    found = {
        "start_cpu_s": time.process_time() - began,
        "start_s": time.perf_counter() - wall,
    }
    source.rows_fingerprint(KEY)
    source.fingerprint(KEY)
    found["start_with_digests_cpu_s"] = time.process_time() - began
    found["start_with_digests_s"] = time.perf_counter() - wall
    for scope in SCOPES:
        sizes = tuple(schema.by_name[name].size for name in scope)
        began = time.process_time()
        source.measure(Grouping.of_each(scope, sizes))
        found[f"count_{len(scope)}_cpu_ms"] = 1000 * (time.process_time() - began)
    found["peak_mib"] = peak_mib()
    return {name: round(value, 3) for name, value in found.items()}


def scanned(kind: Kind, n_rows: int) -> dict[str, float]:
    """Seconds that the engine takes to scan the columns to Arrow, a batch at a time."""
    columns = ", ".join(axis.name for axis in schema_of(n_rows).axes)
    began, wall = time.process_time(), time.perf_counter()
    if isinstance(kind.location, PostgresRows):
        with adbc.connect(conninfo(kind.location)) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {kind.location.table}")  # noqa: S608 - constants
            n_found = sum(batch.num_rows for batch in cursor.fetch_record_batch())
    else:
        paths = [str(path) for path in kind.location.files]
        reader = {".csv": "read_csv", ".parquet": "read_parquet"}.get(Path(paths[0]).suffix)
        database = duckdb.connect(paths[0] if reader is None else ":memory:", read_only=not reader)
        database.execute("SET enable_progress_bar = false")
        origin = "sales" if reader is None else f"{reader}({paths})"
        rows = database.sql(f"SELECT {columns} FROM {origin}")  # noqa: S608 - constants
        n_found = sum(batch.num_rows for batch in rows.to_arrow_reader(2**17))
    assert n_found == n_rows
    return {
        "cpu_s": round(time.process_time() - began, 3),
        "s": round(time.perf_counter() - wall, 3),
    }


def make_file(folder: Path, kind: str, n_rows: int) -> Location:
    """The table in a file of a kind, or in a folder of them."""
    rows = f"SELECT {COLUMNS} FROM range({n_rows}) AS t(i)"  # noqa: S608 - constants
    path = folder / f"sales.{kind.rsplit(' ', maxsplit=1)[-1]}"
    if kind == "duckdb":
        with duckdb.connect(str(path)) as made:
            made.execute("SET enable_progress_bar = false")
            made.execute(f"CREATE TABLE sales AS {rows}")
        return SourceLocation(path=path, source_table="sales")
    with duckdb.connect() as making:
        making.execute("SET enable_progress_bar = false")  # or it is in the report's way
        if kind != "folder of parquet":
            making.execute(f"COPY ({rows}) TO '{path}'")
            return SourceLocation(path=path)
        parts = folder / "parts"
        parts.mkdir()
        for part in range(N_PARTS):
            making.execute(
                f"COPY ({rows} WHERE i % {N_PARTS} = {part}) TO '{parts / f'{part}.parquet'}'"
            )
    return SourceFiles(folder=parts, pattern="*.parquet")


def make_table(where: PostgresRows, n_rows: int) -> None:
    """The table in PostgreSQL."""
    with psycopg.connect(conninfo(where), autocommit=True) as owner:
        rows = f"generate_series(0::bigint, {n_rows - 1}) AS t(i)"
        owner.execute(f"CREATE TABLE sales AS SELECT {COLUMNS} FROM {rows}".encode())  # noqa: S608 - constants


@contextmanager
def made(kinds: Collection[str], n_rows: int) -> Iterator[tuple[Path, dict[str, Location]]]:
    """The table as each kind, and a folder for what is made of it, while this context lasts."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        found = {kind: make_file(folder, kind, n_rows) for kind in FILES if kind in kinds}
        if "postgres" not in kinds:
            yield folder, found
            return
        with serving_postgres() as server:
            where = PostgresRows(server=PostgresLocation.parse(server.location()), table="sales")
            make_table(where, n_rows)
            yield folder, {**found, "postgres": where}


def extracts_compared(
    folder: Path, locations: dict[str, Location], n_rows: int
) -> tuple[dict[str, object], list[Bar]]:
    """Every kind of source that is read out, in memory and in a file."""
    found: dict[str, object] = {}
    bars: list[Bar] = []
    for at, (label, location) in enumerate(locations.items()):
        progress(label)
        in_memory, on_disk = Kind(location, None), Kind(location, folder / f"extract {at}")
        scan = apart(scanned, in_memory, n_rows)
        began = apart(measured, on_disk, n_rows)
        again = apart(measured, on_disk, n_rows)
        share = began["start_s"] / scan["s"]
        found[label] = {
            "scan": scan,
            "memory": apart(measured, in_memory, n_rows),
            "file": began,
            "file_again": again,
            "file_times_scan": round(share, 2),
            "file_cpu_times_scan": round(began["start_cpu_s"] / scan["cpu_s"], 2),
        }
        bars += [
            _at_most(f"{label}: seconds of a restart", again["start_s"], RESTART_SECONDS_MAX),
            _at_most(f"{label}: MiB while the extract is made", began["peak_mib"], PEAK_MIB_MAX),
        ]
        if n_rows >= N_ROWS_CLAIMED:
            what = f"{label}: extract with its digests, times the engine's scan to Arrow"
            bars.append(_at_most(what, share, EXTRACT_SHARE_MAX))
    return found, bars


def _at_most(name: str, value: float, bar: float) -> Bar:
    return Bar(name, value, bar, value <= bar)


def main() -> None:
    """Measure, and say whether the bars are cleared."""
    parser = argparse.ArgumentParser(description="The same table through every source.")
    parser.add_argument("--quick", action="store_true", help="a hundred thousand rows")
    parser.add_argument("--rows", type=int, default=10**6, help="how many, by default a million")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="by default, all that there are")
    said = parser.parse_args()
    configure_logs()  # to standard error
    n_rows = 10**5 if said.quick else said.rows
    with made(said.kinds or KINDS, n_rows) as (folder, locations):
        # An extract of files that were written just before it is not opened again.
        time.sleep(SETTLES_SECONDS)
        figures, bars = extracts_compared(folder, locations, n_rows)
        postgres = locations.get("postgres")
        if said.kinds is None and isinstance(postgres, PostgresRows):
            parquet = folder / "sales.parquet"
            there, more = there_compared(schema_of(n_rows), postgres, parquet, folder, n_rows)
            figures, bars = {**figures, **there}, bars + more
    run({"n_rows": n_rows, **figures}, bars)


if __name__ == "__main__":
    main()
