"""A dashboard's day: thirty tiles, twenty people with filters of their own, 24,000 statements.

    python -m benchmarks.dashboard_day [--quick]

Every answer is within 1 % of Adult's records with probability .95. The day's generator is
`benchmarks/dashboard_tiles.py`. A statement that comes again is answered from history for nothing
(`benchmarks/repeat.py`), so only distinct statements are asked, in the order in which they first
come. Beside the strategies stands what Laplace noise with an exact-match cache costs, computed cell
by cell.
"""

from dataclasses import asdict

import numpy as np

from benchmarks.apex_rows import CONFIGURATION
from benchmarks.dashboard_tiles import day
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.thrift import cache_per_cell, spent_on
from planner.measuring.strategy import Strategy
from proxy.config.settings import load

N_SEEDS = 3
N_DISTINCT_WHEN_QUICK = 150
AUTO_OVER_QUERY_MAX = 1 / 0.9
EPSILON_MAX = 1.0


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick("What a dashboard's day costs.")
    (table,) = load(CONFIGURATION).tables
    figures: dict[str, object] = {}
    spent: dict[str, list[float]] = {"auto": [], "query": []}
    for seed in range(1 if quick else N_SEEDS):
        statements = day(table.schema, np.random.default_rng(seed))
        distinct = list({id(one): one for one in statements}.values())
        asked = distinct[:N_DISTINCT_WHEN_QUICK] if quick else distinct
        found: dict[str, object] = {
            "n_statements": len(statements),
            "n_distinct": len(distinct),
            "cache_per_cell": cache_per_cell(asked),
        }
        for strategy in (Strategy.AUTO, Strategy.QUERY):
            outcome = spent_on(table.schema, asked, strategy)
            found[strategy] = asdict(outcome)
            spent[strategy].append(outcome.epsilon)
        progress(f"seed {seed}: {found}")
        figures[f"seed {seed}"] = found
    auto, query = (float(np.mean(of)) for of in spent.values())
    bars = [
        Bar("epsilon of auto, pure", auto, EPSILON_MAX, auto <= EPSILON_MAX),
        Bar(
            "auto over query",
            auto / query,
            AUTO_OVER_QUERY_MAX,
            auto <= AUTO_OVER_QUERY_MAX * query,
        ),
    ]
    run(figures, bars)


if __name__ == "__main__":
    main()
