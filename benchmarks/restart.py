"""How long a server takes to restart: a ledger of 50,000 measurements, read and checked.

    python -m benchmarks.restart [--quick]

The ledger has the columns of the Adult table: charges of one to three blocks over one to four
columns, a fifth of them grouped, a tenth raised from an earlier measurement. Opening it checks the
chain of digests, every entry against those before, and recomputes the cost of all rows, or takes
it from the checkpoint; the estimator then reads the measurements and answers a first query. Times
are of the processor.
"""

import resource
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from accountant.auditor.verify import verify
from accountant.ledger.entries import (
    GENESIS,
    Entry,
    Measured,
    TableBody,
    TableOpened,
    chained_digest,
)
from accountant.ledger.entry_json import write
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger, open_reader
from accountant.ledger.stores.key_file import fingerprint_key, key_beside
from accountant.ledger.stores.sqlite_store import SqliteStore
from benchmarks.made_up_charges import MadeUpCharges, Sizes
from benchmarks.report import Bar, progress, run, wants_quick
from cube.runtime import uncollected
from cube.schema import Schema
from examples.adult.demo import HERE
from inference.estimator import Estimator
from proxy.config.settings import load

SEED = 2
N_MEASUREMENTS = 50_000
N_BLOCKS_MAX = 3  # of a charge
N_COLUMNS_MAX = 4  # of a block
OPEN_SECONDS_MAX = 30.0
CHECKPOINT_SECONDS_MAX = 5.0
CONFIDENCE = 0.95


class Past:
    """Entries that could have been written about a table.

    Parameters
    ----------
    schema : Schema
        The table.
    rng : numpy.random.Generator
        Draws rows, weights and values; the values are nobody's.
    """

    def __init__(self, schema: Schema, rng: np.random.Generator) -> None:
        self._charges = MadeUpCharges(schema, rng, Sizes(N_BLOCKS_MAX, N_COLUMNS_MAX))

    def bodies(self, n_measurements: int) -> Iterator[TableBody]:
        """The opening, then charges, each with its measurement behind it."""
        yield TableOpened("schema", "data", Fraction(4096))
        seq = 1
        while self._charges.n_measurements < n_measurements:
            charge = self._charges.charge(Payer("analyst"))
            yield charge
            yield Measured(seq + 1, tuple(map(self._charges.values, charge.blocks)))
            seq += 2


def write_ledger(path: Path, bodies: Iterator[TableBody], table: str) -> int:
    """A ledger file as if it had been written entry by entry; how many entries."""
    store = SqliteStore(path)
    digest, seq, at = GENESIS, 0, "2024-01-01T00:00:00.000+00:00"
    with store.writing() as appender:
        for seq, body in enumerate(bodies, start=1):
            kind, text = write(body)
            digest = chained_digest(digest, (seq, at, kind, table, text))
            appender.insert([Entry(seq, at, kind, table, text, digest)])
    store.close()
    fingerprint_key(key_beside(path), may_create=True)
    return seq


def main() -> None:
    """Write a ledger, open it, begin to answer, and report."""
    quick = wants_quick("Seconds from a ledger on disk to a first answer.")
    n_measurements = N_MEASUREMENTS // 10 if quick else N_MEASUREMENTS
    schema = load(HERE / "tacit.toml").tables[0].schema
    past = Past(schema, np.random.default_rng(SEED))
    with TemporaryDirectory(prefix="tacit-bench-") as folder:
        path = Path(folder) / "restart.ledger"
        progress(f"writing {n_measurements} measurements")
        n_entries = write_ledger(path, past.bodies(n_measurements), schema.table)
        n_bytes = path.stat().st_size
        progress(f"opening {n_entries} entries, {n_bytes / 2**20:.0f} MiB")
        start = process_time()
        with open_ledger(path) as ledger:
            open_seconds = process_time() - start
            start = process_time()
            ledger.keep_state()
            write_seconds = process_time() - start
        start = process_time()
        with open_ledger(path) as ledger:
            open_again_seconds = process_time() - start
            history = ledger.history(schema.table)
        progress(f"open after {open_seconds:.1f} s; auditing")
        start = process_time()
        with closing(open_reader(str(path))) as reader:
            report = verify(reader.entries_after(0))
        verify_seconds = process_time() - start
        if report.problem is not None:
            raise RuntimeError(report.problem)
    progress("the estimator")
    estimator = Estimator(schema)
    start = process_time()
    with uncollected():  # as a served table takes in what its ledger has
        estimator.add(history.measurements)
    add_seconds = process_time() - start
    start = process_time()
    estimator.estimate(history.measurements[-1].block, CONFIDENCE)
    estimate_seconds = process_time() - start
    figures = {
        "n_measurements": len(history.measurements),
        "n_entries": n_entries,
        "ledger_mib": n_bytes / 2**20,
        "open_seconds": open_seconds,
        "open_with_checkpoint_seconds": open_again_seconds,
        "write_checkpoint_seconds": write_seconds,
        "verify_seconds": verify_seconds,
        "add_to_estimator_seconds": add_seconds,
        "first_estimate_seconds": estimate_seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
    }
    replayed, recalled = (one + add_seconds for one in (open_seconds, open_again_seconds))
    run(figures, [Bar("ledger opened and taken in, s", replayed, OPEN_SECONDS_MAX,
                      replayed < OPEN_SECONDS_MAX),
                  Bar("the same with a checkpoint, s", recalled, CHECKPOINT_SECONDS_MAX,
                      recalled < CHECKPOINT_SECONDS_MAX)])  # fmt: skip


if __name__ == "__main__":
    main()
