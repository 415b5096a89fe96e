"""What is known of one private table, kept up to date: its history, and estimates from it.

The one lock of a table's history is here, and is held for moments: plans and long looks use a
snapshot. It never sees an exact count: a gate hands out noisy values only. Nothing
here buys anything.
"""

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from accountant.gate import Gate
from accountant.ledger.history import TableHistory
from cube.encoding import fingerprint
from cube.pace import checkpoint
from cube.runtime import uncollected
from inference import DEFAULT_MEMORY, Estimator, EstimatorMemory, History, NoisePlaces, RowEstimates
from planner.cache import BoundedCache
from planner.measuring import GaussianOffer, Hindsight, SkiRental, Strategy, meets, unit_count_of
from planner.workload import Part, Wanted
from proxy.monitoring import Stage, Watcher
from proxy.tables.extent import Extent
from proxy.tables.parts import HolderCaps
from proxy.tables.snapshot import KnownHistory, TableSnapshot, estimates_of

N_BLOCKS_AT_ONCE: Final = 16  # that are looked at under the lock: mostly a few milliseconds
N_NUMBERS_AT_ONCE: Final = 2**13  # that all of them are written in, about
N_MET_MAX: Final = 1024
MET_BYTES_MAX: Final = 32 * 2**20
ROW_BYTES: Final = 1024  # of one row's estimate, about


class MetBefore:
    """Estimates that met targets which depend on answers, by what was asked. Thread-safe.

    Such a target may lie narrower once more is measured. The estimates that met it are kept as
    they were, so that a statement that is asked again is answered as before.
    """

    def __init__(self) -> None:
        self._met: BoundedCache[Hashable, tuple[RowEstimates, ...]] = BoundedCache(
            n_entries_max=N_MET_MAX, n_bytes_max=MET_BYTES_MAX
        )

    def find(self, parts: Sequence[Part]) -> tuple[RowEstimates, ...] | None:
        """The estimates of every block that met the targets of some parts, if they did."""
        return self._met.get(tuple(map(_targets_of, parts)))

    def keep(self, parts: Sequence[Part], rows: Sequence[RowEstimates]) -> None:
        """Keep what met the targets of some parts."""
        n_bytes = ROW_BYTES * sum(map(len, rows))
        self._met.put(tuple(map(_targets_of, parts)), tuple(rows), n_bytes=n_bytes)


def _targets_of(part: Part) -> Hashable:
    """What a part asks for, and how accurately; whatever it calls it."""
    aggregates = (
        (*map(fingerprint, one.blocks), replace(one, name="", sql="", blocks=()))
        for one in part.aggregates
    )
    answers = (replace(one, name="", sql="") for one in part.answers)
    levels = part.confidence, part.searches_widths, part.posterior, part.epsilon_cap
    return tuple(aggregates), tuple(answers), part.keys, levels


