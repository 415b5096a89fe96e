"""Computes the rent that a wide purchase would have saved, and what hierarchies need besides.

Above some number of cells a hierarchy begins with intervals of several levels. A range is then the
whole intervals within it and a rest at its ends, a row that is measured beside them.

A wide purchase answers more of the rows rented the more precise it is: those that were asked for as
precisely as it is. The weight at which it would have answered all of them comes first; where that
is more than these rows are worth, or more than may be spent, a smaller one that would have answered
a part of them (`ski_rental.py`). So one row that was asked for very precisely does not make all
that follows dear.

Nothing here sees a noisy value, or makes a plan.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

import numpy as np

from cube.holders import Holders
from cube.measurement import UNITS_PER_EPSILON
from cube.query import QueryBlock, Scope
from cube.refusals import InvalidTarget
from planner.measuring.candidates import Candidate, may_be_whole
from planner.measuring.hindsight import Demand, Reach, demand_of, least_widths
from planner.measuring.offers import PricingContext
from planner.measuring.ski_rental import Evidence, RentedRows, is_due, rent_at_most
from planner.measuring.weighing import Weighing
from planner.measuring.weights import NoiseKind


def has_cells(candidate: Candidate, context: PricingContext) -> bool:
    """Whether a candidate has every cell of its scope, so that it says something of every row."""
    return may_be_whole(candidate.scope, context.schema)


def completed(
    candidate: Candidate, row: QueryBlock, context: PricingContext
) -> tuple[Candidate, Candidate | None] | None:
    """A candidate with the rest of a row in lowest terms, and that rest; None if it is not divided.

    There is no rest if the row is whole intervals.
    """
    if has_cells(candidate, context):
        return candidate, None
    parts = context.hindsight.divided(candidate.blocks, row)
    if parts is None or parts.rest is None:
        return None if parts is None else (candidate, None)
    both = replace(candidate, blocks=(*candidate.blocks, parts.rest))
    return both, Candidate("rest", (parts.rest,), candidate.scope)


def rests(row: QueryBlock, context: PricingContext) -> Iterator[Candidate]:
    """What intervals that are measured already leave of a row in lowest terms."""
    for axes, rest in context.forecast.estimator.rests(row).items():
        found = Candidate("rest", (rest,), axes)
        if not has_cells(found, context):
            yield found


def answerable(
    candidate: Candidate, context: PricingContext, n_latest: int
) -> tuple[RentedRows, ...]:
    """The latest rows rented on a candidate's scope that it would have answered.

    Rests are rented on it as well, and would be with other intervals: nothing saves them.
    """
    rented = context.ski_rental.on(candidate.scope)
    if has_cells(candidate, context):
        return rented[-n_latest:]
    divides = context.hindsight.divides
    found = (one for one in reversed(rented) if divides(candidate.blocks, one.block))
    return tuple(islice(found, n_latest))[::-1]


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
        The largest epsilon that the purchase may cost.
    """

    units: int
    rent: Fraction
    worth: Fraction


@dataclass(frozen=True, slots=True)
class _Case:
    """A candidate with a kind of noise, and what speaks for it whatever its weight.

    Parameters
    ----------
    candidate : Candidate
    kind : NoiseKind
    held : Fraction
        What was paid for its blocks so far.
    added : callable
        What a common weight adds to the table's cost.
    """

    candidate: Candidate
    kind: NoiseKind
    held: Fraction
    added: Callable[[int], Fraction]


