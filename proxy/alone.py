"""A table as it is to somebody who asks alone: nothing was ever measured, and all of it is left.

The planner that buys, and the gate that prices, are asked here on an empty history. So what is told
from here follows from the question and from public declarations, whatever anybody has asked before.
Nothing here charges or reads.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Final

from accountant.cost import Price
from accountant.gate import Gate
from accountant.limits import Payer
from accountant.replay import TableHistory
from cube.encoding import fingerprint
from cube.measurement import PlannedMeasurement
from inference.estimator import Estimator
from inference.posterior import RowEstimate
from planner.cache import BoundedCache
from planner.measuring import plan_purchases
from planner.offers import Market, PurchasePlan
from planner.prospect import Prospect
from planner.rents import Rents
from planner.strategy import Strategy
from planner.workload import Wanted
from proxy.answers import TableInfo

N_PLANS_MAX: Final = 1024
OFFER_BYTES: Final = 2**14  # what a remembered offer takes, roughly
PLANS_BYTES_MAX: Final = 2**26


class Alone:
    """The market of one table, on an empty history. Thread-safe.

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
        self._plans: BoundedCache[tuple[object, ...], PurchasePlan] = BoundedCache(
            n_entries_max=N_PLANS_MAX, n_bytes_max=PLANS_BYTES_MAX
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """There is nothing to wait for."""
        yield

    @contextmanager
    def turn(self) -> Iterator[None]:
        """There is nothing to wait for."""
        yield

    @property
    def prospect(self) -> Prospect:
        """What an empty history could become."""
        return Prospect(Estimator(self.info.schema), self._empty.noise_for)

    def estimates(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
        """What is known of every block's rows without any history: only what is public."""
        estimator = Estimator(self.info.schema)
        return [
            estimator.estimate(one.block, one.target.confidence, one.target.half_width)
            for one in wanted
        ]

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[Sequence[RowEstimate]],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy on an empty history, in the order of `wanted`."""
        budget = self._empty.budget
        asked = ((fingerprint(one.block), one.target) for one in wanted)
        key = (budget, every_offer, *asked)
        found = self._plans.get(key)
        if found is None:
            market = Market(
                self.info.schema,
                self._strategy,
                self.prospect,
                self.price,
                Rents(),
                lambda: budget,
            )
            found = plan_purchases(wanted, estimates, market, every_offer=every_offer)
            n_offers = 1 + sum(map(len, found.offers))
            self._plans.put(key, found, n_bytes=n_offers * OFFER_BYTES)
        return found

    def bought(self, wanted: Sequence[Wanted]) -> PurchasePlan:
        """What is bought by who asks alone for all of it at once."""
        return self.plan(wanted, self.estimates(wanted))

    def price(self, plan: Sequence[PlannedMeasurement]) -> Price:
        """What a plan costs who asks alone."""
        return self._gate.price(plan, self._empty)

    def check(
        self, plan: Sequence[PlannedMeasurement], payer: Payer, *, epsilon_cap: Fraction | None
    ) -> None:
        """Refuse a plan that passes its cap, or all that the table ever had."""
        self._gate.check(plan, payer, epsilon_cap=epsilon_cap, history=self._empty)

    @property
    def _empty(self) -> TableHistory:
        """The history of a table that nobody has asked, with the budget that it has now."""
        history = self._gate.history
        return TableHistory(
            opened=history.opened, declaration=history.declaration, budget=history.budget
        )
