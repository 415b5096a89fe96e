"""One private table as the engine sees it: its public schema, its gate, its history.

It never sees an exact count: a gate hands out noisy values only. It keeps its locks to itself, and
for moments: who plans, or looks at much, does so on a snapshot.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Final

from accountant.gate.gate import Gate
from accountant.ledger.limits import Payer
from accountant.ledger.payments import BindingLimit
from accountant.ledger.table_history import TableHistory
from cube.measurement import UNITS_PER_EPSILON
from cube.pace import checkpoint
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from inference.history import History
from inference.posterior import RowEstimate
from planner.measuring.ski_rental import SkiRental
from planner.measuring.strategy import Strategy
from planner.workload import Wanted
from proxy.api.requests import BudgetStatus, LimitStatus, TableInfo
from proxy.config.sharing import Sharing
from proxy.monitoring.events import UNWATCHED, Stage, Watcher
from proxy.tables.coalescing import PurchaseQueue
from proxy.tables.empty_history import EmptyHistory
from proxy.tables.in_flight import Purchases
from proxy.tables.snapshot import KnownHistory, TableSnapshot
from proxy.tables.turns import Turns

N_BLOCKS_AT_ONCE: Final = 16  # that are looked at while others wait: mostly a few milliseconds
N_NUMBERS_AT_ONCE: Final = 2**13  # that all of them are written in, about


class ServedTable:
    """A private table that is asked.

    Parameters
    ----------
    schema : Schema
    default : AccuracyTarget
        Of a request that names none.
    gate : Gate
    strategy : Strategy
        How measurements are chosen.
    watcher : Watcher
    delta : Fraction, optional
        With which probability its owner lets nothing be promised, for who asks with Gaussian noise.
    sharing : Sharing
        Whether analysts are shown what others have asked.
    """

    def __init__(  # noqa: PLR0913 - all that its owner has said of it
        self,
        schema: Schema,
        default: AccuracyTarget,
        gate: Gate,
        strategy: Strategy = Strategy.AUTO,
        watcher: Watcher = UNWATCHED,
        *,
        delta: Fraction | None = None,
        sharing: Sharing = Sharing.SHARED,
    ) -> None:
        self.info = TableInfo(schema, default)
        is_private = sharing is Sharing.PRIVATE
        self.alone = EmptyHistory(self.info, gate, strategy) if is_private else None
        self.delta = delta
        self.gate = gate
        self.watcher = watcher
        self.turns = Turns()
        self.purchases = Purchases(gate, watcher)
        self.counter = PurchaseQueue()
        self._strategy = strategy
        self._lock = threading.Lock()  # of what follows; held for moments
        self._estimator = Estimator(schema)
        self._rents = SkiRental()

    @property
    def history(self) -> History:
        """What was measured so far; to be looked at only."""
        return self._estimator.history

    def recalled(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]] | None:
        """What history says of every block, if it was asked since anything was measured.

        It takes no lock: a dashboard that asks again waits for nobody.
        """
        with self.watcher.stage(Stage.LOOK):
            asked = [(one.block, one.target.confidence, one.target.half_width) for one in wanted]
            return self._estimator.recalled(asked, len(self.gate.history.measurements))

    def look(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
        """What the history says of every block's rows; all of one moment."""
        if len(wanted) <= N_BLOCKS_AT_ONCE and sum(map(_size, wanted)) <= N_NUMBERS_AT_ONCE:
            with self._held(), self.watcher.stage(Stage.LOOK):
                self._take_in(self.gate.history)
                return [
                    self._estimator.estimate(
                        one.block, one.target.confidence, one.target.half_width
                    )
                    for one in wanted
                ]
        snapshot = self.snapshot()
        found = snapshot.estimates(wanted)
        checkpoint()
        with self._held():
            asked = [(one.block, one.target.confidence) for one in wanted]
            self._estimator.remember(asked, snapshot.estimator)
        return found

    def snapshot(self) -> TableSnapshot:
        """The table as it is now: to plan on, or for a long look."""
        with self._held():
            charges = self.gate.history_now()
            self._take_in(charges)
            known = KnownHistory(charges, self._estimator.snapshot(), self._rents.copy())
        checkpoint()
        return TableSnapshot(self.info.schema, self._strategy, known, self.watcher)

    def budget(self, payer: Payer | None = None) -> BudgetStatus:
        """What was spent and what is left; with the limits that bind somebody."""
        budget = self.gate.budget()
        allowances = () if payer is None else self.gate.allowances(payer)
        return BudgetStatus(
            table=self.info.schema.table,
            limit=budget.limit,
            spent=budget.spent,
            n_measurements=budget.n_measurements,
            limits=tuple(_limit_status(allowance) for allowance in allowances),
        )

    def _take_in(self, charges: TableHistory) -> None:
        """Bring what is known up to date. The lock is held."""
        self._estimator.add(charges.measurements[self._estimator.n_measurements :])
        new = charges.payments[self._rents.n_charges :]
        self._rents.add([payment.charge for payment in new])

    @contextmanager
    def _held(self) -> Iterator[None]:
        # A place among those who work is kept: whoever holds the lock must never wait for one.
        with self.watcher.stage(Stage.WAIT):
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()


def _size(one: Wanted) -> int:
    """How many numbers a block is written in, about: the rows, and what they are sums of."""
    terms = one.block.query.terms
    factors = sum(factor.values.size for term in terms for factor in term.factors)
    partition = one.block.partition
    return one.block.n_rows + factors + (0 if partition is None else partition.labels.size)


def _limit_status(allowance: BindingLimit) -> LimitStatus:
    limit = allowance.limit
    return LimitStatus(
        subject=str(limit.subject),
        window=limit.window.value,
        limit=limit.epsilon,
        spent=Fraction(allowance.units_spent, UNITS_PER_EPSILON),
        per_query=limit.per_query,
    )
