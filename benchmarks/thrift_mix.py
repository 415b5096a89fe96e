"""What `auto` costs beside `query` on workloads that punish measuring too narrowly or too widely.

    python -m benchmarks.thrift_mix [--quick]

Counts over two, one to three, and four columns of Adult within 1 % of the records; ranges of one
column of 128 to a million levels and boxes on two; counts from Turbo's pool. See
`benchmarks/thrift_workloads.py`. Beside both strategies stands what Laplace noise with an
exact-match cache costs, computed. The bars are of the mean over seeds.
"""

from dataclasses import asdict

import numpy as np

from benchmarks.apex_rows import CONFIGURATION
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.thrift import cache_per_cell, spent_on
from benchmarks.thrift_workloads import workloads
from planner.measuring.candidates import Strategy
from proxy.config.settings import load

N_SEEDS = 3
AUTO_OVER_QUERY_MAX = 1 / 0.9
EPSILON_MAX = {
    "two_column": 0.38,
    "four_column": 0.15,
    "ranges_1024": 0.06,
    "boxes_64x64": 0.15,
}
# One level more is no cliff: what is bought changes its shape between the two.
NEIGHBOURS = {
    "ranges_4097": "ranges_4096",
    "ranges_16385": "ranges_16384",
    "boxes_65x64": "boxes_64x64",
}
NEIGHBOUR_MAX = 1.3  # it was 8.8
LEFT_OUT_WHEN_QUICK = (
    "ranges_16384", "ranges_16385", "ranges_65536", "ranges_1000000", "boxes_200x200", "pool",
)  # fmt: skip


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick("What auto costs beside query on many workloads.")
    (table,) = load(CONFIGURATION).tables
    figures: dict[str, object] = {}
    means: dict[str, float] = {}
    bars = []
    for name, (schema, draw_requests) in workloads(table.schema).items():
        if quick and name in LEFT_OUT_WHEN_QUICK:
            continue
        outcomes: dict[str, list[dict[str, float]]] = {"auto": [], "query": []}
        cached = []
        for seed in range(1 if quick else N_SEEDS):
            requests = draw_requests(np.random.default_rng(seed))
            cached.append(cache_per_cell(requests))
            for strategy in (Strategy.AUTO, Strategy.QUERY):
                outcome = asdict(spent_on(schema, requests, strategy))
                outcomes[strategy].append(outcome)
                progress(f"{name}, seed {seed}, {strategy}: {outcome}")
        figures[name] = {**outcomes, "cache_per_cell": cached}
        auto, query = (float(np.mean([one["epsilon"] for one in of])) for of in outcomes.values())
        means[name] = auto
        bars.append(_at_most(f"{name}: auto over query", auto / query, AUTO_OVER_QUERY_MAX))
        if name in EPSILON_MAX:
            bars.append(_at_most(f"{name}: epsilon of auto", auto, EPSILON_MAX[name]))
    bars += [
        _at_most(f"{name} over {below}", means[name] / means[below], NEIGHBOUR_MAX)
        for name, below in NEIGHBOURS.items()
        if name in means
    ]
    run(figures, bars)


def _at_most(name: str, value: float, bar: float) -> Bar:
    return Bar(name, value, bar, value <= bar)


if __name__ == "__main__":
    main()
