"""What every purchase of one table goes through, and purchases that no target asks for.

Turns at planning a purchase, which end when a plan takes long.

Plans that are made one after the other each take the one before into account. So a request plans in
its turn, and others queue; but a turn lasts for a moment only. A request that plans for longer goes
on planning out of its turn, and has to check what was bought meanwhile before it buys.

Nothing here knows what a purchase is.

Shared by the purchases that targets ask for (`acquisition.py`) and by those of whole tables of
counts, statistics and batches. Decides nothing by itself.

Purchases that no target asks for: counts of partitions at given weights, statistics, batches.

Where a target decides what is bought, `acquisition.py` does it. Here somebody has divided a budget
already: each table of counts is raised by the weight it is given, beyond what the history has. What
is being bought already is waited for, and never bought again.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from accountant.gate import Gate
from accountant.ledger import Payer
from accountant.ledger.history import Payment, StalePlan
from cube.measurement import PlannedMeasurement, Precision, Weight
from cube.pace import checkpoint, waiting
from cube.query import Partition, QueryBlock, counting
from cube.refusals import TooLarge
from cube.statistic import Asked
from planner.measuring import LAPLACE, NoiseKind, PurchasePlan
from proxy.monitoring import Watcher
from proxy.tables.in_flight import PromisedPurchases, Purchase, Purchases, epsilon_of
from proxy.tables.snapshot import TableSnapshot
from proxy.tables.table_state import TableState

TURN_SECONDS: Final = 0.25  # nearly every plan is made in a tenth of that


class Turn:
    """One turn, while it lasts."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds


class Turns:
    """Turns at one table. Thread-safe.

    Parameters
    ----------
    seconds : float
        After which somebody else may take the turn.
    """

    def __init__(self, seconds: float = TURN_SECONDS) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        self._current: Turn | None = None

    @contextmanager
    def taken(self) -> Iterator[Turn]:
        """A turn, once no other lasts."""
        with (
            waiting(is_first=True),
            self._changed,
        ):  # or the turn would pass while a place is sought
            while self._current is not None:
                left = self._current.end - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
                checkpoint()
            turn = self._current = Turn(self._seconds)
        try:
            yield turn
        finally:
            with self._changed:
                if self._current is turn:
                    self._current = None
                    self._changed.notify()

    @contextmanager
    def kept(self, turn: Turn) -> Iterator[bool]:
        """Whether a turn still lasts; no other is taken inside the block, so keep it short."""
        with self._changed:
            yield self._current is turn


@dataclass(frozen=True, slots=True, eq=False)
class Purchasing:
    """How the table is bought on.

    Parameters
    ----------
    in_flight : Purchases
        What is being bought just now.
    turns : Turns
        The turns at planning a purchase.
    """

    gate: Gate
    state: TableState
    in_flight: Purchases
    watcher: Watcher
    turns: Turns = field(default_factory=Turns)

    def begin(
        self,
        plan: PurchasePlan,
        beside: PromisedPurchases | None,
        statistics: Sequence[Asked] = (),
    ) -> Purchase:
        """Promise a plan for what is served, inside a turn; `in_flight.carry_out` must follow."""
        extent = self.state.extent
        kept = replace(plan, planned=extent.kept(plan.planned))
        return self.in_flight.begin(kept, beside, extent.kept_statistics(statistics))

    def wait_until_quiet(self) -> PromisedPurchases:
        """Wait until nothing is being bought; what was promised then, which is no row.

        Raises
        ------
        LedgerUnavailable, SourceUnavailable
            If what is charged cannot be completed, or does not come.
        """
        self.in_flight.complete_overdue()
        while (promises := self.in_flight.promises()).rows:
            self.in_flight.wait(promises)
            self.in_flight.complete_overdue()
        return promises


N_OVERTAKEN_MAX: Final = 5  # then the plan is bought whatever other processes do meanwhile

Added = Mapping[Partition | None, Weight | Precision]
"""What to add to the weight of each partition's counts, all of one kind of noise; None for the
count of everything.
"""


