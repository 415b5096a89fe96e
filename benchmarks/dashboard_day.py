"""A dashboard's day: thirty tiles, twenty people with filters of their own, 24,000 statements.

    python -m benchmarks.dashboard_day [--quick]

Every answer is within 1 % of Adult's records with probability .95. The day's generator is
`benchmarks/dashboard_tiles.py`. A statement that comes again is answered from history for nothing
(`benchmarks/repeat.py`), so only distinct statements are asked, in the order in which they first
come. Beside the strategies stands what an exact-match cache costs, computed cell by cell. All of it
is also done where the table's owner offers a delta: then the cheaper of Laplace and Gaussian noise
is bought.
"""

from dataclasses import asdict
from fractions import Fraction

import numpy as np

from benchmarks.apex_rows import CONFIGURATION
from benchmarks.dashboard_tiles import day
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.thrift import cache_per_cell, gaussian_cache_per_cell, spent_on
from planner.measuring.candidates import Strategy
from planner.measuring.weights import GaussianOffer
from proxy.config.settings import load

N_SEEDS = 3
N_DISTINCT_WHEN_QUICK = 150
AUTO_OVER_QUERY_MAX = 1 / 0.9
EPSILON_MAX = 1.0
EPSILON_WITH_DELTA_MAX = Fraction(2, 5)
OFFER = GaussianOffer(Fraction(1, 10**9), expected=EPSILON_WITH_DELTA_MAX, is_declared=True)
RUNS: dict[str, tuple[Strategy, GaussianOffer | None]] = {
    "auto": (Strategy.AUTO, None),
    "query": (Strategy.QUERY, None),
    "auto with delta": (Strategy.AUTO, OFFER),
}


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick("What a dashboard's day costs.")
    (table,) = load(CONFIGURATION).tables
    figures: dict[str, object] = {}
    spent: dict[str, list[float]] = {name: [] for name in RUNS}
    for seed in range(1 if quick else N_SEEDS):
        statements = day(table.schema, np.random.default_rng(seed))
        distinct = list({id(one): one for one in statements}.values())
        asked = distinct[:N_DISTINCT_WHEN_QUICK] if quick else distinct
        found: dict[str, object] = {
            "n_statements": len(statements),
            "n_distinct": len(distinct),
            "cache_per_cell": cache_per_cell(asked),
            "cache_per_cell with delta": gaussian_cache_per_cell(asked, OFFER),
        }
        for name, (strategy, offer) in RUNS.items():
            outcome = spent_on(table.schema, asked, strategy, offer)
            found[name] = asdict(outcome)
            spent[name].append(outcome.epsilon)
        progress(f"seed {seed}: {found}")
        figures[f"seed {seed}"] = found
    auto, query, with_delta = (float(np.mean(of)) for of in spent.values())
    with_delta_max = float(EPSILON_WITH_DELTA_MAX)
    bars = [
        Bar("epsilon of auto, pure", auto, EPSILON_MAX, auto <= EPSILON_MAX),
        Bar(
            "auto over query",
            auto / query,
            AUTO_OVER_QUERY_MAX,
            auto <= AUTO_OVER_QUERY_MAX * query,
        ),
        Bar(
            f"epsilon of auto, with delta {float(OFFER.delta):g}",
            with_delta,
            with_delta_max,
            with_delta <= with_delta_max,
        ),
    ]
    run(figures, bars)


if __name__ == "__main__":
    main()
