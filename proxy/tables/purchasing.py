"""What every purchase of one table goes through: its state, turns at planning, what is under way.

Shared by the purchases that targets ask for (`acquisition.py`) and by those of whole tables of
counts, statistics and batches (`direct_purchases.py`). Decides nothing by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from accountant.gate.gate import Gate
from cube.statistic import Asked
from planner.measuring.offers import PurchasePlan
from proxy.monitoring.events import Watcher
from proxy.tables.in_flight import PromisedPurchases, Purchase, Purchases
from proxy.tables.table_state import TableState
from proxy.tables.turns import Turns


@dataclass(frozen=True, slots=True, eq=False)
class Purchasing:
    """How the table is bought on.

    Parameters
    ----------
    gate : Gate
    state : TableState
    in_flight : Purchases
        What is being bought just now.
    watcher : Watcher
    turns : Turns
        At planning a purchase.
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
