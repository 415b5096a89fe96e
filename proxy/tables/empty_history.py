"""A table with an empty history: nothing was measured, and the whole budget is left.

The same planner and the same pricing code run here on an empty history. So the results depend only
on the query and on public declarations, whatever anybody has asked before. Nothing here charges or
reads data.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, TypeAlias

from accountant.gate.gate import Gate
from cube.encoding import fingerprint
from inference.block_estimates import RowEstimates
from inference.estimator import Estimator
from planner.cache import BoundedCache
from planner.measuring.candidates import Strategy
from planner.measuring.hindsight import Hindsight
from planner.measuring.offers import PurchasePlan
from planner.measuring.ski_rental import SkiRental
from planner.workload import Wanted
from proxy.api.requests import TableInfo
from proxy.monitoring.events import UNWATCHED
from proxy.tables.extent import Extent
from proxy.tables.snapshot import KnownHistory, TableSnapshot

N_PLANS_MAX: Final = 1024
OFFER_BYTES: Final = 2**14  # the size of a remembered offer, roughly
PLANS_BYTES_MAX: Final = 2**26

Plans: TypeAlias = BoundedCache[tuple[object, ...], PurchasePlan]


class EmptyHistory:
    """One table on an empty history. Thread-safe.

    Parameters
    ----------
    info : TableInfo
    extent : Extent
        What of the table is served.
    gate : Gate
    strategy : Strategy
    """

    def __init__(self, info: TableInfo, extent: Extent, gate: Gate, strategy: Strategy) -> None:
        self.info = info
        self._extent = extent
        self._gate = gate
        self._strategy = strategy
        self._hindsight = Hindsight(info.schema)
        self._plans: Plans = BoundedCache(n_entries_max=N_PLANS_MAX, n_bytes_max=PLANS_BYTES_MAX)

    @property
    def budget(self) -> Fraction:
        """The table's, on which plans depend."""
        return self._gate.history.budget

    def snapshot(self) -> TableSnapshot:
        """The table before any query, with its current budget."""
        known = KnownHistory(
            self._gate.history.without_charges(),
            Estimator(self.info.schema),
            SkiRental(self.info.schema),
            self._hindsight,
        )
        return _Remembering(self._extent, self._strategy, known, self._plans)

    def estimates(self, wanted: Sequence[Wanted]) -> list[RowEstimates]:
        """The estimates of every block's rows without any history: only what is public."""
        return self.snapshot().estimates(wanted)

    def bought(self, wanted: Sequence[Wanted]) -> PurchasePlan:
        """The purchases for all of these blocks at once on an empty history."""
        snapshot = self.snapshot()
        return snapshot.plan(wanted, snapshot.estimates(wanted))

    def price(self, wanted: Sequence[Wanted]) -> Fraction:
        """The price of all of these blocks on an empty history."""
        plan = self.bought(wanted)
        return self.snapshot().price(plan.planned, plan.counts).epsilon


class _Remembering(TableSnapshot):
    """A snapshot of an empty history; its plans hold for all snapshots with the same budget."""

    def __init__(
        self, extent: Extent, strategy: Strategy, known: KnownHistory, plans: Plans
    ) -> None:
        super().__init__(extent, strategy, known, UNWATCHED)
        self._plans = plans

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[RowEstimates],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """The purchases, in the order of `wanted`."""
        asked = (
            (fingerprint(one.block), one.groups_max, one.only_cut, one.target) for one in wanted
        )
        key = (self.charges.budget, every_offer, *asked)
        found = self._plans.get(key)
        if found is None:
            found = super().plan(wanted, estimates, every_offer=every_offer)
            n_offers = 1 + sum(map(len, found.offers))
            self._plans.put(key, found, n_bytes=n_offers * OFFER_BYTES)
        return found