class TableState:
    """The history of one table, and what follows from it. Thread-safe.

    Parameters
    ----------
    extent : Extent
        The part of the table that is served.
    gate : Gate
        The gate whose history is kept.
    strategy : Strategy
        How measurements are chosen on its snapshots.
    gaussian : GaussianOffer, optional
        The owner's offer of Gaussian noise.
    memory : EstimatorMemory, optional
        A limit on the memory of the estimator.
    caps : HolderCaps, optional
        What holders have left that refused for it.
    """

    def __init__(  # noqa: PLR0913 - all that is known of the table
        self,
        extent: Extent,
        gate: Gate,
        strategy: Strategy,
        watcher: Watcher,
        gaussian: GaussianOffer | None = None,
        *,
        memory: EstimatorMemory = DEFAULT_MEMORY,
        caps: HolderCaps | None = None,
    ) -> None:
        self.extent = extent
        self._gate = gate
        self._strategy = strategy
        self._watcher = watcher
        self._gaussian = gaussian
        self._caps = HolderCaps() if caps is None else caps
        self._lock = threading.Lock()  # guards the attributes below; held for moments
        self._estimator = Estimator(extent.schema, memory)
        self._ski_rental = SkiRental(extent.schema)
        self._hindsight = Hindsight(extent.schema)
        self.met_before = MetBefore()

    @property
    def history(self) -> History:
        """What was measured so far; to be looked at only."""
        return self._estimator.history

    @property
    def noises(self) -> NoisePlaces:
        """Every measurement, of rows and of units; to be looked at only."""
        return NoisePlaces(self._estimator.history, self._gate.history.unit_counts.measurements)

    def recalled(self, wanted: Sequence[Wanted]) -> list[RowEstimates] | None:
        """The history's estimates of every block, if asked since the last measurement.

        It takes no lock, so a dashboard that asks again does not wait.
        """
        with self._watcher.stage(Stage.LOOK):
            history = self._gate.history
            if not self.extent.is_of(history):
                return None
            rows = [one for one in wanted if unit_count_of(one) is None]
            n_measurements = self.extent.n_served(len(history.measurements))
            recalled = self._estimator.recalled([one.asked for one in rows], n_measurements)
            if recalled is None or len(rows) == len(wanted):
                return recalled
            found = estimates_of(wanted, lambda _: recalled, history.unit_counts, self.extent)
            known = zip(found, wanted, strict=True)
            return found if all(meets(rows, one.target) for rows, one in known) else None

    def look(self, wanted: Sequence[Wanted]) -> list[RowEstimates]:
        """The history's estimates of every block's rows, all at one moment."""
        if len(wanted) <= N_BLOCKS_AT_ONCE and sum(map(_size, wanted)) <= N_NUMBERS_AT_ONCE:
            with self._held(), self._watcher.stage(Stage.LOOK):
                history = self._gate.history
                self._take_in(history)
                return estimates_of(wanted, self._rows_of, history.unit_counts, self.extent)
        snapshot = self.snapshot()
        found = snapshot.estimates(wanted)
        checkpoint()
        with self._held():
            rows = [one for one in wanted if unit_count_of(one) is None]
            asked = [(one.block, one.target.confidence) for one in rows]
            self._estimator.remember(asked, snapshot.estimator)
        return found

    def snapshot(self) -> TableSnapshot:
        """The table as it is now: to plan on, or for a long look."""
        with self._held():
            charges = self._gate.history_now()
            self._take_in(charges)
            known = KnownHistory(
                charges, self._estimator.snapshot(), self._ski_rental.copy(), self._hindsight
            )
        checkpoint()
        is_federated = self.extent.holders is not None
        caps = self._caps.now() if is_federated else {}
        gaussian = None if is_federated and self._caps.only_laplace else self._gaussian
        return TableSnapshot(self.extent, self._strategy, known, self._watcher, gaussian, caps)

    def _rows_of(self, wanted: Sequence[Wanted]) -> list[RowEstimates]:
        """The history's estimates of rows. The lock is held."""
        return list(self._estimator.estimates([one.asked for one in wanted]))

    def _take_in(self, charges: TableHistory) -> None:
        """Bring what is known up to date. The lock is held."""
        self.extent.check_is_of(charges)
        n_known = self._estimator.n_measurements
        with uncollected() if not n_known else nullcontext():  # a server that starts with many
            self._estimator.add(self.extent.served(charges.measurements, n_known))
        n_known = charges.generations.n_payments + self._ski_rental.n_charges
        new = charges.payments[n_known:]
        self._ski_rental.add(self.extent.rented([payment.charge for payment in new]))

    @contextmanager
    def _held(self) -> Iterator[None]:
        # The place among working threads is kept: a thread with the lock must never wait for one.
        with self._watcher.stage(Stage.WAIT):
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()


def _size(one: Wanted) -> int:
    """How many numbers a block is written in, about: the rows, and what they are sums of."""
    terms = one.block.query.terms
    factors = sum(factor.n_stored for term in terms for factor in term.factors)
    partition = one.block.partition
    return one.block.n_rows + factors + (0 if partition is None else partition.n_stored)
