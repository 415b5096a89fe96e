"""What expressions mean in Tacit and in a real PostgreSQL: 100,000 at random, wherever they stand.

    python -m benchmarks.differential [--quick] [--seed N]

Each is an expression over numbers, texts, days, times, moments, instants and intervals, with NULLs,
ties and texts of many scripts. It is evaluated as a group key, one of two, as a condition on rows
and in HAVING, as what is added up, on a public table, on answers, without a table and in the
catalog. PostgreSQL and Tacit agree where values and families of types
are the same, where both refuse, or where Tacit refuses; the share of refusals is a bar, too. A
difference is made as small as it goes before it is told.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.report import Bar, progress, run
from proxy.monitoring.logs import configure_logs
from tests.differential.places import evaluators
from tests.differential.places import run as compared
from tests.support.postgres import serving_postgres

N_EXPRESSIONS: Final = 100_000
QUICK_N_EXPRESSIONS: Final = 5000
REFUSED_MAX: Final = 0.4


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_N_EXPRESSIONS} expressions")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    configure_logs()
    n_expressions = QUICK_N_EXPRESSIONS if wanted.quick else N_EXPRESSIONS
    with (
        serving_postgres() as server,
        TemporaryDirectory(prefix="tacit-bench-") as folder,
        evaluators(Path(folder), server) as both,
    ):
        found = compared(both, wanted.seed, n_expressions, tell=progress)
    share = found.refused / found.tried
    bars = [
        Bar("differences", len(found.differences), 0, not found.differences),
        Bar("share of expressions that Tacit refuses", share, REFUSED_MAX, share <= REFUSED_MAX),
    ]
    run({"seed": wanted.seed, "tried": found.tried}, bars)


if __name__ == "__main__":
    main()
