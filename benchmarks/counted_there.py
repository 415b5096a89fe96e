"""Tables that stay in their engine, beside its own GROUP BY: a part of `benchmarks.sources`.

python -m benchmarks.counted_there [--quick]
"""

from benchmarks.report import run, wants_quick
from benchmarks.sources import made, schema_of
from benchmarks.sources_there import there_compared
from proxy.sources.location import PostgresRows


def main() -> None:
    """Measure, and say whether the bars are cleared."""
    quick = wants_quick("Tables that stay in their engine, beside its own GROUP BY.")
    n_rows = 10**5 if quick else 10**6
    with made(("parquet", "postgres"), n_rows) as (folder, locations):
        there = locations["postgres"]
        assert isinstance(there, PostgresRows)
        parquet = folder / "sales.parquet"
        found, bars = there_compared(schema_of(n_rows), there, parquet, folder, n_rows)
    run({"n_rows": n_rows, **found}, bars)


if __name__ == "__main__":
    main()
