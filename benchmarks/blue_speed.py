"""Speed, exactness and detection of dependence of the best linear unbiased estimate.

    python -m benchmarks.blue_speed [--quick]

A query on a dense history is timed against `numpy.linalg.lstsq` on the same whitened rows, the two
alternating in one process with the same BLAS threads. Bars: 20 times faster, coefficients right to
1e-9, dependent rows told from independent ones on five families, and the hot path of the proxy (one
query on 200 rows over 2000 atoms) under a millisecond. On histories over a million cells: a query
of the paper's equation 38 on 5000 rows under a millisecond, on 1000 ranges under 25.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.structured import WORKLOADS, measured
from benchmarks.workloads import FAMILIES, History, dense, ranges, with_combinations
from inference.blue.blue import DEPENDENCE_TOLERANCE, OnlineBlue, RowSpace

SEED = 20120827
N_TIMINGS = 15
N_DEPENDENT = 60
SPEEDUP_MIN = 20.0
RESIDUAL_MAX = 1e-9
HOT_PATH_MS_MAX = 1.0
STRUCTURED_MS_MAX = {
    "equation 38, 1e6 cells, 5000 rows": 1.0,
    "ranges, 1e6 cells, 1000 rows": 25.0,
}
THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Gap:
    """How far from the span independent rows stay, and dependent ones come, relatively."""

    largest_dependent: float
    smallest_independent: float
    n_dependent: int
    n_independent: int


def told_apart(history: History) -> Gap:
    """Take rows in one by one; the relative distance of each from the span of those before it."""
    space = RowSpace(history.sizes)
    distances, adds = np.empty(len(history.rows)), np.empty(len(history.rows), dtype=np.bool_)
    for place, row in enumerate(history.rows[:, np.newaxis]):
        rank = space.rank
        distances[place] = space.project(row)[1][0]
        space.extend(row)
        adds[place] = space.rank > rank
    return Gap(
        largest_dependent=float(distances[~adds].max(initial=0.0)),
        smallest_independent=float(distances[adds].min(initial=1.0)),
        n_dependent=int((~adds).sum()),
        n_independent=int(adds.sum()),
    )


def milliseconds(action: Callable[[], object]) -> float:
    """The time of one run."""
    start = perf_counter()
    action()
    return 1e3 * (perf_counter() - start)


def compared_with_lstsq(rng: np.random.Generator, n_cells: int, n_rows: int) -> dict[str, float]:
    """Median times of one query by both ways, and how exact the coefficients are."""
    history = dense(rng, n_cells=n_cells, n_rows=n_rows)
    weights = 10.0 ** rng.uniform(-3.0, 1.0, size=n_rows)
    queries = dense(rng, n_cells=n_cells, n_rows=N_TIMINGS).rows
    blue = OnlineBlue(history.sizes)
    add_ms = milliseconds(partial(blue.add, history.rows, weights))
    whitened = (weights[:, np.newaxis] * history.rows).T
    ours, theirs = [], []
    for query in queries:
        ours.append(milliseconds(partial(blue.combine, query[np.newaxis])))
        theirs.append(milliseconds(partial(np.linalg.lstsq, whitened, query, rcond=None)))
    combination = blue.combine(queries)
    reference = np.linalg.lstsq(whitened, queries.T, rcond=None)[0]
    half_variance = np.square(reference).sum(axis=0)
    return {
        "cells": n_cells,
        "rows": n_rows,
        "combine_ms": float(np.median(ours)),
        "lstsq_ms": float(np.median(theirs)),
        "times_faster": float(np.median(theirs) / np.median(ours)),
        "add_all_rows_ms": add_ms,
        "residual": float(combination.residual.max()),
        "half_variance_against_lstsq": float(
            np.abs(combination.half_variance / half_variance - 1.0).max()
        ),
    }


def hot_path_ms(rng: np.random.Generator) -> float:
    """Median time of one query on 200 range counts, on the 2000 atoms of a history of 1000."""
    history = ranges(rng, n_cells=1_000_000, n_rows=1_000)
    rows = history.rows[:200]
    blue = OnlineBlue(history.sizes)
    blue.add(rows, np.full(len(rows), 0.1))
    query = rows[:1] + 2.0 * rows[1:2]
    return float(np.median([milliseconds(partial(blue.combine, query)) for _ in range(200)]))


def gaps(rng: np.random.Generator) -> dict[str, Gap]:
    """The gap of each family, with combinations of its rows appended."""
    found = {}
    for name, draw in FAMILIES.items():
        progress(f"telling rows apart: {name}")
        found[name] = told_apart(with_combinations(rng, draw(rng), N_DEPENDENT))
    return found


def structured(rng: np.random.Generator, *, quick: bool) -> dict[str, dict[str, float]]:
    """Every structured workload; when in a hurry, those that have a bar."""
    found = {}
    for name, workload in WORKLOADS.items():
        if not quick or name in STRUCTURED_MS_MAX:
            progress(f"structured: {name}")
            found[name] = measured(workload, rng)
    return found


def main() -> None:
    """Measure everything and report."""
    quick = wants_quick("Speed and exactness of the best linear unbiased estimate.")
    rng = np.random.default_rng(SEED)
    n_cells, n_rows = (700, 1_400) if quick else (1_000, 2_000)
    progress(f"against lstsq: {n_rows} dense rows over {n_cells} cells")
    speed = compared_with_lstsq(rng, n_cells, n_rows)
    hot_path = hot_path_ms(rng)
    families = gaps(rng)
    workloads = structured(rng, quick=quick)
    bars = [
        Bar("combine against numpy.linalg.lstsq, times faster", speed["times_faster"],
            SPEEDUP_MIN, speed["times_faster"] >= SPEEDUP_MIN),
        Bar("largest error of a coefficient of A H = Q", speed["residual"],
            RESIDUAL_MAX, speed["residual"] < RESIDUAL_MAX),
        Bar("one query on 200 rows over 2000 atoms, ms", hot_path,
            HOT_PATH_MS_MAX, hot_path < HOT_PATH_MS_MAX),
    ]  # fmt: skip
    for name, gap in families.items():
        apart = gap.largest_dependent < DEPENDENCE_TOLERANCE < gap.smallest_independent
        ratio = gap.smallest_independent / max(gap.largest_dependent, np.finfo(float).tiny)
        bars.append(Bar(f"told apart, {name}: nearest independent over farthest dependent row",
                        ratio, 1e3, apart and ratio > 1e3))  # fmt: skip
    for name, bar in STRUCTURED_MS_MAX.items():
        query_ms = workloads[name]["query_ms"]
        bars.append(Bar(f"one query, {name}, ms", query_ms, bar, query_ms < bar))
    figures = {
        "threads": {name: os.environ.get(name, "not set") for name in THREAD_SETTINGS},
        "dense": speed,
        "hot_path_ms": hot_path,
        "structured": workloads,
        "families": {name: _as_figures(gap) for name, gap in families.items()},
    }
    run(figures, bars)


def _as_figures(gap: Gap) -> dict[str, float]:
    return {name: float(getattr(gap, name)) for name in Gap.__slots__}


if __name__ == "__main__":
    main()
