"""One private table as the engine sees it: its public schema, its gate, its history.

It never sees an exact count: a gate hands out noisy values only. Callers hold `lock`.
"""

import threading
from collections.abc import Sequence

from accountant.gate import Gate
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from inference.history import History
from inference.posterior import RowEstimate
from planner.measuring import plan_purchases
from planner.offers import Market, PurchasePlan
from planner.prospect import Prospect
from planner.rents import Rents
from planner.strategy import Strategy
from planner.workload import Wanted
from proxy.answers import BudgetStatus, TableInfo


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
    """

    def __init__(
        self,
        schema: Schema,
        default: AccuracyTarget,
        gate: Gate,
        strategy: Strategy = Strategy.AUTO,
    ) -> None:
        self.info = TableInfo(schema, default)
        self.gate = gate
        self.lock = threading.Lock()
        self._estimator = Estimator(schema)
        self._rents = Rents()
        self.prospect = Prospect(self._estimator, gate.noise_for)
        self._market = Market(
            schema, strategy, self.prospect, gate.price, self._rents, lambda: gate.budget().left
        )

    @property
    def history(self) -> History:
        """What was measured so far; to be looked at only."""
        return self._estimator.history

    def estimates(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
        """What the history says of every block's rows."""
        bought = self.gate.measurements()
        self._estimator.add(bought[self._estimator.n_measurements :])
        return [
            self._estimator.estimate(one.block, one.target.confidence, one.target.half_width)
            for one in wanted
        ]

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[Sequence[RowEstimate]],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy beyond what the history says, in the order of `wanted`."""
        self._rents.add(self.gate.charges()[self._rents.n_charges :])
        return plan_purchases(wanted, estimates, self._market, every_offer=every_offer)

    def budget(self) -> BudgetStatus:
        """What was spent and what is left."""
        budget = self.gate.budget()
        return BudgetStatus(
            table=self.info.schema.table,
            limit=budget.limit,
            spent=budget.spent,
            n_measurements=budget.n_measurements,
        )
