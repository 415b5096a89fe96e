"""A hundred identical COUNTs cost the price of one, repeated literally and in other words.

Through SQL, planner, gate and ledger as shipped, under every strategy.
"""

from fractions import Fraction

from benchmarks.paper_section6 import served, zipf_counts
from benchmarks.report import Bar, progress, run, wants_quick
from planner.measuring.candidates import Strategy
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest

N_REPEATS = 100
WORDINGS = (
    "SELECT COUNT(*) AS n FROM t WHERE x < 40",
    "SELECT COUNT(*) AS n FROM t WHERE NOT x >= 40",
    "SELECT SUM(CASE WHEN x BETWEEN 0 AND 39 THEN 1 ELSE 0 END) AS n FROM t",
)


def main() -> None:
    """Run the benchmark and print its report."""
    wants_quick(__doc__ or "")
    figures: dict[str, object] = {}
    bars = []
    target = RequestedTarget(half_width=100.0, confidence=0.95)
    for strategy in Strategy:
        with served(zipf_counts(128), Fraction(10), strategy) as (engine, table):
            engine.answer(QueryRequest(sql=WORDINGS[0], target=target))
            once = table.budget().spent
            for place in range(1, N_REPEATS):
                sql = WORDINGS[place % len(WORDINGS)]
                engine.answer(QueryRequest(sql=sql, target=target))
            often = table.budget().spent
        figures[f"epsilon, {strategy}"] = {"once": float(once), "a hundred times": float(often)}
        progress(f"{strategy}: {float(once)} once, {float(often)} a hundred times")
        bars.append(
            Bar(
                f"price of a hundred over price of one, {strategy}",
                float(often / once),
                1.0,
                often == once,
            )
        )
    run(figures, bars)


if __name__ == "__main__":
    main()
