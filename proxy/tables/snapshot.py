"""One private table as it was at one moment: what was known of it, and what purchases would cost.

What purchases beside one history would cost, and what they would leave.

A value apart from the snapshot that plans them: what plans holds on to prices, and prices to
nothing that plans. So all of it is gone with the statement that it was for, with its megabytes of
workspaces, and does not wait for the collector of cycles.

A snapshot needs no lock: purchases are planned on it however long that takes, and what is charged
is decided on the newest history (`accountant/gate/gate.py`), which tells whether a plan is stale.
It is for one thread. Nothing here sees an exact count, or charges.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from accountant.cost import Price
from accountant.gate import Pricing, generation_over
from accountant.ledger import Payer
from accountant.ledger.history import Name, Payment, StalePlan, TableHistory, UnitCounts, name_of
from cube.measurement import (
    UNITS_PER_EPSILON,
    WEIGHT_UNITS_MAX,
    Measurement,
    PlannedMeasurement,
)
from cube.pace import checkpoint
from cube.query import QueryBlock
from cube.statistic import OfUnits, PlannedUnitCount
from inference import Estimator, History, NoisePlaces, RowEstimates, held_by, pooled
from planner.batch import BatchPlan, plan_together
from planner.measuring import (
    CountPart,
    CountWanted,
    Forecast,
    GaussianOffer,
    Hindsight,
    PricingContext,
    PurchasePlan,
    SkiRental,
    Strategy,
    known_unit_count,
    offered_kinds,
    plan_purchases,
    plan_unit_counts,
    unit_count_of,
)
from planner.workload import Wanted
from proxy.monitoring import Stage, Watcher
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
        The pricing of the same charges.
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
        return self.charges.cost.units_without(self.extent.kept(self.extent.split(rows)))

    def units_alone(self, rows: Sequence[PlannedMeasurement]) -> int:
        """What some rows would cost, had nothing else been bought."""
        return self.charges.cost.units_alone(self.extent.kept(self.extent.split(rows)))

    def left(self) -> Fraction:
        """What is left of the budget."""
        return Fraction(self.charges.units_left, UNITS_PER_EPSILON)


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """What a snapshot is of: what was charged and measured, and what follows from it.

    Parameters
    ----------
    charges : TableHistory
        What the ledger says, and the moment at which limits are looked at.
    estimator : Estimator
        The estimator of the measurements; only this snapshot uses it.
    ski_rental : SkiRental
        Of what was charged.
    """

    charges: TableHistory
    estimator: Estimator
    ski_rental: SkiRental
    hindsight: Hindsight


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What will be known about the wanted rows once the promised measurements have come."""

    forecast: Forecast
    estimates: tuple[RowEstimates, ...]


