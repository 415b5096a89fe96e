"""A table as it is to somebody who asks alone: nothing was ever measured, and all of it is left.

The planner that buys, and the code that prices, are asked here on an empty history. So what is told
from here follows from the question and from public declarations, whatever anybody has asked before.
Nothing here charges or reads.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from accountant.gate.gate import Gate
from accountant.ledger.table_history import TableHistory
from cube.encoding import fingerprint
from inference.estimator import Estimator
from inference.posterior import RowEstimate
from planner.cache import BoundedCache
from planner.measuring.offers import PurchasePlan
from planner.measuring.ski_rental import SkiRental
from planner.measuring.strategy import Strategy
from planner.workload import Wanted
from proxy.api.requests import TableInfo
from proxy.monitoring.events import UNWATCHED
from proxy.tables.snapshot import KnownHistory, TableSnapshot

N_PLANS_MAX: Final = 1024
OFFER_BYTES: Final = 2**14  # what a remembered offer takes, roughly
PLANS_BYTES_MAX: Final = 2**26

Plans: TypeAlias = BoundedCache[tuple[object, ...], PurchasePlan]


class EmptyHistory:
    """One table on an empty history. Thread-safe.

    Parameters
    ----------
    info : TableInfo
    gate : Gate
    strategy : Strategy
    """

    def __init__(self, info: TableInfo, gate: Gate, strategy: Strategy) -> None:
        self.info = info
        self._gate = gate
        self._strategy = strategy
        self._plans: Plans = BoundedCache(n_entries_max=N_PLANS_MAX, n_bytes_max=PLANS_BYTES_MAX)

    def snapshot(self) -> TableSnapshot:
        """The table before anybody has asked, with the budget that it has now."""
        history = self._gate.history
        empty = TableHistory(
            opened=history.opened, declaration=history.declaration, budget=history.budget
        )
        known = KnownHistory(empty, Estimator(self.info.schema), SkiRental())
        return _Remembering(self.info, self._strategy, known, self._plans)

    def estimates(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
        """What is known of every block's rows without any history: only what is public."""
        return self.snapshot().estimates(wanted)

    def bought(self, wanted: Sequence[Wanted]) -> PurchasePlan:
        """What is bought by who asks alone for all of it at once."""
        snapshot = self.snapshot()
        return snapshot.plan(wanted, snapshot.estimates(wanted))

    def price(self, wanted: Sequence[Wanted]) -> Fraction:
        """What all of it costs who asks alone."""
        return self.snapshot().price(self.bought(wanted).planned).epsilon


class _Remembering(TableSnapshot):
    """A snapshot of an empty history: what was planned on one holds for all with its budget."""

    def __init__(
        self, info: TableInfo, strategy: Strategy, known: KnownHistory, plans: Plans
    ) -> None:
        super().__init__(info.schema, strategy, known, UNWATCHED)
        self._plans = plans

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[Sequence[RowEstimate]],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy, in the order of `wanted`."""
        asked = ((fingerprint(one.block), one.target) for one in wanted)
        key = (self.charges.budget, every_offer, *asked)
        found = self._plans.get(key)
        if found is None:
            found = super().plan(wanted, estimates, every_offer=every_offer)
            n_offers = 1 + sum(map(len, found.offers))
            self._plans.put(key, found, n_bytes=n_offers * OFFER_BYTES)
        return found
