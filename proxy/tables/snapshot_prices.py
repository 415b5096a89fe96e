"""What purchases beside one history would cost, and what they would leave.

A value apart from the snapshot that plans them: what plans holds on to prices, and prices to
nothing that plans. So all of it is gone with the statement that it was for, with its megabytes of
workspaces, and does not wait for the collector of cycles.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.cost.history_cost import Price
from accountant.gate.pricing import Pricing
from accountant.ledger.history.table_history import TableHistory
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.pace import checkpoint
from cube.statistic import PlannedUnitCount
from proxy.tables.extent import Extent


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotPrices:
    """The prices at one moment.

    Parameters
    ----------
    extent : Extent
        What is served: plans are about it, and costs about all that is kept.
    charges : TableHistory
        What the ledger says.
    pricing : Pricing
        Of the same charges.
    """

    extent: Extent
    charges: TableHistory
    pricing: Pricing

    def price(
        self, plan: Sequence[PlannedMeasurement], counts: Sequence[PlannedUnitCount] = ()
    ) -> Price:
        """What rows, and counts of units, would cost."""
        checkpoint()
        return self.pricing.price(self.extent.kept(plan), counts)

    def foreseen(self, planned: PlannedMeasurement) -> Measurement:
        """What a planned measurement would make, without its values."""
        (kept,) = self.extent.kept([planned])
        foreseen = self.charges.raises.foreseen(kept)
        return replace(foreseen, block=planned.block, supersedes=planned.raised_from)

    def units_without(self, rows: Sequence[PlannedMeasurement]) -> int:
        """What the history would cost without some of its rows."""
        return self.charges.cost.units_without(self.extent.kept(rows))

    def units_alone(self, rows: Sequence[PlannedMeasurement]) -> int:
        """What some rows would cost, had nothing else been bought."""
        return self.charges.cost.units_alone(self.extent.kept(rows))

    def left(self) -> Fraction:
        """What is left of the budget."""
        return Fraction(self.charges.units_left, UNITS_PER_EPSILON)
