"""A growing table without a record: its horizon moves, and requests are bought as served ones are.

History, planner, gate, noise and a durable ledger are the shipped ones. There is no SQL, and there
are no records: what is bought follows from targets and weights alone, so an empty table costs what
a full one does.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from benchmarks.thrift import NoRecords
from cube.measurement import Measurement
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.block_estimates import RowEstimates
from planner.measuring.candidates import Strategy
from planner.workload import Wanted
from proxy.tables.private_table import ServedTable

PAYER = Payer("benchmark")
BY_OWNER = "owner"


class NoRecordsRead(NoRecords):
    """What was read of a table without a record."""

    def period_fingerprint(self, start: int, end: int, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        """The same rows every time."""
        return key.hex()


class NoRecordsYet:
    """A growing table to which no record is ever added."""

    def fingerprint(self, key: bytes) -> str:
        """The same table every time."""
        return key.hex()

    def read_up_to(self, horizon: int) -> NoRecordsRead:  # noqa: ARG002 - a protocol
        """No rows."""
        return NoRecordsRead()


class GrowingTable:
    """A served table whose horizon moves forward.

    Parameters
    ----------
    gate : Gate
    default : AccuracyTarget
    strategy : Strategy
    """

    def __init__(self, gate: Gate, default: AccuracyTarget, strategy: Strategy) -> None:
        self._gate = gate
        self.served = ServedTable(gate.schema, default, gate, strategy)

    def advance(self, n_readable: int) -> None:
        """Go on with so many levels, if there are not so many yet."""
        if self._gate.advance(n_readable, BY_OWNER):
            self.served = self.served.grown()

    @property
    def spent(self) -> Fraction:
        """What the table has cost, for a unit."""
        return self.served.budget().spent

    @property
    def measurements(self) -> Sequence[Measurement]:
        """Everything that was measured, as rows of all levels."""
        return self._gate.history.measurements

    def known(self, one: Wanted) -> RowEstimates:
        """What the history says of a block."""
        return self.served.look([one])[0]

    def acquire(self, wanted: Sequence[Wanted]) -> Fraction:
        """Buy what the history does not say well enough; what that cost."""
        cap = wanted[0].target.epsilon_cap
        return self.served.acquire(wanted, PAYER, cap).epsilon


@contextmanager
def growing_table(
    schema: Schema, default: AccuracyTarget, strategy: Strategy, budget: Fraction, n_readable: int
) -> Iterator[GrowingTable]:
    """A growing table with a ledger of its own, at its first horizon."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_ledger(Path(folder) / "growing.ledger") as ledger,
    ):
        gate = open_table(ledger, schema, budget, NoRecordsYet(), SystemNoise())
        gate.advance(n_readable, BY_OWNER)
        yield GrowingTable(gate, default, strategy)
