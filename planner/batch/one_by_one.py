"""What a batch would buy if its statements were asked one after another.

Each statement is planned as the table plans any (`measuring/choose.py`), on a history in which what
the statements before it need counts as bought. Rows that several of them raise are bought once, at
their last weight. So a batch has a plan that costs no more than asking as one goes along.

Rows are bought with Laplace noise. Nothing is charged, and no noisy value plays a part: what is
imagined has values of zero.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from accountant.cost.history_cost import Price
from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import Charge
from accountant.ledger.limits import Payer
from accountant.noise.lattice_noise import LatticeNoise
from cube.measurement import UNITS_PER_EPSILON, Measurement, PlannedMeasurement
from cube.pace import checkpoint
from planner.measuring.choose import plan_purchases
from planner.measuring.forecast import Forecast
from planner.measuring.noise_kinds import ONLY_LAPLACE
from planner.measuring.offers import PricingContext
from planner.workload import Wanted

NOBODY: Final = Payer("nobody")  # whoever pays, rows and prices are the same


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
