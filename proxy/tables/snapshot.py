"""One private table as it was at one moment: what was known of it, and what more would cost.

A snapshot needs no lock: purchases are planned on it however long that takes, and what is charged
is decided on the newest history (`accountant/gate/gate.py`), which tells whether a plan is stale.
It is for one thread. Nothing here sees an exact count, or charges.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.cost.history_cost import Price
from accountant.gate.pricing import Pricing
from accountant.ledger.limits import Payer
from accountant.ledger.payments import Payment
from accountant.ledger.raises import StalePlan
from accountant.ledger.table_history import TableHistory
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.pace import checkpoint
from inference.estimator import Estimator
from inference.history import History
from inference.posterior import RowEstimate
from planner.batch.plan import BatchPlan
from planner.batch.together import plan_together
from planner.measuring.choose import plan_purchases
from planner.measuring.forecast import Forecast
from planner.measuring.gaussian_opening import GaussianOffer, offered_kinds
from planner.measuring.hindsight import Hindsight
from planner.measuring.offers import PricingContext, PurchasePlan
from planner.measuring.ski_rental import SkiRental
from planner.measuring.strategy import Strategy
from planner.workload import Wanted
from proxy.monitoring.events import Stage, Watcher
from proxy.tables.extent import Extent


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """What a snapshot is of: what was charged and measured, and what follows from it.

    Parameters
    ----------
    charges : TableHistory
        What the ledger says, and the moment at which limits are looked at.
    estimator : Estimator
        Of what was measured; nobody else asks it.
    ski_rental : SkiRental
        Of what was charged.
    hindsight : Hindsight
    """

    charges: TableHistory
    estimator: Estimator
    ski_rental: SkiRental
    hindsight: Hindsight


class TableSnapshot:
    """A table at one moment.

    Parameters
    ----------
    extent : Extent
        What is served.
    strategy : Strategy
        How measurements are chosen.
    known : KnownHistory
    watcher : Watcher
    gaussian : GaussianOffer, optional
        The owner's offer of Gaussian noise.
    """

    def __init__(
        self,
        extent: Extent,
        strategy: Strategy,
        known: KnownHistory,
        watcher: Watcher,
        gaussian: GaussianOffer | None = None,
    ) -> None:
        self.charges = known.charges
        self._extent = extent
        self._estimator = known.estimator
        self._watcher = watcher
        self._pricing = Pricing(extent.whole_schema, known.charges)
        self.forecast = Forecast(known.estimator, self._foreseen)
        offered = offered_kinds(gaussian, known.charges.gaussian, known.charges.units_of_rows)
        self._context = PricingContext(
            extent.schema,
            strategy,
            self.forecast,
            self.price,
            known.ski_rental,
            known.hindsight,
            self._units_without,
            self._left,
            offered,
        )

    @property
    def history(self) -> History:
        """What was measured; to be looked at only."""
        return self._estimator.history

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

    def estimates(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
        """What the history says of every block's rows."""
        with self._watcher.stage(Stage.LOOK):
            return _estimates(self._estimator, wanted)

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[Sequence[RowEstimate]],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy beyond what the history says, in the order of `wanted`."""
        with self._watcher.stage(Stage.PRICE):
            return plan_purchases(wanted, estimates, self._context, every_offer=every_offer)

    def plan_beside(
        self, promised: Sequence[PlannedMeasurement], wanted: Sequence[Wanted]
    ) -> PurchasePlan | None:
        """What to buy beside what the ledger promises; None if nothing, or nothing yet."""
        with self._watcher.stage(Stage.PRICE):
            try:
                future = self.forecast.after(self._extent.served_plan(promised))
                expected = _estimates(future.estimator, wanted)
                plan = plan_purchases(wanted, expected, replace(self._context, forecast=future))
            except StalePlan:  # it would raise what is not there yet
                return None
        return plan if plan.planned else None

    def plan_together(self, statements: Sequence[Sequence[Wanted]]) -> BatchPlan:
        """What to buy for a declared batch of statements."""
        with self._watcher.stage(Stage.PRICE):
            history = self._extent.served(self.charges.measurements)
            return plan_together(statements, self._context, history)

    def price(self, plan: Sequence[PlannedMeasurement]) -> Price:
        """What a plan would cost."""
        checkpoint()
        return self._pricing.price(self._extent.kept(plan))

    def check(
        self, plan: Sequence[PlannedMeasurement], payer: Payer, *, epsilon_cap: Fraction | None
    ) -> None:
        """Refuse a plan as the gate would.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap, TooLarge, StalePlan
        """
        self._pricing.refuse(self.price(plan), payer, epsilon_cap)

    def _foreseen(self, planned: PlannedMeasurement) -> Measurement:
        """What a planned measurement would make, without its values."""
        (kept,) = self._extent.kept([planned])
        return replace(self.charges.raises.foreseen(kept), block=planned.block)

    def _units_without(self, rows: Sequence[PlannedMeasurement]) -> int:
        """What the history would cost without some of its rows."""
        return self.charges.cost.units_without(self._extent.kept(rows))

    def _left(self) -> Fraction:
        return Fraction(self.charges.units_left, UNITS_PER_EPSILON)


def _estimates(estimator: Estimator, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
    """What an estimator says of every block's rows."""
    found = []
    for rows in estimator.estimates([one.asked for one in wanted]):
        checkpoint()
        found.append(rows)
    return found