class Savings:
    """What wide purchases would have saved, for one aggregate.

    Parameters
    ----------
    context : PricingContext
    weighing : Weighing
    rent_now : Fraction
        The price of the rows that are asked for.
    limit : Fraction
        The largest epsilon that may be spent.
    """

    def __init__(
        self, context: PricingContext, weighing: Weighing, rent_now: Fraction, limit: Fraction
    ) -> None:
        self._context = context
        self._weighing = weighing
        self._rent_now = rent_now
        self._limit = limit
        self._of_table = context.cost_of_rows()
        self._on_scopes: dict[Scope, Fraction] = {}
        self._n_purchases: dict[Scope, int] = {}
        self._rents: dict[tuple[RentedRows, ...], Fraction] = {}
        self._alones: dict[tuple[RentedRows, ...], Fraction] = {}

    def best(self, candidate: Candidate, kind: NoiseKind, *, every_offer: bool) -> Saving | None:
        """The largest of a few weights that is worth its price.

        None if the candidate does not help the present request, if no weight is worth its price,
        or if its scope is not due. With `every_offer`, it is then the weight that the present
        request needs.
        """
        due = self._is_due(candidate.scope)
        if not (due or every_offer):
            return None
        weighing = self._weighing
        held = weighing.held(candidate, kind)
        case = _Case(candidate, kind, held, weighing.adding(candidate, kind))
        least = self._first_at_least(case)
        if not every_offer and self._is_beyond(case, least):
            return None
        rented, reach = self._within_reach(case)
        if not every_offer and (
            self._worth_at_most(case, least, reach, reach.rents[-1]) is None
            or (case.held and self._falls_short(case, rented, reach))
        ):
            return None
        first = self._first_units(case)
        if first is None:
            return None
        found = self._worth_it(case, first, rented, reach) if due else None
        if found is None and every_offer:
            return Saving(first, self._rent(rented), NOTHING)
        return found

    def _worth_it(
        self, case: _Case, first: int, rented: tuple[RentedRows, ...], reach: Reach
    ) -> Saving | None:
        """The same of weights that are at least the first one, and worth their prices."""
        for bound in (self._alone, self._rent):  # each takes longer, and is no more
            if self._worth_at_most(case, first, reach, bound(rented)) is None:
                return None
        at_most = self._rent(rented)
        evidence = self._evidence(case, at_most)
        for units, answered in _tried(self._needed(case, rented, first), first):
            added = case.added(units)
            is_all = len(answered) == len(rented)
            at_most = min(at_most, rent_at_most(answered))  # fewer rows have not added more
            if added > min(self._limit, evidence.worth(at_most, is_all=is_all)):
                continue
            rent = at_most = self._rent(answered)
            worth = evidence.worth(rent, is_all=is_all)
            if added <= worth:
                return Saving(units, rent, worth)
        return None

    def _first_at_least(self, case: _Case) -> int:
        """At most what is needed for what is asked now, without reading a row.

        What was bought before may need less than the candidate by itself.
        """
        if case.held:
            return 1
        weighing = self._weighing
        target, schema = weighing.target, self._context.schema
        now, blocks = [weighing.block], case.candidate.blocks
        (width,) = least_widths(blocks, now, target.confidence, schema)
        return case.kind.as_precise_as(width / target.half_width)

    def _is_beyond(self, case: _Case, units: int) -> bool:
        """Whether a candidate costs more than it can be worth with any of the rows on its scope.

        Most do, which is seen before it is asked which of the rows it divides.
        """
        rent = self._rent_on(case.candidate.scope)
        worth = self._evidence(case, rent).worth(rent, is_all=True)
        return case.added(units) > min(self._limit, worth)

    def _is_due(self, scope: Scope) -> bool:
        """Whether it is time to look back at the rows on a scope.

        It is with each of the first, and whenever their rent or their number has grown by about a
        sixteenth: so a purchase is put off until there is a sixteenth more of either, and hundreds
        of rows that each add little are not looked back at from every one of them.
        """
        rent, now = (int(one * UNITS_PER_EPSILON) for one in (self._rent_on(scope), self._rent_now))
        return is_due(rent, now) or is_due(self._n_purchases_on(scope), 1)

    def _n_purchases_on(self, scope: Scope) -> int:
        if scope not in self._n_purchases:
            self._n_purchases[scope] = self._context.ski_rental.n_purchases(scope)
        return self._n_purchases[scope]

    def _rent_on(self, scope: Scope) -> Fraction:
        """At least what the rows on a scope have added to the table's cost."""
        if scope not in self._on_scopes:
            self._on_scopes[scope] = rent_at_most(self._context.ski_rental.on(scope))
        return self._on_scopes[scope]

    def _within_reach(self, case: _Case) -> tuple[tuple[RentedRows, ...], Reach]:
        """The latest rows that a candidate would have answered, and what it may need for each."""
        schema = self._context.schema
        n_latest = N_LOOKED_BACK if schema.grows is None else N_LOOKED_BACK_GROWING
        rented = answerable(case.candidate, self._context, n_latest)
        confidence = self._weighing.target.confidence
        return rented, Reach.of(case.candidate, case.kind, rented, confidence, schema)

    def _worth_at_most(
        self, case: _Case, first: int, reach: Reach, rent: Fraction
    ) -> Fraction | None:
        """What a weight may cost, if all rows are worth at most so much; None if no weight may."""
        evidence = self._evidence(case, rent)
        return reach.worth_at_most(first, case.added, evidence, self._limit, rent)

    def _falls_short(self, case: _Case, rented: tuple[RentedRows, ...], reach: Reach) -> bool:
        """Whether no weight that may be worth its price is enough for the present request.

        Of scopes that are held already the least weight beside the history takes a search, and most
        are further from it than one forecast, at the largest weight, shows.
        """
        worth = self._worth_at_most(case, 1, reach, self._rent(rented))
        if worth is None:
            return True
        alone = self._units_now(case)
        if alone is None or case.added(alone) <= worth:
            return alone is None
        candidate, kind, weighing = case.candidate, case.kind, self._weighing
        if not has_cells(candidate, self._context):
            return True
        largest = largest_within(worth, case.added, kind.units_max)
        plan = weighing.raised(candidate, kind, largest) if largest else ()
        return not plan or weighing.half_width(plan) > weighing.target.half_width

    def _evidence(self, case: _Case, rent: Fraction) -> Evidence:
        return Evidence.of(
            self._rent_now,
            self._n_purchases_on(case.candidate.scope),
            rent=rent,
            held=case.held,
            of_table=self._of_table,
        )

    def _first_units(self, case: _Case) -> int | None:
        """What is needed for what is asked now: alone, or beside the history if that is less."""
        weighing = self._weighing
        first = self._units_now(case)
        if first is None or not case.held:
            return first
        if has_cells(case.candidate, self._context):
            with suppress(InvalidTarget):  # they are not combined as well as they are read alone
                return min(first, weighing.least_units(case.candidate, case.kind))
        return first

    def _needed(
        self, case: _Case, rented: tuple[RentedRows, ...], first: int
    ) -> dict[RentedRows, int]:
        """The weight units at which a candidate would have answered each row that it can answer."""
        needed = {}
        for rows in rented:
            units = self._units(case, demand_of(rows, self._weighing.target.confidence))
            if units is not None:
                needed[rows] = max(first, units)
        return needed

    def _units_now(self, case: _Case) -> int | None:
        """What is needed for what is asked now, had nothing been bought before."""
        now = Demand(self._weighing.block, self._weighing.target.half_width)
        return self._units(case, now)

    def _units(self, case: _Case, demand: Demand) -> int | None:
        confidence = self._weighing.target.confidence
        blocks = case.candidate.blocks
        units = self._context.hindsight.needed_units(blocks, demand, confidence, case.kind)
        holders = self._context.holders
        return units if units is None or holders is None else _of_each(units, case.kind, holders)

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


def _of_each(units: int, kind: NoiseKind, holders: Holders) -> int:
    """What each holder needs where one table would need so much: the variances add up."""
    each: float = holders.n_holders ** (1 / int(kind.power))
    return math.ceil(units * each)


def _tried(
    needed: Mapping[RentedRows, int], first: int
) -> Iterator[tuple[int, tuple[RentedRows, ...]]]:
    """A few of the weights, the largest first and the smallest last, with what each answers."""
    ordered = sorted({first, *needed.values()}, reverse=True)
    for place in np.linspace(0, len(ordered) - 1, min(len(ordered), N_WEIGHTS_TRIED)):
        units = ordered[int(place)]
        yield units, tuple(rows for rows in needed if needed[rows] <= units)


def largest_within(worth: Fraction, added: Callable[[int], Fraction], units_max: int) -> int:
    """The largest of the units up to some that add at most so much; 0 if none do.

    A precision has more units than `bisect` can count.

    >>> largest_within(Fraction(2), lambda units: Fraction(units, 2**70), 2**80) == 2**71
    True
    """
    within, beyond = 0, units_max + 1
    while beyond - within > 1:
        middle = (within + beyond) // 2
        if added(middle) <= worth:
            within = middle
        else:
            beyond = middle
    return within
