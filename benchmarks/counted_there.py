"""Tables that stay in their engine, beside its own GROUP BY: a part of `benchmarks.sources`.

python -m benchmarks.counted_there [--quick]
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from accountant.ledger.stores.postgres_location import PostgresLocation
from benchmarks.report import run, wants_quick
from benchmarks.sources import make_files, make_table, schema_of
from benchmarks.sources_there import there_compared
from proxy.sources.location import PostgresRows
from tests.support.postgres import serving_postgres


def main() -> None:
    """Measure, and say whether the bars are cleared."""
    quick = wants_quick("Tables that stay in their engine, beside its own GROUP BY.")
    n_rows = 10**5 if quick else 10**6
    with TemporaryDirectory() as name, serving_postgres() as server:
        folder = Path(name)
        make_files(folder, n_rows)
        postgres = PostgresRows(server=PostgresLocation.parse(server.location()), table="sales")
        make_table(postgres, n_rows)
        parquet = folder / "sales.parquet"
        found, bars = there_compared(schema_of(n_rows), postgres, parquet, folder, n_rows)
    run({"n_rows": n_rows, **found}, bars)


if __name__ == "__main__":
    main()
