"""How long a server takes to restart: a ledger of 50,000 measurements, read and checked.

    python -m benchmarks.restart [--quick]

The ledger has the columns of the Adult table: charges of one to three blocks over one to four
columns, a fifth of them grouped, a tenth raised from an earlier measurement. Opening it checks the
chain of digests, every entry against those before, and recomputes the cost of all rows; the
estimator then reads the measurements and answers a first query.
"""

import resource
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from accountant.auditor.verify import verify
from accountant.cost.profile import profile_of
from accountant.ledger.entries import (
    GENESIS,
    Charge,
    ChargedBlock,
    Entry,
    Measured,
    TableBody,
    TableOpened,
    chained_digest,
)
from accountant.ledger.entry_json import write
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger, open_reader
from accountant.ledger.stores.key_file import fingerprint_key, key_beside
from accountant.ledger.stores.sqlite_store import SqliteStore
from accountant.noise.laplace import LatticeNoise
from benchmarks.report import Bar, progress, run, wants_quick
from cube.axis import Axis
from cube.block import Partition, QueryBlock
from cube.measurement import Weight
from cube.query import Factor, counting
from cube.schema import Schema
from examples.adult.demo import HERE
from inference.estimator import Estimator
from proxy.config.settings import load

SEED = 2
N_MEASUREMENTS = 50_000
N_BLOCKS_MAX = 3  # of a charge
N_COLUMNS_MAX = 4  # of a block
SHARE_GROUPED = 0.2
SHARE_RAISED = 0.1
N_GROUP_LEVELS_MAX = 16
WEIGHT = 0.003  # a count within two hundredths of the table
OPEN_SECONDS_MAX = 30.0
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
        self._schema = schema
        self._rng = rng
        self._units_spent = 0
        self._measured: list[ChargedBlock] = []
        self._can_be_raised: list[int] = []

    def bodies(self, n_measurements: int) -> Iterator[TableBody]:
        """The opening, then charges, each with its measurement behind it."""
        yield TableOpened("schema", "data", Fraction(4096))
        seq = 1
        while len(self._measured) < n_measurements:
            charge = self._charge(1 + int(self._rng.integers(N_BLOCKS_MAX)))
            yield charge
            yield Measured(seq + 1, tuple(map(self._values, charge.blocks)))
            seq += 2

    def _charge(self, n_blocks: int) -> Charge:
        before = self._units_spent
        blocks = tuple(self._charged() for _ in range(n_blocks))
        for charged in blocks:
            self._can_be_raised.append(len(self._measured))
            self._measured.append(charged)
            # More than was needed for a raise: what is charged only has to be enough.
            self._units_spent += charged.noise.weight.units * profile_of(charged.block).bound
        return Charge(Payer("analyst"), blocks, before, self._units_spent)

    def _charged(self) -> ChargedBlock:
        if self._can_be_raised and self._rng.random() < SHARE_RAISED:
            chosen = int(self._rng.integers(len(self._can_be_raised)))
            place = self._can_be_raised.pop(chosen)
            earlier = self._measured[place]
            weight = Weight(earlier.noise.weight.units * 3 // 2)
            return ChargedBlock(earlier.block, earlier.noise.refined_to(weight), place)
        weight = Weight.at_least(WEIGHT * self._rng.uniform(0.5, 1.5))
        return ChargedBlock(self._block(), LatticeNoise.for_weight(weight))

    def _block(self) -> QueryBlock:
        n_columns = 1 + int(self._rng.integers(N_COLUMNS_MAX))
        chosen = self._rng.permutation(len(self._schema.axes))[:n_columns]
        axes = [self._schema.axes[place] for place in chosen]
        partition = None
        if self._rng.random() < SHARE_GROUPED and axes[0].size <= N_GROUP_LEVELS_MAX:
            key = axes.pop(0)
            partition = Partition((key.name,), np.arange(key.size, dtype=np.int64))
        return QueryBlock(counting(map(self._factor, axes)), partition)

    def _factor(self, axis: Axis) -> Factor:
        """A range of levels, never all of them."""
        values = np.zeros(axis.size, dtype=np.int64)
        first, last = np.sort(self._rng.permutation(axis.size)[:2])
        values[first:last] = 1
        return Factor((axis.name,), values)

    def _values(self, charged: ChargedBlock) -> tuple[int, ...]:
        drawn = self._rng.integers(0, 2**30, size=charged.block.n_rows)
        return tuple(drawn.tolist())


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
        start = perf_counter()
        with open_ledger(path) as ledger:
            open_seconds = perf_counter() - start
            history = ledger.history(schema.table)
        progress(f"open after {open_seconds:.1f} s; auditing")
        start = perf_counter()
        with closing(open_reader(str(path))) as reader:
            report = verify(reader.entries_after(0))
        verify_seconds = perf_counter() - start
        if report.problem is not None:
            raise RuntimeError(report.problem)
    progress("the estimator")
    estimator = Estimator(schema)
    start = perf_counter()
    estimator.add(history.measurements)
    add_seconds = perf_counter() - start
    start = perf_counter()
    estimator.estimate(history.measurements[-1].block, CONFIDENCE)
    estimate_seconds = perf_counter() - start
    figures = {
        "n_measurements": len(history.measurements),
        "n_entries": n_entries,
        "ledger_mib": n_bytes / 2**20,
        "open_seconds": open_seconds,
        "verify_seconds": verify_seconds,
        "add_to_estimator_seconds": add_seconds,
        "first_estimate_seconds": estimate_seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
    }
    total = open_seconds + add_seconds
    run(figures, [Bar("ledger opened and taken in, s", total, OPEN_SECONDS_MAX,
                      total < OPEN_SECONDS_MAX)])  # fmt: skip


if __name__ == "__main__":
    main()
