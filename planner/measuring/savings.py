"""What a wide purchase would have saved of the rent, and the weight at which it would save most.

A wide purchase answers more of the rows rented the more precise it is: those that were asked for as
precisely as it is. So a few weights are tried, from what is asked now to all that was rented, and
the one is taken that leaves most of what these rows are worth (`ski_rental.py`).

Nothing here sees a noisy value, or makes a plan.
"""

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cube.refusals import InvalidTarget
from planner.measuring.candidates import Candidate
from planner.measuring.hindsight import Demand, demand_of
from planner.measuring.intervals import answerable, has_cells
from planner.measuring.noise_kinds import NoiseKind
from planner.measuring.offers import PricingContext
from planner.measuring.ski_rental import RentedRows, rent_at_most, worth
from planner.measuring.weighing import Weighing

N_WEIGHTS_TRIED = 4
N_LOOKED_BACK = 64  # the latest rows rented
NOTHING = Fraction(-1)  # what a purchase is worth that must not be made even if it costs nothing


@dataclass(frozen=True, slots=True)
class Saving:
    """A common weight, and what a wide purchase at that weight would have saved.

    Parameters
    ----------
    units : int
    rent : Fraction
        Of the rows that it would have answered.
    worth : Fraction
        What it may cost.
    left : Fraction
        What it may cost beyond what it adds to every cell.
    """

    units: int
    rent: Fraction
    worth: Fraction
    left: Fraction


class Savings:
    """What wide purchases would have saved, for one aggregate.

    Parameters
    ----------
    context : PricingContext
    weighing : Weighing
    """

    def __init__(self, context: PricingContext, weighing: Weighing) -> None:
        self._context = context
        self._weighing = weighing
        self._rents: dict[tuple[RentedRows, ...], Fraction] = {}

    def most(
        self, candidate: Candidate, kind: NoiseKind, rent_now: Fraction, *, every_offer: bool
    ) -> Saving | None:
        """The weight that saves most.

        None if the candidate says nothing of what is asked now, or if the rent covers no weight;
        with `every_offer`, then that at which it would have answered everything.
        """
        first = self._first_units(candidate, kind)
        if first is None:
            return None
        weighing, of_table = self._weighing, self._context.cost_of_rows()
        held = weighing.held(candidate, kind)
        n_ever = self._context.ski_rental.n_ever(candidate.scope)

        def worth_of(rent: Fraction) -> Fraction:
            return worth(rent_now, rent, n_ever, held, of_table)

        rented = answerable(candidate, self._context)[-N_LOOKED_BACK:]
        at_most = worth_of(rent_at_most(rented))
        if not every_offer and weighing.added(candidate, kind, first) > at_most:
            return None  # most cost too much, whatever they would have answered
        needed = self._needed(candidate, kind, rented, first)
        found = []
        tried = _spread({first, *needed.values()})
        for units in tried:
            answered = tuple(rows for rows in needed if needed[rows] <= units)
            added = weighing.added(candidate, kind, units)
            if added <= worth_of(rent_at_most(answered)):
                value = worth_of(rent := self._rent(answered))
                found.append(Saving(units, rent, value, value - added))
        if found:
            return max(found, key=lambda one: one.left)
        return Saving(tried[-1], self._rent(rented), NOTHING, NOTHING) if every_offer else None

    def _first_units(self, candidate: Candidate, kind: NoiseKind) -> int | None:
        """What is needed for what is asked now: alone, or beside the history if that is less."""
        weighing = self._weighing
        now = Demand(weighing.block, weighing.target.half_width)
        first = self._units(candidate, kind, now)
        if first is None or not weighing.held(candidate, kind):
            return first
        if has_cells(candidate, self._context):
            with suppress(InvalidTarget):  # they are not combined as well as they are read alone
                return min(first, weighing.least_units(candidate, kind))
        return first

    def _needed(
        self, candidate: Candidate, kind: NoiseKind, rented: tuple[RentedRows, ...], first: int
    ) -> dict[RentedRows, int]:
        """The units at which a candidate would have answered rows, of those that it would have."""
        needed = {}
        for rows in rented:
            demand = demand_of(rows, self._weighing.target.confidence)
            units = self._units(candidate, kind, demand)
            if units is not None:
                needed[rows] = max(first, units)
        return needed

    def _units(self, candidate: Candidate, kind: NoiseKind, demand: Demand) -> int | None:
        confidence = self._weighing.target.confidence
        return self._context.hindsight.needed_units(candidate.blocks, demand, confidence, kind)

    def _rent(self, rented: tuple[RentedRows, ...]) -> Fraction:
        """What rows are worth: most candidates of a scope would have answered the same."""
        if rented not in self._rents:
            self._rents[rented] = self._context.rent(rented)
        return self._rents[rented]


def _spread(units: set[int]) -> list[int]:
    """A few of the weights, the smallest and the largest among them."""
    ordered = sorted(units)
    places = np.linspace(0, len(ordered) - 1, min(len(ordered), N_WEIGHTS_TRIED))
    return [ordered[int(place)] for place in places]
