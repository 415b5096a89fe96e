"""One private table as the engine sees it: its public schema, its gate, its history.

It never sees an exact count: a gate hands out noisy values only. Callers of what reads or plans
have it `held`, and let go of it while a purchase is under way.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from accountant.cost import Price
from accountant.gate import Gate
from accountant.limits import Payer
from accountant.noise import LatticeNoise
from accountant.payments import Allowance
from accountant.replay import StalePlan
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
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
from proxy.alone import Alone
from proxy.answers import BudgetStatus, LimitStatus, TableInfo
from proxy.counter import Counter
from proxy.purchases import Promises, Purchase, Purchases
from proxy.sharing import Sharing
from proxy.watch import UNWATCHED, Stage, Watcher


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
        With which probability its owner lets nothing be promised, for who asks with normal noise.
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
        self.alone = Alone(self.info, gate, strategy) if is_private else None
        self.delta = delta
        self.gate = gate
        self.watcher = watcher
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self.purchases = Purchases(gate, watcher)
        self.counter = Counter()
        self._estimator = Estimator(schema)
        self._rents = Rents()
        # Plans are made on one history, however long they take: only what is charged is decided
        # on the newest, and told if the plan is stale.
        self._seen = gate.history
        self.prospect = Prospect(self._estimator, self._noise_for)
        self._market = Market(
            schema, strategy, self.prospect, self.price, self._rents, lambda: gate.budget().left
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """The table to oneself; not to be kept while a purchase is under way."""
        with self.watcher.stage(Stage.WAIT):
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One's turn to plan a purchase: so many may want one that they queue.

        Whoever only looks at the history needs none, and waits for about one plan.
        """
        with self.watcher.stage(Stage.WAIT):
            self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    @property
    def history(self) -> History:
        """What was measured so far; to be looked at only."""
        return self._estimator.history

    def recalled(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]] | None:
        """What history says of every block, if it was asked since anything was measured.

        Nobody needs to hold the table: a dashboard that asks again waits for no plan.
        """
        with self.watcher.stage(Stage.LOOK):
            asked = [(one.block, one.target.confidence, one.target.half_width) for one in wanted]
            return self._estimator.recalled(asked, len(self.gate.history.measurements))

    def estimates(self, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
        """What the history says of every block's rows."""
        with self.watcher.stage(Stage.LOOK):
            self._seen = self.gate.history
            bought = self._seen.measurements
            self._estimator.add(bought[self._estimator.n_measurements :])
            return _estimates(self._estimator, wanted)

    def _noise_for(self, planned: PlannedMeasurement) -> LatticeNoise:
        return self._seen.noise_for(planned)

    def price(self, plan: Sequence[PlannedMeasurement]) -> Price:
        """What a plan would cost on the history that was looked at last."""
        return self.gate.price(plan, self._seen)

    def check(
        self, plan: Sequence[PlannedMeasurement], payer: Payer, *, epsilon_cap: Fraction | None
    ) -> None:
        """Refuse a plan as the gate would, on the history that was looked at last."""
        self.gate.check(plan, payer, epsilon_cap=epsilon_cap, history=self._seen)

    def plan(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[Sequence[RowEstimate]],
        *,
        every_offer: bool = False,
    ) -> PurchasePlan:
        """What to buy beyond what the history says, in the order of `wanted`."""
        with self.watcher.stage(Stage.PRICE):
            self._look_at_rents()
            return plan_purchases(wanted, estimates, self._market, every_offer=every_offer)

    def purchase(
        self,
        wanted: Sequence[Wanted],
        estimates: Sequence[Sequence[RowEstimate]],
        promises: Promises,
        *,
        is_urgent: bool,
    ) -> Purchase | None:
        """The purchase of what is wanted, begun; None if what is promised is worth waiting for.

        An urgent one is bought even if other processes have bought something since it was planned.
        """
        if promises.rows:
            plan = self._planned_beside(promises.rows, wanted)
        else:
            plan = self.plan(wanted, estimates)
        if plan is None:
            return None
        return self.purchases.begin(plan, None if is_urgent else promises.n_read)

    def _planned_beside(
        self, promised: Sequence[PlannedMeasurement], wanted: Sequence[Wanted]
    ) -> PurchasePlan | None:
        """What to buy beside what is promised; None if nothing, or nothing yet."""
        with self.watcher.stage(Stage.PRICE):
            self._look_at_rents()
            try:
                future = self.prospect.after(promised)
                expected = _estimates(future.estimator, wanted)
                plan = plan_purchases(wanted, expected, replace(self._market, prospect=future))
            except StalePlan:  # it would raise what is not there yet
                return None
        return plan if plan.planned else None

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

    def _look_at_rents(self) -> None:
        new = self._seen.payments[self._rents.n_charges :]
        self._rents.add([payment.charge for payment in new])


def _estimates(estimator: Estimator, wanted: Sequence[Wanted]) -> list[tuple[RowEstimate, ...]]:
    return [
        estimator.estimate(one.block, one.target.confidence, one.target.half_width)
        for one in wanted
    ]


def _limit_status(allowance: Allowance) -> LimitStatus:
    limit = allowance.limit
    return LimitStatus(
        subject=str(limit.subject),
        window=limit.window.value,
        limit=limit.epsilon,
        spent=Fraction(allowance.units_spent, UNITS_PER_EPSILON),
        per_query=limit.per_query,
    )
