"""The intervals of CORR, COVAR, regression and sums over groups hold the truth at 95 %: 94 to 96 %.

Independent runs of the whole path, each on a fresh ledger with system noise, on one table whose
truth DuckDB computes. Coverages of one run share noise, so each is stated for itself: with 4,000
runs its standard deviation is 0.34 %. Noise of a wrong scale, by 1.15, must leave the bars.
"""

import tempfile
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import NoiseSource, SystemNoise
from benchmarks.report import Bar, progress, run, wants_quick
from cube.axis import CategoryAxis, MeasureAxis
from cube.schema import Schema
from cube.target import AccuracyTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable
from tests.end_to_end.test_coverage import ScaledNoise
from tests.support.fakes import KnownTable

N_RUNS, N_RUNS_QUICK = 4000, 400
N_RECORDS = 3000
CONFIDENCE = 0.95
# Two percentage points of the coverage, and for few runs four standard deviations.
ERROR_MAX, ERROR_MAX_QUICK = 0.01, 0.044
SCALE_ERROR = 1.15  # moves each coverage by .025 or more
ITEMS = {
    "corr": "CORR(x, y)",
    "covar_pop": "COVAR_POP(x, y)",
    "covar_samp": "COVAR_SAMP(x, y)",
    "regr_slope": "REGR_SLOPE(y, x)",
    "regr_intercept": "REGR_INTERCEPT(y, x)",
    "regr_avgx": "REGR_AVGX(y, x)",
    "regr_count": "REGR_COUNT(y, x)",
}
OF_COLUMNS = f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in ITEMS.items())} FROM t"  # noqa: S608 - fixed words
OF_GROUPS = (
    "SELECT SUM(n) AS sum_of_counts, SUM(s) AS sum_of_sums FROM "
    "(SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g) AS groups WHERE g < 'f'"
)
SCHEMA = Schema(
    table="t",
    axes=(
        CategoryAxis(name="g", values=tuple("abcdefgh")),
        MeasureAxis(name="x", low=0, high=100, step=Fraction(1, 2)),
        MeasureAxis(name="y", low=-50, high=50, step=Fraction(1, 2), null=True),
    ),
    n_records_max=10 * N_RECORDS,
)
DEFAULT = AccuracyTarget(half_width=40.0, confidence=CONFIDENCE)


def records() -> NDArray[np.int64]:
    """Level positions of records in which y follows x; each tenth y is NULL."""
    rng = np.random.default_rng(15)
    x = np.clip(rng.normal(90, 40, N_RECORDS), 0, 200).round()
    y = np.clip(0.6 * x + rng.normal(40, 25, N_RECORDS), 0, 200).round()
    y[::10] = 201  # NULL comes last
    group = rng.integers(0, 8, N_RECORDS)
    return np.stack([group, x, y], axis=1).astype(np.int64)


def truth(rows: NDArray[np.int64]) -> dict[str, float]:
    """What DuckDB answers on the same records."""
    database = duckdb.connect(":memory:")
    database.execute("CREATE TABLE t (g VARCHAR, x DOUBLE, y DOUBLE)")
    levels = [
        [axis.levels[place] for axis, place in zip(SCHEMA.axes, row, strict=True)] for row in rows
    ]
    database.executemany("INSERT INTO t VALUES (?, ?, ?)", levels)
    found: dict[str, float] = {}
    for sql in (OF_COLUMNS, OF_GROUPS):
        answered = database.sql(sql)
        (row,) = answered.fetchall()
        found |= dict(zip(answered.columns, map(float, row), strict=True))
    return found


def coverage(n_runs: int, factor: float | None = None) -> dict[str, float]:
    """For each answer, the share of runs whose interval holds the truth."""
    rows = records()
    truths = truth(rows)
    source = KnownTable(SCHEMA, rows)
    held = dict.fromkeys(truths, 0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(n_runs):
            noise: NoiseSource = SystemNoise() if factor is None else ScaledNoise(factor)
            with open_ledger(Path(folder) / f"{number}.ledger") as ledger:
                gate = open_table(ledger, SCHEMA, Fraction(10**6), source, noise)
                engine = Engine({"t": ServedTable(SCHEMA, DEFAULT, gate)})
                for sql in (OF_COLUMNS, OF_GROUPS):
                    receipt = engine.answer(QueryRequest(sql=sql)).receipt
                    assert receipt is not None
                    for column in receipt.columns:
                        held[column.name] += column.low[0] <= truths[column.name] <= column.high[0]
    return {name: hits / n_runs for name, hits in held.items()}


def main() -> None:
    """Run the benchmark and print its report."""
    is_quick = wants_quick(__doc__ or "")
    n_runs = N_RUNS_QUICK if is_quick else N_RUNS
    error_max = ERROR_MAX_QUICK if is_quick else ERROR_MAX
    found = coverage(n_runs)
    progress(f"as charged: {found}")
    wrong = coverage(n_runs // 4, SCALE_ERROR)
    progress(f"noise {SCALE_ERROR} times too wide: {wrong}")
    bars = [
        Bar(
            f"coverage of {name} at {CONFIDENCE}, off by",
            abs(share - CONFIDENCE),
            error_max,
            abs(share - CONFIDENCE) <= error_max,
        )
        for name, share in found.items()
    ]
    moved = CONFIDENCE - float(np.mean(list(wrong.values())))
    bars.append(Bar("mean coverage lost with a wrong scale", moved, 0.01, moved > 0.01))
    run({"n_runs": n_runs, "coverage": found, "coverage with a wrong scale": wrong}, bars)


if __name__ == "__main__":
    main()
