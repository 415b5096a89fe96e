"""Plans a declared batch of statements together and one by one, and takes the cheapest plan.

What a batch would buy if its statements were asked one after another.

Each statement is planned as the table plans any (`measuring/choose.py`), on a history in which what
the statements before it need counts as bought. Rows that several of them raise are bought once, at
their last weight. So a batch has a plan that costs no more than asking as one goes along.

Rows are bought with Laplace noise. Nothing is charged, and no noisy value plays a part: what is
imagined has values of zero.

    one by one      what asking one statement after another would buy: the table's own strategy, and
                    buying no more than each needs; so a batch never costs more than that
    on marginals    marginals on unions of the statements' columns (`marginal_plan.py`)
    on rows         a weight for each row and for hierarchies of them, where columns are few
                    (`plan.py`)

Every plan is brought to the targets as the estimator that will answer forecasts them
(`promise.py`), and priced by the accountant. Looking for more plans than the first ends when its
time is up; so on a slow machine a plan may be dearer, and no promise is weaker.

Plans depend on queries, targets, weights and the public schema, never on noisy values.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Final

from accountant.cost import Price
from accountant.ledger import Charge, ChargedBlock, Payer
from accountant.noise import LatticeNoise
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.pace import checkpoint, seconds_left, within
from cube.refusals import InvalidTarget, TooLarge, TooSlow
from planner.batch.marginal_plan import planned_on_marginals
from planner.batch.plan import BatchPlan, plan_batch
from planner.batch.promise import promised, with_kept_promises
from planner.measuring import ONLY_LAPLACE, Forecast, PricingContext, Strategy, plan_purchases
from planner.workload import Wanted

NOBODY: Final = Payer("nobody")  # rows and prices do not depend on the payer


def bought_one_by_one(
    statements: Sequence[Sequence[Wanted]],
    context: PricingContext,
    begun: Sequence[PlannedMeasurement] = (),
) -> tuple[PlannedMeasurement, ...]:
    """Everything that the statements would buy, asked in this order.

    Parameters
    ----------
    statements : sequence of (sequence of Wanted)
        What each of them asks for.
    context : PricingContext
        Of the table before the first.
    begun : sequence of PlannedMeasurement, optional
        What is bought before the first.

    Raises
    ------
    InvalidTarget
        If no weight is enough for a target.
    """
    future = _Future(context)
    if begun:
        future.add(begun)
    for wanted in statements:
        checkpoint()
        future.add(future.planned(wanted))
    return future.bought()


class _Future:
    """A table on which what is planned counts as bought."""

    def __init__(self, context: PricingContext) -> None:
        self._before = context
        self._n_measured = context.forecast.estimator.n_measurements
        self._added: list[PlannedMeasurement] = []
        self._units = self._units_before = context.price(()).units_before
        self._context = replace(
            context,
            forecast=Forecast(context.forecast.estimator, self._foreseen),
            price=self._price,
            ski_rental=context.ski_rental.copy(),
            left=self._left,
            offered=ONLY_LAPLACE,
        )

    def planned(self, wanted: Sequence[Wanted]) -> tuple[PlannedMeasurement, ...]:
        """What a statement would buy now."""
        estimator = self._context.forecast.estimator
        known = list(estimator.estimates([one.asked for one in wanted]))
        return plan_purchases(wanted, known, self._context).planned

    def add(self, plan: Sequence[PlannedMeasurement]) -> None:
        """Take a plan as bought."""
        if not plan:
            return
        price = self._price(plan)
        blocks = tuple(
            ChargedBlock(one.block, LatticeNoise.for_weight(one.laplace_weight)) for one in plan
        )
        charge = Charge(NOBODY, blocks, price.units_before, price.units_after)
        self._context.ski_rental.add([charge])
        self._context = replace(self._context, forecast=self._context.forecast.after(plan))
        self._added += plan
        self._units = price.units_after

    def bought(self, plan: Sequence[PlannedMeasurement] = ()) -> tuple[PlannedMeasurement, ...]:
        """Everything added, and `plan`, as one plan for the table as it is."""
        rows: list[PlannedMeasurement] = []
        place_of: dict[int, int] = {}
        for place, planned in enumerate((*self._added, *plan), start=self._n_measured):
            earlier = None if planned.raised_from is None else place_of.get(planned.raised_from)
            if earlier is None:
                place_of[place] = len(rows)
                rows.append(planned)
            else:
                place_of[place] = earlier
                rows[earlier] = replace(rows[earlier], weight=planned.weight)
        return tuple(rows)

    def _price(self, plan: Sequence[PlannedMeasurement]) -> Price:
        found = self._before.price(self.bought(plan))
        return Price(self._units, max(self._units, found.units_after), found.exact)

    def _left(self) -> Fraction:
        spent = Fraction(self._units - self._units_before, UNITS_PER_EPSILON)
        return max(Fraction(0), self._before.left() - spent)

    def _foreseen(self, planned: PlannedMeasurement) -> Measurement:
        origin = planned.raised_from
        while origin is not None and origin >= self._n_measured:
            origin = self._added[origin - self._n_measured].raised_from
        return self._before.forecast.foreseen(replace(planned, raised_from=origin))


SECONDS_MAX: Final = 60.0  # for all plans after the first
SHARE: Final = 0.6  # of the time that is left, for making a plan that has to be finished after it
SLIGHTLY: Final = 1.002  # a plan that misses by less is raised as a whole; nothing else is tried


def plan_together(
    statements: Sequence[Sequence[Wanted]],
    context: PricingContext,
    history: Sequence[Measurement],
    *,
    seconds: float = SECONDS_MAX,
) -> BatchPlan:
    """The cheapest plan found for all of the statements.

    Parameters
    ----------
    statements : sequence of (sequence of Wanted)
        What each of them asks for.
    context : PricingContext
        Of the table as it is.
    history : sequence of Measurement
        In the order of purchase.
    seconds : float
        For all plans after the first.

    Raises
    ------
    InvalidTarget
        If the targets cannot be met.
    """
    planning = _Planning(statements, context, history)
    planning.consider_first(planning.one_by_one())
    with suppress(TooSlow), within(seconds):
        for plan in planning.others():
            planning.consider(plan)
    return planning.cheapest


def of_each_holder(
    plan: Sequence[PlannedMeasurement], context: PricingContext
) -> Sequence[PlannedMeasurement]:
    """A plan as the holders of a federated table measure it, each raising what it has measured."""
    holders = context.holders
    if holders is None:
        return plan
    history, found = context.forecast.estimator.history, []
    for one in plan:
        for block in holders.split(one.block):
            place = history.raisable(block, is_gaussian=one.is_gaussian)
            if place is None or history[place].weight.units < one.weight.units:
                found.append(replace(one, block=block, raised_from=place))
    return found


class _Planning:
    """The cheapest plan for some statements so far."""

    def __init__(
        self,
        statements: Sequence[Sequence[Wanted]],
        context: PricingContext,
        history: Sequence[Measurement],
    ) -> None:
        self._statements = statements
        self._queries = [one for wanted in statements for one in wanted]
        self._context = context
        self._history = history
        self._price = Fraction(0)
        self._known = promised((), self._queries, context.forecast)
        self.cheapest = BatchPlan((), (), 0.0)

    def consider_first(self, plan: Sequence[PlannedMeasurement]) -> None:
        """Take a plan, whatever it costs, once it keeps its promises."""
        self._take(self._finished(plan))

    def consider(self, plan: Sequence[PlannedMeasurement]) -> None:
        """Take a plan if it is cheaper than those before, once it keeps its promises."""
        plan = of_each_holder(plan, self._context)
        if self._price_of(plan) >= self._price:
            return
        with suppress(InvalidTarget, TooLarge):
            finished = self._finished(plan)
            if self._price_of(finished.measurements) < self._price:
                self._take(finished)

    def one_by_one(self) -> tuple[PlannedMeasurement, ...]:
        """As the table would buy."""
        return bought_one_by_one(self._statements, self._context)

    def others(self) -> Iterator[Sequence[PlannedMeasurement]]:
        """Further plans, those made fastest first."""
        unknown = [
            query
            for query, width in zip(self._queries, self._known, strict=True)
            if width > query.target.half_width
        ]
        if not unknown:
            return
        if self._context.strategy is not Strategy.QUERY:
            yield bought_one_by_one(self._statements, self._thrifty)
        schema, forecast = self._context.schema, self._context.forecast
        with self._share():
            on_marginals = planned_on_marginals(unknown, schema, forecast)
        yield on_marginals
        with self._share():
            on_rows = plan_batch(self._queries, schema, self._history)
        yield on_rows.measurements

    def _share(self) -> AbstractContextManager[None]:
        """A share of the time that is left for making a plan; the rest is for what follows."""
        return within(SHARE * seconds_left(SECONDS_MAX))

    @property
    def _thrifty(self) -> PricingContext:
        """The table, if it bought no more than each query needs."""
        return replace(self._context, strategy=Strategy.QUERY)

    def _take(self, plan: BatchPlan) -> None:
        self._price = self._price_of(plan.measurements)
        self.cheapest = replace(plan, epsilon=float(self._price))

    def _price_of(self, plan: Sequence[PlannedMeasurement]) -> Fraction:
        return self._context.price(plan).epsilon

    def _finished(self, plan: Sequence[PlannedMeasurement]) -> BatchPlan:
        """The plan brought to all targets: all of it raised, or what some lack bought beside it."""
        forecast = self._context.forecast
        lacking = {
            place: width / query.target.half_width
            for place, (query, width) in enumerate(
                zip(self._queries, promised(plan, self._queries, forecast), strict=True)
            )
            if width > query.target.half_width
        }
        raised = with_kept_promises(plan, self._queries, forecast)
        if max(lacking.values(), default=0.0) <= SLIGHTLY:
            return raised
        one_by_one = [[self._queries[place]] for place in lacking]
        topped_up = bought_one_by_one(one_by_one, self._thrifty, plan)
        finished = with_kept_promises(topped_up, self._queries, forecast)
        return min(raised, finished, key=lambda one: self._price_of(one.measurements))
