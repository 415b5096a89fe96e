"""APEx's workloads on Adult, through planner, gate and ledger as shipped.

    python -m benchmarks.apex_rows [--quick]

Ge, He, Ilyas and Machanavajjhala, "APEx: Accuracy-Aware Differentially Private Data Exploration",
SIGMOD 2019: QW1, a histogram of capital gain in 100 bins; QW2, its 100 prefixes; QI1, which of the
prefixes exceed a tenth of the table (decided on the answers to the prefixes, so the same workload).
All answers are to be within alpha, .02 or .08 of APEx's 32,561 records, with probability 1 - beta,
beta = .0005; each of the 100 at confidence 1 - beta / 100, which implies it. The records asked are
those of examples/adult, which are more; epsilon depends on alpha and beta alone.

The bars are the best of APEx's mechanisms, run on its own code and printed to five decimals, and
are compared at five decimals. Asking a second time costs nothing, and neither does QW1 after QW2.
"""

import tempfile
from fractions import Fraction
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.grouping import Grouping
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from benchmarks.report import Bar, progress, run, wants_quick
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from inference.posterior import Posterior
from planner.batch.plan import plan_batch
from planner.workload import Wanted
from proxy.config.settings import load
from proxy.sources.duckdb_source import DuckDbSource

CONFIGURATION = Path(__file__).parent.parent / "examples" / "adult" / "tacit.toml"
COLUMN = "capital_gain"
N_RECORDS_APEX = 32_561
BETA = 0.0005
BARS = {
    ("QW1", 0.02): 0.01874,
    ("QW1", 0.08): 0.00469,
    ("QW2", 0.02): 0.09449,
    ("QW2", 0.08): 0.02497,
    ("QI1", 0.02): 0.10622,
    ("QI1", 0.08): 0.02657,
}
DECIMALS = 5


def histogram(n_bins: int, target: AccuracyTarget) -> list[Wanted]:
    """QW1: the count of every bin."""
    block = QueryBlock(counting(), Partition((COLUMN,), np.arange(n_bins, dtype=np.int64)))
    return [Wanted(block, target)]


def prefixes(n_bins: int, target: AccuracyTarget) -> list[Wanted]:
    """QW2 and QI1: the count of every run of bins from the first."""
    first = np.tril(np.ones((n_bins, n_bins), dtype=np.int64))
    return [Wanted(QueryBlock(counting([Factor((COLUMN,), row)])), target) for row in first]


def workload(name: str, n_bins: int, share: float) -> list[Wanted]:
    """A workload of APEx, each answer at its part of beta."""
    target = AccuracyTarget(half_width=share * N_RECORDS_APEX, confidence=1 - BETA / n_bins)
    return histogram(n_bins, target) if name == "QW1" else prefixes(n_bins, target)


def bought(gate: Gate, schema: Schema, queries: list[Wanted]) -> Fraction:
    """Plan a workload beside what is known, buy it, and say what was charged."""
    before = gate.budget().spent
    plan = plan_batch(queries, schema, gate.measurements())
    if plan.measurements:
        gate.measure(plan.measurements, Payer("benchmark"), epsilon_cap=None)
    return gate.budget().spent - before


def largest_error(
    gate: Gate, schema: Schema, queries: list[Wanted], exact: NDArray[np.float64]
) -> float:
    """The largest error of an answer, as a share of the half-width it was asked at.

    Also checks that every interval is as narrow as it was asked.
    """
    estimator = Estimator(schema)
    estimator.add(gate.measurements())
    errors: list[float] = []
    for query in queries:
        rows = estimator.estimate(query.block, query.target.confidence, query.target.half_width)
        for row in rows:
            wanted = query.target.half_width
            if not isinstance(row, Posterior) or row.half_width(query.target.confidence) > wanted:
                raise RuntimeError("an answer wider than it was asked")
            errors.append(abs(row.value - float(exact[len(errors)])) / wanted)
    return max(errors)


def main() -> None:
    """Run every workload on a ledger of its own, then again, then QW1 after QW2."""
    quick = wants_quick("APEx's workloads on Adult.")
    (table,) = load(CONFIGURATION).tables
    schema = table.schema
    n_bins = schema.by_name[COLUMN].size
    source = DuckDbSource(schema, table.read_from)
    counts = source.measure(Grouping.of_each((COLUMN,), (n_bins,)))
    of_bin = np.zeros(n_bins)
    of_bin[counts.levels[0]] = counts.counts
    figures: dict[str, dict[str, float]] = {}
    bars = []
    for (name, share), bar in BARS.items():
        if quick and share > 0.02:
            continue
        queries = workload(name, n_bins, share)
        exact = of_bin if name == "QW1" else np.cumsum(of_bin)
        with (
            tempfile.TemporaryDirectory() as folder,
            open_ledger(Path(folder) / "adult.ledger") as ledger,
        ):
            gate = open_table(ledger, schema, Fraction(1), source, SystemNoise())
            begun = perf_counter()
            first = float(bought(gate, schema, queries))
            seconds = perf_counter() - begun
            found = {
                "epsilon": first,
                "apex": bar,
                "again": float(bought(gate, schema, queries)),
                "largest_error": largest_error(gate, schema, queries, exact),
                "seconds": seconds,
            }
            if name == "QW2":
                found["then_QW1"] = float(bought(gate, schema, workload("QW1", n_bins, share)))
        title = f"{name} at {share:g} n"
        progress(f"{title}: {found}")
        figures[title] = found
        bars.append(Bar(f"{title}: epsilon", first, bar, round(first, DECIMALS) <= bar))
        bars.append(Bar(f"{title}: epsilon again", found["again"], 0.0, found["again"] == 0))
        error = found["largest_error"]
        bars.append(Bar(f"{title}: largest error over alpha", error, 1.0, error <= 1))
        if "then_QW1" in found:
            later = found["then_QW1"]
            bars.append(Bar(f"QW1 after QW2 at {share:g} n: epsilon", later, 0.0, later == 0))
    run({"workloads": figures}, bars)


if __name__ == "__main__":
    main()