class DirectPurchases:
    """Buys on one table what was decided elsewhere. Thread-safe."""

    def __init__(self, purchasing: Purchasing) -> None:
        self._table = purchasing

    def price_of_tables(self, added: Added) -> Fraction:
        """What `buy_tables` would cost now. Charges nothing."""
        snapshot = self._table.state.snapshot()
        return snapshot.price(_all_raised(snapshot, added, LAPLACE)).epsilon

    def buy_tables(
        self,
        added: Added,
        payer: Payer,
        epsilon_cap: Fraction | None,
        kind: NoiseKind = LAPLACE,
        levels: Collection[int] | None = None,
    ) -> Fraction:
        """Raise the counts of some partitions, each by a weight; what that cost.

        Of a federated table, those of the holders with these levels; of all by default.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        if not added:
            return Fraction(0)
        payments = self._carried_out(
            payer, epsilon_cap, lambda snapshot: _all_raised(snapshot, added, kind, levels)
        )
        return epsilon_of(payments)

    def ask_statistics(
        self, statistics: Sequence[Asked], payer: Payer, epsilon_cap: Fraction | None
    ) -> tuple[tuple[float, ...], Fraction]:
        """The released values of statistics, and what they cost.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        payments = self._carried_out(payer, epsilon_cap, lambda _snapshot: (), statistics)
        values: list[float] = []
        for payment in payments:
            released = self._table.gate.history.released_under(payment.seq)
            if released is None:
                self._table.state.extent.check_is_of(self._table.gate.history)  # given up
                raise RuntimeError("statistics that were measured are not in the history")
            values += released.values
        return tuple(values), epsilon_of(payments)

    def buy_plan(
        self,
        plan: Sequence[PlannedMeasurement],
        n_measurements: int,
        payer: Payer,
        epsilon_cap: Fraction | None,
    ) -> Fraction:
        """Measure a plan that was made for a history of so many measurements; what that cost.

        Raises
        ------
        StalePlan
            If the history has grown meanwhile. Nothing was charged.
        HorizonMoved
            If the table has grown or was renewed meanwhile. Nothing was charged.
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge already made waits, and is completed for the next request.
        """
        promises = self._table.wait_until_quiet()
        with self._table.turns.taken():
            self._table.state.extent.check_is_of(self._table.gate.history)
            is_busy = self._table.in_flight.promises().rows
            if is_busy or len(self._table.gate.measurements()) != n_measurements:
                raise StalePlan("something was bought while the batch was planned")
            everything = PurchasePlan(tuple(plan), ())
            purchase = self._table.begin(everything, promises)
        payments = self._table.in_flight.carry_out(purchase, payer, epsilon_cap=epsilon_cap)
        return epsilon_of(payments)

    def _carried_out(
        self,
        payer: Payer,
        epsilon_cap: Fraction | None,
        planned: Callable[[TableSnapshot], Sequence[PlannedMeasurement]],
        statistics: Sequence[Asked] = (),
    ) -> tuple[Payment, ...]:
        """Charge and measure the plan that `planned` makes, once no other purchase runs."""
        in_flight, turns = self._table.in_flight, self._table.turns
        n_overtaken = 0
        while True:
            promises = self._table.wait_until_quiet()
            with turns.taken() as turn:
                if in_flight.promises().rows:
                    continue
                plan = PurchasePlan(tuple(planned(self._table.state.snapshot())), ())
                beside = promises if n_overtaken < N_OVERTAKEN_MAX else None
                with turns.kept(turn) as is_kept:
                    if not is_kept and in_flight.promises().rows:
                        continue
                    purchase = self._table.begin(plan, beside, statistics)
            try:
                return in_flight.carry_out(purchase, payer, epsilon_cap=epsilon_cap)
            except StalePlan:
                n_overtaken += 1
                self._table.gate.refresh()


def _all_raised(
    snapshot: TableSnapshot,
    added: Added,
    kind: NoiseKind,
    levels: Collection[int] | None = None,
) -> list[PlannedMeasurement]:
    """Each partition's rows at larger weights, of a federated table as rows of each holder.

    What one holder had measured before another failed is not bought again: all are raised to the
    same weight, and a sum over holders is as precise as the least precise of them.
    """
    raised = []
    for partition, more in added.items():
        blocks = snapshot.measured(QueryBlock(counting(), partition), levels)
        held = [_units(snapshot, block, kind) for block in blocks]
        wanted = min(held, default=0) + more.units
        raised += [
            _raised(snapshot, block, wanted - units, kind)
            for block, units in zip(blocks, held, strict=True)
            if units < wanted
        ]
    return raised


def _units(snapshot: TableSnapshot, block: QueryBlock, kind: NoiseKind) -> int:
    """The weight, in units, that the history has of a block."""
    place = snapshot.history.raisable(block, is_gaussian=kind.is_gaussian)
    return 0 if place is None else snapshot.history[place].weight.units


def _raised(
    snapshot: TableSnapshot, block: QueryBlock, added: int, kind: NoiseKind
) -> PlannedMeasurement:
    """The block at a weight that is larger, by so many units, than what the history has."""
    place = snapshot.history.raisable(block, is_gaussian=kind.is_gaussian)
    units = _units(snapshot, block, kind) + added
    if place is None or units > kind.units_max:
        return kind.planned(block, added)
    raised = kind.planned(block, units, place)
    try:
        snapshot.forecast.foreseen(raised)
    except TooLarge:  # its lattice is too coarse: a second look costs the same, and tells as much
        return kind.planned(block, added)
    return raised
