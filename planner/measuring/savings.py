"""What a wide purchase would have saved of the rent, and the weight at which it is worth its price.

A wide purchase answers more of the rows rented the more precise it is: those that were asked for as
precisely as it is. The weight at which it would have answered all of them comes first; where that
is more than these rows are worth, or more than may be spent, a smaller one that would have answered
a part of them (`ski_rental.py`). So one row that was asked for very precisely does not make all
that follows dear.

Nothing here sees a noisy value, or makes a plan.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cube.refusals import InvalidTarget
from planner.measuring.candidates import Candidate
from planner.measuring.hindsight import Demand, demand_of
from planner.measuring.intervals import answerable, has_cells
from planner.measuring.least_width import least_width
from planner.measuring.noise_kinds import NoiseKind
from planner.measuring.offers import PricingContext
from planner.measuring.ski_rental import Evidence, RentedRows, rent_at_most
from planner.measuring.weighing import Weighing

N_WEIGHTS_TRIED = 4
N_LOOKED_BACK = 64  # the latest rows rented
N_TIMES_LONGER = 16  # than the rows rented a history is, once these are priced alone first
N_LOOKED_BACK_GROWING = 16  # the same on a table that grows: every day they are looked at anew
NOTHING = Fraction(-1)  # what a purchase is worth that must not be made even if it costs nothing


@dataclass(frozen=True, slots=True)
class Saving:
    """A common weight, and what a wide purchase at that weight would have saved.

    Parameters
    ----------
    units : int
    rent : Fraction
        Of the rows before that it would have answered.
    worth : Fraction
        What it may cost.
    """

    units: int
    rent: Fraction
    worth: Fraction


class Savings:
    """What wide purchases would have saved, for one aggregate.

    Parameters
    ----------
    context : PricingContext
    weighing : Weighing
    rent_now : Fraction
        The price of the rows that are asked for.
    limit : Fraction
        What may be spent.
    """

    def __init__(
        self, context: PricingContext, weighing: Weighing, rent_now: Fraction, limit: Fraction
    ) -> None:
        self._context = context
        self._weighing = weighing
        self._rent_now = rent_now
        self._limit = limit
        self._of_table = context.cost_of_rows()
        self._rents: dict[tuple[RentedRows, ...], Fraction] = {}
        self._alones: dict[tuple[RentedRows, ...], Fraction] = {}

    def best(self, candidate: Candidate, kind: NoiseKind, *, every_offer: bool) -> Saving | None:
        """The largest of a few weights that is worth its price.

        None if the candidate says nothing of what is asked now, or if no weight is worth it; with
        `every_offer`, then that which is needed for what is asked now.
        """
        if not every_offer and self._costs_too_much(candidate, kind):
            return None
        first = self._first_units(candidate, kind)
        if first is None:
            return None
        if not every_offer and self._is_beyond(candidate, kind, first):
            return None
        grows = self._context.schema.grows is not None
        n_latest = N_LOOKED_BACK_GROWING if grows else N_LOOKED_BACK
        rented = answerable(candidate, self._context, n_latest)
        found = self._worth_it(candidate, kind, first, rented)
        if found is None and every_offer:
            return Saving(first, self._rent(rented), NOTHING)
        return found

    def _worth_it(
        self, candidate: Candidate, kind: NoiseKind, first: int, rented: tuple[RentedRows, ...]
    ) -> Saving | None:
        """The same of weights that are at least the first one, and worth their prices."""
        weighing = self._weighing
        added = weighing.added(candidate, kind, first)
        if added > self._worth_at_most(candidate, kind, rented):
            return None
        alone = self._alone(rented)  # which takes longer than the sum, but not as long as the rent
        if added > self._evidence(candidate, kind, alone).worth(alone, is_all=True):
            return None
        of_all = self._rent(rented)
        evidence = self._evidence(candidate, kind, of_all)
        if added > evidence.worth(of_all, is_all=True):
            return None
        for units, answered in _tried(self._needed(candidate, kind, rented, first), first):
            added = weighing.added(candidate, kind, units)
            is_all = len(answered) == len(rented)
            if added > min(self._limit, evidence.worth(rent_at_most(answered), is_all=is_all)):
                continue
            rent = self._rent(answered)
            worth = evidence.worth(rent, is_all=is_all)
            if added <= worth:
                return Saving(units, rent, worth)
        return None

    def _costs_too_much(self, candidate: Candidate, kind: NoiseKind) -> bool:
        """Whether it does for what is asked now alone, whatever it would have answered.

        Most do, which is seen without reading a row from them. What was bought before may need less
        than that.
        """
        weighing, context = self._weighing, self._context
        if weighing.held(candidate, kind):
            return False
        target = weighing.target
        width = least_width(candidate.blocks, weighing.block, target.confidence, context.schema)
        return self._is_beyond(candidate, kind, kind.as_precise_as(width / target.half_width))

    def _is_beyond(self, candidate: Candidate, kind: NoiseKind, units: int) -> bool:
        """Whether a candidate costs more than it can be worth with any of the rows on its scope."""
        rented = self._context.ski_rental.on(candidate.scope)
        added = self._weighing.added(candidate, kind, units)
        return added > self._worth_at_most(candidate, kind, rented)

    def _worth_at_most(
        self, candidate: Candidate, kind: NoiseKind, rented: tuple[RentedRows, ...]
    ) -> Fraction:
        """At least what a candidate may cost, whichever of the rows it would have answered.

        Evidence and worth rise with the rent, of which there is a bound that takes no time.
        """
        rent = rent_at_most(rented)
        return min(self._limit, self._evidence(candidate, kind, rent).worth(rent, is_all=True))

    def _evidence(self, candidate: Candidate, kind: NoiseKind, rent: Fraction) -> Evidence:
        return Evidence.of(
            self._rent_now,
            self._context.ski_rental.n_purchases(candidate.scope),
            rent=rent,
            held=self._weighing.held(candidate, kind),
            of_table=self._of_table,
        )

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
            self._rents[rented] = self._context.rent(rented, self._alone(rented))
        return self._rents[rented]

    def _alone(self, rented: tuple[RentedRows, ...]) -> Fraction:
        """At least the rent of rows: what they would cost by themselves.

        While the history is short, the rent itself is found sooner; then it is the sum of prices.
        """
        if self._context.ski_rental.n_charges < N_TIMES_LONGER * len(rented):
            return rent_at_most(rented)
        if rented not in self._alones:
            self._alones[rented] = self._context.rent_alone(rented)
        return self._alones[rented]


def _tried(
    needed: Mapping[RentedRows, int], first: int
) -> Iterator[tuple[int, tuple[RentedRows, ...]]]:
    """A few of the weights, the largest first and the smallest last, with what each answers."""
    ordered = sorted({first, *needed.values()}, reverse=True)
    for place in np.linspace(0, len(ordered) - 1, min(len(ordered), N_WEIGHTS_TRIED)):
        units = ordered[int(place)]
        yield units, tuple(rows for rows in needed if needed[rows] <= units)
