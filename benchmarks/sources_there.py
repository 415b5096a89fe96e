"""A table that stays in its engine, beside the engine's own GROUP BY of encoded columns.

PostgreSQL, and Sail where pysail is installed, each with the table as it is and a table of levels
made from the same numbers. Wall clock, since the work is another process's: what is compared is
measured in turns, and the shortest of each is told. Cells must agree. Besides: the engine's own
GROUP BY of the columns as they are, which no count of them can beat; and counts in PostgreSQL while
others write other tables, so that rows are asked who wrote them. A part of
`benchmarks.sources`, by itself as `benchmarks.counted_there`.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import psycopg
from sqlglot import exp

from accountant.grouping import Grouping
from benchmarks.apart import apart, peak_mib
from benchmarks.report import Bar, progress
from cube.schema import Schema
from proxy.sources.location import PostgresRows, SparkTable
from proxy.sources.postgres_rows import conninfo
from proxy.sources.pushdown.engine import Engine
from proxy.sources.pushdown.postgres import Postgres
from proxy.sources.pushdown.source import PushedDownSource
from proxy.sources.pushdown.spark import Spark
from tests.support.sail import serving_sail

GROUP_BY_SHARE_MAX = 1.2  # of the engine's own
N_TURNS = 5
TIMEOUT_SECONDS = 300.0
# The last is of a number, which is encoded before rows are grouped.
SCOPES = (("age",), ("age", "town"), ("age", "is_new", "town"), ("score",))
# The levels of the columns of benchmarks.sources, from the number of a row.
LEVELS = (
    "CAST(i * 7919 % 50 AS integer) AS town, CAST(i * 31 % 100 AS integer) AS age, "
    "CASE WHEN i % 3 = 0 THEN 1 ELSE 0 END AS is_new, "
    "CAST(floor((i * 15485863 % 10007) * 20 / 10007.0) AS integer) AS score"
)


@dataclass(frozen=True)
class There:
    """A table in PostgreSQL or in Spark, and one of its levels."""

    rows: PostgresRows | SparkTable
    levels: PostgresRows | SparkTable


def engine_of(place: PostgresRows | SparkTable) -> Engine:
    """What a table is read by."""
    if isinstance(place, SparkTable):
        return Spark(place, TIMEOUT_SECONDS)
    return Postgres(str(place.table), "levels", TIMEOUT_SECONDS, lambda: conninfo(place))


def milliseconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def writing_beside(there: There) -> Callable[[], object] | None:
    """A transaction that has a number, as one that writes another table; None if there are none."""
    if isinstance(there.rows, SparkTable):
        return None
    other = psycopg.connect(conninfo(there.rows), autocommit=True)
    return lambda: other.execute("SELECT pg_current_xact_id()")


def measured_there(there: There, schema: Schema) -> dict[str, float]:
    """Seconds of a start and of counts, beside those of a GROUP BY, and this process's memory."""
    own, began = time.process_time(), time.perf_counter()
    source = PushedDownSource(schema, engine_of(there.rows), b"k" * 32)
    found = {"start_s": time.perf_counter() - began, "start_cpu_s": time.process_time() - own}
    levels, raw, writing = engine_of(there.levels), engine_of(there.rows), writing_beside(there)
    for scope in SCOPES:
        grouping = Grouping.of_each(scope, tuple(schema.by_name[name].size for name in scope))
        began = time.perf_counter()
        cells = source.measure(grouping)
        first = 1000 * (time.perf_counter() - began)
        taken: dict[str, list[float]] = {}
        with levels.reading() as reading, raw.reading() as same:
            grouped = exp.select(*scope, "count(*) AS n").group_by(*scope)
            of_levels, as_is = grouped.from_(reading.table), grouped.from_(same.table)
            expected = sorted(tuple(row.values()) for row in reading.rows(of_levels).to_pylist())
            calls: dict[str, Callable[[], object]] = {
                "later": lambda: source.measure(grouping),  # noqa: B023 - called at once
                "engine": lambda: reading.rows(of_levels),  # noqa: B023
                "engine_as_is": lambda: same.rows(as_is),  # noqa: B023
            }
            for _ in range(N_TURNS):
                for label, call in calls.items():
                    taken.setdefault(label, []).append(milliseconds(call))
                if writing is not None:
                    writing()
                    again = milliseconds(lambda: source.measure(grouping))  # noqa: B023
                    taken.setdefault("beside_writers", []).append(again)
                    source.measure(grouping)  # and the next one is later, with nobody writing
        assert sorted(zip(*cells.levels, cells.counts, strict=True)) == expected
        name = "_".join(scope)
        found[f"{name}_first_ms"] = first
        least = {label: min(each) for label, each in taken.items()}
        found |= {f"{name}_{label}_ms": each for label, each in least.items()}
        found[f"{name}_share"] = least["later"] / least["engine"]
    found["peak_mib"] = peak_mib()
    return {name: round(value, 3) for name, value in found.items()}


def make_levels_in_postgres(where: PostgresRows, n_rows: int) -> There:
    """The table of levels beside a table; both as the engine keeps what never changes."""
    levels = replace(where, table="levels")
    with psycopg.connect(conninfo(where), autocommit=True) as owner:
        rows = f"generate_series(0::bigint, {n_rows - 1}) AS t(i)"
        owner.execute(f"CREATE TABLE levels AS SELECT {LEVELS} FROM {rows}".encode())  # noqa: S608 - constants
        owner.execute("VACUUM ANALYZE")
    return There(where, levels)


@contextmanager
def behind_spark(rows: Path, folder: Path, n_rows: int) -> Iterator[There]:
    """A Parquet file and that of its levels, behind a server of Sail."""
    levels = folder / "levels.parquet"
    made = f"COPY (SELECT {LEVELS} FROM range({n_rows}) AS t(i)) TO '{levels}'"  # noqa: S608 - constants
    duckdb.execute(made)
    with contextmanager(serving_sail)() as server:
        yield There(
            *(
                SparkTable(
                    address=server.address, parts=("parquet", str(path)), immutable=True, tls=False
                )
                for path in (rows, levels)
            )
        )


def there_compared(
    schema: Schema, postgres: PostgresRows, parquet: Path, folder: Path, n_rows: int
) -> tuple[dict[str, object], list[Bar]]:
    """Every engine in which a table may stay."""
    found: dict[str, dict[str, float]] = {}
    progress("postgres, counted there")
    there = make_levels_in_postgres(postgres, n_rows)
    found["postgres, counted there"] = apart(measured_there, there, schema)
    if importlib.util.find_spec("pysail") is None:
        progress("pysail is not installed: nothing is measured behind Spark Connect")
    else:
        progress("sail, counted there")
        with behind_spark(parquet, folder, n_rows) as there:
            found["sail, counted there"] = apart(measured_there, there, schema)
    bars = [
        Bar(
            f"{label}, by {' and '.join(scope)}: times the engine's GROUP BY of levels",
            share := figures["_".join(scope) + "_share"],
            GROUP_BY_SHARE_MAX,
            share <= GROUP_BY_SHARE_MAX,
        )
        for label, figures in found.items()
        for scope in SCOPES
    ]
    return dict(found), bars
