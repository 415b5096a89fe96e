"""A large synthetic table: three million rows of fourteen columns, made, kept and queried.

    python -m benchmarks.synthesis_size [--quick]

The private table has as many rows and columns, and nearly as many levels, as the flights from New
York in 2013; its rows are made up, and depend on each other through a place in the year and a
route. The synthetic table is made through the gate with the system's noise, kept in a folder, and
queried in SQL, in a process of its own; the limits on its size are raised for it. Whether its rows
are near the private ones is not asked here (synthesis.py).
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyarrow import csv
from threadpoolctl import threadpool_limits

from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.synthesis_runs import peak_mb
from benchmarks.synthesis_tables import NAME, BenchTable, served
from cube.axis import Axis, CategoryAxis, IntegerAxis
from cube.schema import Schema
from planner.sql.synthetic_statements import CreateSynthetic
from proxy.api.requests import LOCAL, QueryRequest
from proxy.config.memory import N_BYTES_HIGHEST, N_ROWS_HIGHEST, SyntheticLimits
from proxy.engine.engine import Engine
from proxy.synthetic_tables.store import SyntheticStore

N_PRIVATE = 336_776
N_ROWS, N_ROWS_QUICK = 3_000_000, 1_500_000
SEED = 18  # of the made-up rows; noise and drawing have none
NUMBERS = {"dep_time": 1440, "sched_dep_time": 1440, "arr_time": 1440, "dep_delay": 700,
           "air_time": 670, "distance": 214, "hour": 24, "minute": 60}  # fmt: skip
CODES = {"month": 12, "day": 31, "carrier": 16, "tailnum": 4044, "origin": 3, "dest": 105}
NEAR = 0.3  # of a geometric distance from the level that the route or the time of year gives
SQL = "SELECT carrier, COUNT(*) AS n, AVG(air_time) AS a FROM big GROUP BY carrier ORDER BY n"
MADE_MB_MAX, QUERIED_MB_MAX = 1000.0, 1200.0
CPU_SECONDS_MAX = 70.0
SQL_SECONDS_MAX = 4.0


def main() -> None:
    """Run the benchmark and print its report."""
    n_rows = N_ROWS_QUICK if wants_quick("How large a synthetic table can be.") else N_ROWS
    context = multiprocessing.get_context("spawn")
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        path = write_flights(Path(folder))
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            figures = pool.submit(made_and_queried, path, n_rows).result()
    progress(str(figures))
    made, asked = figures["peak_mb, made"], figures["peak_mb, queried"]
    seconds, sql_seconds = figures["cpu_seconds, made"], figures["cpu_seconds, queried"]
    run(
        figures,
        [
            Bar("peak memory of a process that makes it, MB", made, MADE_MB_MAX,
                made <= MADE_MB_MAX),
            Bar("peak memory of a process that queries it, too, MB", asked, QUERIED_MB_MAX,
                asked <= QUERIED_MB_MAX),
            Bar("CPU seconds to make it", seconds, CPU_SECONDS_MAX, seconds <= CPU_SECONDS_MAX),
            Bar("CPU seconds of the first query of it", sql_seconds, SQL_SECONDS_MAX,
                sql_seconds <= SQL_SECONDS_MAX),
        ],
    )  # fmt: skip


def schema() -> Schema:
    """The columns of the private table."""
    axes: list[Axis] = [
        CategoryAxis(name=name, values=tuple(f"{name}-{code}" for code in range(size)))
        for name, size in CODES.items()
    ]
    axes += [IntegerAxis(name=name, low=0, high=size - 1) for name, size in NUMBERS.items()]
    return Schema(table=NAME, axes=tuple(axes), n_records_max=1_000_000)


def write_flights(folder: Path) -> Path:
    """A file of made-up rows."""
    rng = np.random.default_rng(SEED)
    route, at = rng.random((2, N_PRIVATE))
    columns: dict[str, pa.Array] = {}
    for place, axis in enumerate(schema().axes):
        near = (route if place % 2 else at) * axis.size + rng.geometric(NEAR, N_PRIVATE)
        levels = pa.array(axis.levels)
        columns[axis.name] = levels.take(pa.array(near.astype(np.int64) % axis.size))
    path = folder / "flights.csv"
    csv.write_csv(pa.table(columns), path)
    return path


def made_and_queried(path: Path, n_rows: int) -> dict[str, float]:
    """Make the table and query it; CPU seconds, and the most memory so far, after each step."""
    threadpool_limits(limits=1)
    limits = SyntheticLimits(n_rows=N_ROWS_HIGHEST, n_bytes=N_BYTES_HIGHEST)
    figures: dict[str, float] = {}
    with served(BenchTable("flights", path, schema())) as private, TemporaryDirectory() as folder:
        store = SyntheticStore(Path(folder) / "synthetic", limits)
        engine = Engine({NAME: private}, store=store)
        figures["peak_mb, opened"] = peak_mb()
        order = CreateSynthetic(name="big", table=NAME, epsilon=Fraction(1), n_rows=n_rows)
        start = time.process_time()
        kept = engine.synthetic.create(LOCAL, order, lambda _step: None)
        figures["cpu_seconds, made"] = time.process_time() - start
        figures["peak_mb, made"] = peak_mb()
        figures["n_rows"], figures["mb_of_rows"] = float(kept.n_rows), kept.n_bytes / 1e6
        start = time.process_time()
        answer = engine.answer(QueryRequest(sql=SQL))
        figures["cpu_seconds, queried"] = time.process_time() - start
        figures["peak_mb, queried"] = peak_mb()
        figures["rows_of_the_answer"] = float(sum(answer.data["n"].to_pylist()))
    return figures


if __name__ == "__main__":
    main()