class TableSnapshot:
    """A table at one moment.

    Parameters
    ----------
    extent : Extent
        What is served.
    strategy : Strategy
        How measurements are chosen.
    gaussian : GaussianOffer, optional
        The owner's offer of Gaussian noise.
    caps : mapping of int to Fraction
        What holders have left that refused for it, by their levels.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - all that the moment consists of
        self,
        extent: Extent,
        strategy: Strategy,
        known: KnownHistory,
        watcher: Watcher,
        gaussian: GaussianOffer | None = None,
        caps: Mapping[int, Fraction] = MappingProxyType({}),
    ) -> None:
        self.charges = known.charges
        self._extent = extent
        self._estimator = known.estimator
        self._watcher = watcher
        self._caps = caps
        self._prices = prices = SnapshotPrices(
            extent, known.charges, Pricing(extent.whole_schema, known.charges)
        )
        self.forecast = Forecast(known.estimator, prices.foreseen)
        offered = offered_kinds(gaussian, known.charges.gaussian, known.charges.units_of_rows)
        self._context = PricingContext(
            extent.schema,
            strategy,
            self.forecast,
            prices.price,
            known.ski_rental,
            known.hindsight,
            prices.units_without,
            prices.left,
            prices.units_alone,
            offered,
            extent.holders,
            caps,
        )

    @property
    def history(self) -> History:
        """What was measured; to be looked at only."""
        return self._estimator.history

    @property
    def pooled(self) -> History:
        """The same; of a federated table, with the values of all holders added up."""
        history, holders = self.history, self._extent.holders
        return history if holders is None else pooled(history, holders)

    def pooled_over(self, levels: Collection[int]) -> History:
        """The same with the values of some holders; of any other table, all of it."""
        history, holders = self.history, self._extent.holders
        return history if holders is None else pooled(history, holders, levels)

    def held_by(self, level: int) -> History:
        """What one holder of a federated table has measured, as it has the rows."""
        holders = self._extent.holders
        return self.history if holders is None else held_by(self.history, holders, level)

    @property
    def n_holders(self) -> int:
        """How many independent noises each value of `pooled` has: one for each holder."""
        holders = self._extent.holders
        return 1 if holders is None else holders.n_holders

    @property
    def noises(self) -> NoisePlaces:
        """Every measurement, of rows and of units; to be looked at only."""
        return NoisePlaces(self._estimator.history, self.charges.unit_counts.measurements)

    def measured(
        self, block: QueryBlock, levels: Collection[int] | None = None
    ) -> tuple[QueryBlock, ...]:
        """The rows that are measured for a block: of a federated table, those of each holder.

        With `levels`, those of some holders.
        """
        holders = self._extent.holders
        if holders is None:
            return (block,)
        found = holders.split(block)
        if levels is None:
            return found
        return tuple(one for one in found if holders.at_holder(one)[0] in levels)

    @property
    def estimator(self) -> Estimator:
        """What was asked of the snapshot, and answered."""
        return self._estimator

    @property
    def payments(self) -> Sequence[Payment]:
        """What was paid, each charge about what is served."""
        found = self.charges.payments
        charges = self._extent.served_charges([one.charge for one in found])
        return [replace(one, charge=charge) for one, charge in zip(found, charges, strict=True)]

    def estimates(self, wanted: Sequence[Wanted]) -> list[RowEstimates]:
        """The history's estimates of every block's rows."""
        with self._watcher.stage(Stage.LOOK):
            return self._estimates(self._estimator, wanted)

    def _estimates(self, estimator: Estimator, wanted: Sequence[Wanted]) -> list[RowEstimates]:
        return estimates_of(
            wanted,
            lambda rows: _rows_of(estimator, rows),
            self.charges.unit_counts,
            self._extent,
        )

    def _count_of(self, wanted: Wanted) -> tuple[CountPart, ...] | None:
        """The parts of the count of units that is wanted; None for rows."""
        return count_parts(wanted, self._extent)

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[RowEstimates],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy beyond what the history says, in the order of `wanted`."""
        with self._watcher.stage(Stage.PRICE):
            plan = self._plan(wanted, estimates, self._context, every_offer=every_offer)
        if every_offer and self._extent.ended_on and (plan.planned or plan.counts):
            # It would be offered; what is only forecast may turn out not to be needed.
            price = self.price(plan.planned, plan.counts)
            raise generation_over(self._extent.schema.table, price)
        return plan

    def _plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[RowEstimates],
        context: PricingContext,
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy of rows, and of counts of units."""
        counted = {place: self._count_of(one) for place, one in enumerate(wanted)}
        asked = {
            place: CountWanted(wanted[place], parts, estimates[place])
            for place, parts in counted.items()
            if parts is not None
        }
        of_rows = [place for place in range(len(wanted)) if place not in asked]
        plan = plan_purchases(
            [wanted[place] for place in of_rows],
            [estimates[place] for place in of_rows],
            context,
            every_offer=every_offer,
        )
        if not asked:
            return plan
        counts, offers = plan_unit_counts(
            asked,
            self.charges.unit_counts,
            context.schema,
            lambda planned: self.price((), planned).epsilon,
            self._affordable,
        )
        offers |= dict(zip(of_rows, plan.offers, strict=True))
        return PurchasePlan(
            plan.planned, tuple(offers[place] for place in range(len(wanted))), counts
        )

    def _affordable(self, count: OfUnits) -> int:
        """How many units can be added to the weight of a count, by what its holder has left."""
        holders = self._extent.holders
        if holders is None or not self._caps:
            return WEIGHT_UNITS_MAX
        left = self._caps.get(holders.at_holder(count.block)[0])
        if left is None:
            return WEIGHT_UNITS_MAX
        reach = count.reach(self._extent.whole_schema.of_one_holder.rows_per_unit_max)
        return min(int(left * UNITS_PER_EPSILON / reach), WEIGHT_UNITS_MAX)

    def expected(
        self,
        promised: Sequence[PlannedMeasurement],
        counts: Collection[Name],
        wanted: Sequence[Wanted],
    ) -> Expected | None:
        """What will be known once what the ledger promises has come; None if that is not certain.

        Raises
        ------
        StalePlan
            If it would raise what is not there yet.
        """
        asked = (self._count_of(one) for one in wanted)
        parts = (part for one in asked if one is not None for part in one)
        if any(name_of(one.count) in counts for one in parts):
            return None
        with self._watcher.stage(Stage.PRICE):
            future = self.forecast.after(self._extent.served_plan(promised))
            return Expected(future, tuple(self._estimates(future.estimator, wanted)))

    def plan_beside(self, expected: Expected, wanted: Sequence[Wanted]) -> PurchasePlan | None:
        """What to buy beside what is expected; None if nothing, or nothing yet."""
        with self._watcher.stage(Stage.PRICE):
            try:
                context = replace(self._context, forecast=expected.forecast)
                plan = self._plan(wanted, expected.estimates, context)
            except StalePlan:  # it would raise what is not there yet
                return None
        return plan if plan.planned or plan.counts else None

    def plan_together(self, statements: Sequence[Sequence[Wanted]]) -> BatchPlan:
        """What to buy for a declared batch of statements."""
        with self._watcher.stage(Stage.PRICE):
            is_whole = self._extent.holders is None  # holders' rows say nothing of a sum alone
            history = self._extent.served(self.charges.measurements) if is_whole else ()
            return plan_together(statements, self._context, history)

    def price(
        self, plan: Sequence[PlannedMeasurement], counts: Sequence[PlannedUnitCount] = ()
    ) -> Price:
        """What rows, and counts of units, would cost."""
        return self._prices.price(plan, counts)

    def check(
        self,
        plan: Sequence[PlannedMeasurement],
        payer: Payer,
        *,
        epsilon_cap: Fraction | None,
        counts: Sequence[PlannedUnitCount] = (),
    ) -> None:
        """Refuse a plan as the gate would, but for one of data that was replaced.

        What is forecast may turn out not to be needed there; what is needed, the gate refuses.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan
        """
        price = self.price(plan, counts)
        if not self._extent.ended_on:
            self._prices.pricing.refuse(price, payer, epsilon_cap)


def estimates_of(
    wanted: Sequence[Wanted],
    rows_of: Callable[[Sequence[Wanted]], Sequence[RowEstimates]],
    known: UnitCounts,
    extent: Extent,
) -> list[RowEstimates]:
    """Estimates of everything that is wanted: of rows by `rows_of`, of units by their counts."""
    counts = [count_parts(one, extent) for one in wanted]
    of_rows = [one for one, parts in zip(wanted, counts, strict=True) if parts is None]
    rows = iter(rows_of(of_rows))
    return [
        next(rows) if parts is None else known_unit_count(one, parts, known, extent.schema)
        for one, parts in zip(wanted, counts, strict=True)
    ]


def count_parts(wanted: Wanted, extent: Extent) -> tuple[CountPart, ...] | None:
    """The parts of the count of units that is wanted; None if rows are wanted."""
    count = unit_count_of(wanted)
    return None if count is None else extent.count_parts(count)


def _rows_of(estimator: Estimator, wanted: Sequence[Wanted]) -> list[RowEstimates]:
    """An estimator's estimates of every block's rows."""
    found = []
    for rows in estimator.estimates([one.asked for one in wanted]):
        checkpoint()
        found.append(rows)
    return found
