"""Xiao and Xiong's section 6 again: what answering costs, and how long a budget lasts.

One integer column of 128 levels with Zipf counts; queries are the paper's regions of interest
(equations 37 and 38, probabilities normalised) or uniform ranges; confidence 0.8.

    bounded     budget 1, no history, 2 * half_width uniform on [1, 1000]: the share answered
    unbounded   a binary tree at 0.3 is given, 2 * half_width uniform on [50, 1000]: the table cost

Everything runs as shipped, SQL to ledger, one configuration for all. Reliability is the share of
intervals at 0.8 that contain the true answer, averaged over independent runs, since answers within
one run share noise. Answers from a rich history are within the requested half-width more often than
that. Real histograms of 4,096 bins are reported as well, if their files are available.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from benchmarks.histogram_source import HistogramSource
from benchmarks.report import Bar, progress, run, wants_quick
from cube.axis import IntegerAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Partition, QueryBlock, counting
from cube.refusals import BudgetExhausted
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.tables.private_table import ServedTable

N_CELLS = 128
N_RECORDS = 100_000
CONFIDENCE = 0.8
TREE_EPSILON = 0.3
N_TRIALS_MAX = 10
BOUNDS = "DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high"
REAL_DATA = Path(__file__).parents[2] / "shared" / "data" / "dpbench1d"

Coefficients: TypeAlias = NDArray[np.int64]
Workload: TypeAlias = Callable[[np.random.Generator, int], Coefficients]


def regions(draw: np.random.Generator, n_cells: int) -> Coefficients:
    """A query of equations 37 and 38: 1 to 10 trials, mostly among the first ten cells."""
    n_trials = int(draw.integers(1, N_TRIALS_MAX + 1))
    decade = draw.geometric(0.9, size=n_trials) - 1
    cells = np.minimum(10 * decade + draw.integers(0, 10, size=n_trials), n_cells - 1)
    return np.bincount(cells, minlength=n_cells).astype(np.int64)


def ranges(draw: np.random.Generator, n_cells: int) -> Coefficients:
    """The count of a run of cells, both ends uniform."""
    first, last = np.sort(draw.integers(0, n_cells, size=2))
    query = np.zeros(n_cells, dtype=np.int64)
    query[first : last + 1] = 1
    return query


WORKLOADS: dict[str, Workload] = {"regions": regions, "ranges": ranges}


def zipf_counts(n_cells: int) -> Coefficients:
    """Counts in proportion to one over the rank, the largest first."""
    shares = 1 / np.arange(1, n_cells + 1)
    counts: Coefficients = np.floor(N_RECORDS * shares / shares.sum()).astype(np.int64)
    return counts


@contextmanager
def served(
    counts: Coefficients, budget: Fraction, strategy: Strategy, tree_epsilon: float = 0.0
) -> Iterator[tuple[Engine, ServedTable]]:
    """An engine on one column of these counts, with a ledger of its own."""
    axis = IntegerAxis(name="x", low=0, high=counts.size - 1)
    schema = Schema(table="t", axes=(axis,), n_records_max=max(int(counts.sum()), 1))
    default = AccuracyTarget(half_width=100.0, confidence=CONFIDENCE)
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "t.ledger") as ledger:
        source = HistogramSource(("x",), counts)
        gate = open_table(ledger, schema, budget, source, SystemNoise())
        if tree_epsilon:
            gate.measure(binary_tree(counts.size, tree_epsilon), Payer("tree"), epsilon_cap=None)
        table = ServedTable(schema, default, gate, strategy)
        yield Engine({"t": table}), table


def binary_tree(n_cells: int, epsilon: float) -> list[PlannedMeasurement]:
    """Every level of a binary tree over the cells, from the leaves to the root."""
    widths = [2**level for level in range(n_cells.bit_length())]
    weight = Weight.at_least(epsilon / len(widths))
    labels = [np.arange(n_cells, dtype=np.int64) // width for width in widths]
    blocks = [QueryBlock(counting(), Partition(("x",), level)) for level in labels]
    return [PlannedMeasurement(block, weight) for block in blocks]


def sql_of(query: Coefficients) -> str:
    """The weighted count as SQL."""
    if query.max() > 1:
        cases = " ".join(f"WHEN {cell} THEN {query[cell]}" for cell in np.flatnonzero(query))
        return f"SELECT SUM(CASE x {cases} ELSE 0 END) AS n, {BOUNDS} FROM t"  # noqa: S608 - our numbers
    asked = np.flatnonzero(query)
    if asked.size == asked[-1] - asked[0] + 1:
        return f"SELECT COUNT(*) AS n, {BOUNDS} FROM t WHERE x BETWEEN {asked[0]} AND {asked[-1]}"  # noqa: S608 - our numbers
    cells = ", ".join(map(str, asked))
    return f"SELECT COUNT(*) AS n, {BOUNDS} FROM t WHERE x IN ({cells})"  # noqa: S608 - our numbers


def asked(  # noqa: PLR0913 - one experiment's parameters
    counts: Coefficients,
    workload: Workload,
    widths: tuple[int, int],
    n_queries: int,
    seed: int,
    *,
    budget: Fraction,
    strategy: Strategy,
    tree_epsilon: float = 0.0,
) -> dict[str, float]:
    """Ask one run of queries; what was answered, how well, and what it cost."""
    draw = np.random.default_rng(seed)
    start = time.perf_counter()
    was_answered, was_free, was_within, was_covered = [], [], [], []
    with served(counts, budget, strategy, tree_epsilon) as (engine, table):
        for _ in range(n_queries):
            query = workload(draw, counts.size)
            half_width = float(draw.uniform(*widths)) / 2
            target = RequestedTarget(half_width=half_width, confidence=CONFIDENCE)
            try:
                release = engine.answer(QueryRequest(sql=sql_of(query), target=target))
            except BudgetExhausted:
                was_answered.append(False)
                continue
            was_answered.append(True)
            was_free.append(release.receipt is not None and release.receipt.epsilon_spent == 0)
            (answer,) = release.data.to_pylist()
            truth = int(query @ counts)
            was_within.append(abs(answer["n"] - truth) <= half_width)
            was_covered.append(answer["low"] <= truth <= answer["high"])
        spent = float(table.budget().spent)
    answered = np.cumsum(was_answered) / np.arange(1, n_queries + 1)
    return {
        "answered": float(answered[-1]),
        "answered_at_half": float(answered[n_queries // 2 - 1]),
        "free": float(np.mean(was_free)),
        "within_half_width": float(np.mean(was_within)),
        "reliability": float(np.mean(was_covered)),
        "table_cost": spent,
        "ms_a_query": 1000 * (time.perf_counter() - start) / n_queries,
    }


def averaged(outcomes: list[dict[str, float]]) -> dict[str, float]:
    """The mean of every figure over runs, and the standard error of those with bars."""
    mean = {name: float(np.mean([one[name] for one in outcomes])) for name in outcomes[0]}
    for name in ("answered", "table_cost"):
        spread = np.std([one[name] for one in outcomes], ddof=1) if len(outcomes) > 1 else 0.0
        mean[f"{name}_standard_error"] = float(spread) / len(outcomes) ** 0.5
    return mean


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick(__doc__ or "")
    threadpool_limits(limits=1)  # as in the served process
    n_queries, n_seeds, n_runs = (200, 2, 20) if quick else (1000, 5, 300)
    counts = zipf_counts(N_CELLS)
    figures: dict[str, dict[str, float]] = {}
    for strategy in (Strategy.AUTO, Strategy.PAPER) if quick else Strategy:
        # The bars are about `auto`; the others stand beside it, on the first of its seeds.
        seeds = range(n_seeds if strategy is Strategy.AUTO else min(2, n_seeds))
        for name, workload in WORKLOADS.items():
            bounded = [
                asked(
                    counts,
                    workload,
                    (1, 1000),
                    n_queries,
                    seed,
                    budget=Fraction(1),
                    strategy=strategy,
                )
                for seed in seeds
            ]
            unbounded = [
                asked(
                    counts,
                    workload,
                    (50, 1000),
                    n_queries,
                    seed,
                    budget=Fraction(1000),
                    strategy=strategy,
                    tree_epsilon=TREE_EPSILON,
                )
                for seed in seeds
            ]
            for kind, outcomes in (("bounded", bounded), ("unbounded", unbounded)):
                figures[f"{kind} {name}, {strategy}"] = averaged(outcomes)
                progress(f"{kind} {name}, {strategy}: {averaged(outcomes)}")
    small = zipf_counts(32)
    runs = [
        asked(small, regions, (1, 1000), 40, seed, budget=Fraction(1), strategy=Strategy.AUTO)
        for seed in range(n_runs)
    ]
    figures["independent runs, auto"] = averaged(runs)
    figures |= real_histograms(n_queries=50 if quick else 200)
    run(figures, bars(figures))


def real_histograms(n_queries: int) -> dict[str, dict[str, float]]:
    """The same questions on histograms of 4,096 bins, if their files are at hand."""
    figures = {}
    for file in ("nettrace", "searchlogs"):
        path = REAL_DATA / f"{file}.csv"
        if not path.exists():
            continue
        counts = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)[:, 1]
        for name, workload in WORKLOADS.items():
            for strategy in (Strategy.AUTO, Strategy.PAPER):
                outcome = asked(
                    counts, workload, (1, 1000), n_queries, 0, budget=Fraction(1), strategy=strategy
                )
                figures[f"bounded {name} on {file}, {strategy}"] = outcome
                progress(f"bounded {name} on {file}, {strategy}: {outcome}")
    return figures


def bars(figures: dict[str, dict[str, float]]) -> list[Bar]:
    """What must hold of `auto`."""
    answered = figures["bounded regions, auto"]["answered"]
    cost = figures["unbounded regions, auto"]["table_cost"]
    in_ranges = figures["bounded ranges, auto"]["answered_at_half"]
    reliability = figures["independent runs, auto"]["reliability"]
    return [
        Bar("share answered, bounded", answered, 0.985, answered >= 0.985),
        Bar("table cost, unbounded, tree included", cost, 0.60, cost <= 0.60),
        Bar("share of ranges answered at 500 queries", in_ranges, 0.95, in_ranges >= 0.95),
        Bar("reliability at 0.8, at least", reliability, 0.79, reliability >= 0.79),
        Bar("reliability at 0.8, at most", reliability, 0.82, reliability <= 0.82),
    ]


if __name__ == "__main__":
    main()
