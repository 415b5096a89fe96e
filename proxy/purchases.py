"""What is being bought on one table just now, by this process and by others.

Between the decision to buy and the durable measurement lie two writes to a disk and a read of the
data. Other requests go on meanwhile, and must not buy the same again: they see here what is
promised, rows that will be known soon at a weight that is known already. Half-widths depend on
weights alone, so whether it is worth waiting can be told before there is a value.

A charge that nobody completes (its process died, or the data could not be read) is completed by
whoever needs it next; until it is, nothing else is charged.
"""

import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from accountant.gate import Gate
from accountant.limits import Payer
from accountant.replay import Payment
from cube.measurement import PlannedMeasurement
from planner.offers import PurchasePlan
from proxy.watch import Stage, Watcher

PATIENCE_SECONDS: Final = 5.0  # with a charge of another process, before it is taken for dead
GLANCE_SECONDS: Final = 0.02  # between looks at what another process is at


class Purchase:
    """One plan on its way to being measured.

    Parameters
    ----------
    plan : PurchasePlan
    n_read : int, optional
        How much was known of other processes when it was made; None to buy it whatever they did.
    """

    def __init__(self, plan: PurchasePlan, n_read: int | None) -> None:
        self.plan = plan
        self.n_read = n_read
        self.seq: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Promises:
    """What others are buying at one moment.

    Parameters
    ----------
    own : tuple of Purchase
        Of this process.
    foreign : frozenset of int
        Numbers of charges that other processes have made.
    rows : tuple of PlannedMeasurement
        What all of it will measure.
    n_read : int
        How much was known of other processes.
    """

    own: tuple[Purchase, ...]
    foreign: frozenset[int]
    rows: tuple[PlannedMeasurement, ...]
    n_read: int


class Purchases:
    """The purchases under way on one table. Thread-safe."""

    def __init__(self, gate: Gate, watcher: Watcher) -> None:
        self._gate = gate
        self._watcher = watcher
        self._own: list[Purchase] = []
        self._failed: set[int] = set()
        self._first_seen: dict[int, float] = {}
        self._changed = threading.Condition()
        self._repairing = threading.Lock()

    def promises(self) -> Promises:
        """What is paid for, or about to be, and not measured yet.

        To be looked at before the history is: what is measured in between is then in both, and is
        waited for without need; the other way round it would be in neither, and bought again.
        """
        history = self._gate.history
        with self._changed:
            own = [one for one in self._own if one.seq is None or one.seq in history.pending]
        foreign = {seq: charge for seq, charge in history.pending.items() if self._is_foreign(seq)}
        rows = (
            *(planned for one in own for planned in one.plan.planned),
            *(charged.planned for charge in foreign.values() for charged in charge.blocks),
        )
        return Promises(tuple(own), frozenset(foreign), rows, len(history.read))

    def begin(self, plan: PurchasePlan, n_read: int | None) -> Purchase:
        """Promise a plan; `carry_out` must follow. The table is held."""
        purchase = Purchase(plan, n_read)
        with self._changed:
            self._own.append(purchase)
        return purchase

    def carry_out(
        self, purchase: Purchase, payer: Payer, *, epsilon_cap: Fraction | None
    ) -> Payment:
        """Charge a plan and measure it.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan
            Before anything is charged.
        LedgerUnavailable, SourceUnavailable
            A charge made waits.
        """
        try:
            with self._watcher.purchase():
                with self._watcher.stage(Stage.CHARGE):
                    payment = self._gate.charge(
                        purchase.plan.planned,
                        payer,
                        epsilon_cap=epsilon_cap,
                        n_read=purchase.n_read,
                    )
                purchase.seq = payment.seq
                with self._watcher.stage(Stage.MEASURE):
                    if self._gate.complete(payment.seq) is None:
                        self._await_others(payment.seq)
            return payment
        finally:
            with self._changed:
                self._own.remove(purchase)
                if purchase.seq is not None and purchase.seq in self._gate.history.pending:
                    self._failed.add(purchase.seq)
                self._changed.notify_all()

    def complete_overdue(self) -> None:
        """Measure what was charged and nobody is at work on.

        Raises
        ------
        LedgerUnavailable, SourceUnavailable
            What waits goes on waiting, and so must whoever needs to buy something.
        """
        if not self._overdue():
            return
        with self._repairing:  # one does it for all
            for seq in self._overdue():
                if self._gate.take_over(seq):
                    self._gate.complete(seq)

    def wait(self, promises: Promises) -> None:
        """Until all of it is measured or given up; or until some of it is overdue."""
        with self._watcher.stage(Stage.WAIT):
            with self._changed:
                self._changed.wait_for(lambda: not set(promises.own) & set(self._own))
            while promises.foreign & self._gate.history.pending.keys() and not self._overdue():
                self._glance()

    def _glance(self) -> None:
        """Look at other processes again, after a little while."""
        time.sleep(GLANCE_SECONDS)
        self._gate.refresh()

    def _await_others(self, seq: int) -> None:
        """Until another process has measured what it took over from this one."""
        since = time.monotonic()
        while seq in self._gate.history.pending:
            if time.monotonic() - since > PATIENCE_SECONDS and self._gate.take_over(seq):
                self._gate.complete(seq)
                since = time.monotonic()
            self._glance()

    def _overdue(self) -> list[int]:
        pending = sorted(self._gate.history.pending)
        now = time.monotonic()
        with self._changed:
            self._failed.intersection_update(pending)
            seen = {seq: self._first_seen.get(seq, now) for seq in pending if self._is_foreign(seq)}
            self._first_seen = seen
            late = {seq for seq, since in seen.items() if now - since > PATIENCE_SECONDS}
            return [seq for seq in pending if seq in self._failed or seq in late]

    def _is_foreign(self, seq: int) -> bool:
        return seq in self._gate.history.read
