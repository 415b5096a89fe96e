"""Chooses what to measure if the history does not suffice, also on a table that grows.

What is new: on a table that grows, the part of a query that the history does not say yet.

A dashboard asks for a total every day. The table cut at today's horizon has one day more, and what
is known of the days before is as good as it was: so the new day is measured alone, and added. A
total is then a sum of stretches, each with a noise of its own. N stretches, each at a weight of
``w(N)``, are as precise as one measurement at the weight ``w(1)``, with ``w(N)`` about ``sqrt(N)
w(1)``. A cell is in one stretch, and costs about ``sqrt(N)`` plain answers, where measuring
everything anew every day costs N of them.

    stretches   every stretch raised to ``w(N)``, with N the next power of two (Laplace noise)
    new         of groups by time, the rows that are not known well enough

Headroom. With N a power of two, most days buy the newest stretch alone. Its cells were not paid for
before, so they cost nothing until they cost as much as the others. On the day after N is reached,
all are raised to ``w(2 N)``, a price that is divided by the days that it serves: ``N`` of them, as
many as were seen before. This is ski rental once more: what was asked for N days is taken
to be asked for N more.

Proved, for one shape that is asked every day at one target, where ``w(N) <= sqrt(N) w(1)`` and
nothing else is bought: after T days at most ``sqrt(2 T) w(1)`` is paid, since N is below ``2 T``.
Who knew T would pay ``w(T)`` with stretches, so headroom costs a factor of ``sqrt(2)`` at most.
And whatever else is bought: a raise is chosen if its price for each day that it serves is at most
that of buying anew today. So stretches never cost more than as many plain answers at the prices of
the days on which they were chosen; at most the last raise was in vain, and that one serves no more
days than were asked before it, so that at most twice the rent is paid, as with skis.

The chain of stretches is the reader's, and so is the noise of the sum: half-widths are exact. What
is measured depends on weights and targets alone. Gaussian noise gains nothing: its cost is linear
in the precision, and N stretches at N times the precision cost what N answers cost.

Under `auto` the choice is between renting and buying. The rent is the price of the row that is
asked for, at the smallest weight that meets the target together with the history. Every cell of a
scope, or a hierarchy, is bought at a weight at which it would have answered rows rented there, as
soon as it costs no more than these rows are worth (`savings.py`, `ski_rental.py`).

Weights, prices and choices follow from targets, the history's weights and the public schema alone,
never from noisy values.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.pace import checkpoint
from cube.query import QueryBlock, Scope
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget
from inference import RowEstimates, widest
from inference.blue import Stretch, StretchesReader, on_stretch
from inference.noise_law import law_of_noise
from planner.measuring.candidates import (
    N_CUBOIDS_MAX,
    Candidate,
    Strategy,
    families,
    query_itself,
    wide_candidates,
)
from planner.measuring.offers import Offer, PricingContext, PurchasePlan
from planner.measuring.savings import Savings, completed, rests
from planner.measuring.ski_rental import rent_at_most
from planner.measuring.weighing import Forecast, Weighing
from planner.measuring.weights import (
    LAPLACE,
    LATTICE_SHARE,
    ONLY_LAPLACE,
    ROUNDING_MARGIN,
    NoiseKind,
)
from planner.workload import Wanted

N_STRETCHES_MAX = 2**8  # in a sum: a year of days; a longer chain is measured anew


class WhatIsNew:
    """What could be bought of one aggregate beside what is known of it.

    Parameters
    ----------
    weighing : Weighing
    known : StretchesReader
        What is known along the axis of time.
    """

    def __init__(self, weighing: Weighing, known: StretchesReader) -> None:
        self._weighing = weighing
        self._known = known
        self._row = weighing.block.primitive[0]

    @cached_property
    def rows(self) -> Candidate | None:
        """Of groups by time, those that are not known well enough; None if these are all."""
        partition, target = self._row.partition, self._weighing.target
        if partition is None or self._known.axis not in partition.axes:
            return None
        estimator = self._weighing.now.estimator
        found = estimator.estimate(self._weighing.block, target.confidence, target.half_width)
        is_missing = np.array(
            [widest([one], target.confidence) > target.half_width for one in found]
        )
        if is_missing.all() or not is_missing.any():
            return None
        numbers = np.where(is_missing, np.cumsum(is_missing) - 1, -1)
        left = partition.renumbered(np.append(numbers, -1))
        block = QueryBlock(self._row.query, left).primitive[0]
        return Candidate("new", (block,), self._row.scope)

    @cached_property
    def candidate(self) -> Candidate:
        """The stretches that add up to the rows, the newest last; none where nothing is known."""
        asked = self._row if self.rows is None else self.rows.blocks[0]
        return Candidate("stretches", tuple(self._stretches(asked)), asked.scope)

    def plans(self) -> Iterator[tuple[tuple[PlannedMeasurement, ...], int]]:
        """Stretches at the weight of the next power of two of them, and of as many as there are.

        Each with the number of days that it serves.
        """
        n_now = len(self.candidate.blocks)
        if n_now < 2 or n_now > N_STRETCHES_MAX:  # noqa: PLR2004 - one is the query itself
            return
        n_then = 1 << (n_now - 1).bit_length()
        for n_stretches in sorted({n_then, n_now}, reverse=True):
            units = self._units(n_stretches)
            if units is not None:
                plan = self._weighing.raised(self.candidate, LAPLACE, units)
                yield plan, n_stretches - n_now + 1

    def _units(self, n_stretches: int) -> int | None:
        """The weight at which so many stretches meet the target; None if it is too large."""
        _, multiplier = self._weighing.block.primitive
        target = self._weighing.target
        # What is raised keeps its lattice, of a weight that was less by the root of their number.
        on_lattice = n_stretches * math.sqrt(n_stretches) * LATTICE_SHARE
        nats = _quantile(n_stretches, target.confidence) + on_lattice
        rate = nats * (1 + ROUNDING_MARGIN) * abs(float(multiplier)) / target.half_width
        is_possible = rate * UNITS_PER_EPSILON < WEIGHT_UNITS_MAX
        return Weight.at_least(rate).units if is_possible else None

    def _stretches(self, asked: QueryBlock) -> list[QueryBlock]:
        """The known stretches, and the rest of a block's one stretch; empty if nothing is known."""
        whole = self._one_stretch(asked)
        chain = () if whole is None else self._known.known_part(whole)
        if whole is None or not chain:
            return []
        axis, size = self._known.axis, self._known.size
        blocks = []
        for link in chain:
            block, stretch = link.measured.measurement.block, link.measured.stretch
            if any(
                one.start < whole.start or one.end > whole.end
                for one in self._known.stretches_of(block)
            ):  # it is about other days, too, which a raise would pay for
                block = on_stretch(asked, axis, size, stretch.start, stretch.end)
            blocks.append(block)
        end = max(link.measured.stretch.end for link in chain)
        if end < whole.end:
            blocks.append(on_stretch(asked, axis, size, end, whole.end))
        return blocks

    def _one_stretch(self, asked: QueryBlock) -> Stretch | None:
        """The stretch that all rows are about, if there is one."""
        stretches = self._known.stretches_of(asked)
        is_one = len(stretches) == 1 and stretches[0].rows.size == asked.n_rows
        return stretches[0] if is_one else None


@lru_cache(maxsize=N_STRETCHES_MAX)
def _quantile(n_stretches: int, confidence: float) -> float:
    """The half-width of a sum of so many Laplace variables of scale 1."""
    return law_of_noise(np.ones(n_stretches)).half_width(confidence)


N_LOOKS_MAX = 3  # at a whole plan; a second one is rarely needed


def meets(rows: RowEstimates, target: AccuracyTarget) -> bool:
    """Whether every row is known as accurately as the target asks."""
    return widest(rows, target.confidence) <= target.half_width


def plan_purchases(
    wanted: Sequence[Wanted],
    estimates: Sequence[RowEstimates],
    context: PricingContext,
    *,
    every_offer: bool = False,
) -> PurchasePlan:
    """Choose the purchases that bring every block to its target, one block after the other.

    Parameters
    ----------
    wanted : sequence of Wanted
    estimates : sequence of (sequence of Posterior or NotEstimable)
        For each block, the estimates of its rows from the history.
    context : PricingContext
    every_offer : bool
        Also price the offers that cannot be chosen, for EXPLAIN. The choice is the same.

    Raises
    ------
    InvalidTarget
        If no weight would be enough for a block.

    Notes
    -----
    A table's first Gaussian noise pays a constant: it may fit for one block, and leave too little
    for the next. Then all is planned with Laplace noise alone, and bought so if that is less.
    """
    found = _planned(wanted, estimates, context, every_offer=every_offer)
    if not context.offered.opening or not any(one.is_gaussian for one in found.planned):
        return found
    caps = (one.target.epsilon_cap for one in wanted if one.target.epsilon_cap is not None)
    epsilon = context.price(found.planned).epsilon
    if epsilon > min((context.left(), *caps)):
        with suppress(InvalidTarget):  # only Gaussian noise can be as small as it has to be
            only_laplace = replace(context, offered=ONLY_LAPLACE)
            other = _planned(wanted, estimates, only_laplace, every_offer=every_offer)
            if context.price(other.planned).epsilon < epsilon:
                return other
    return found


def _planned(
    wanted: Sequence[Wanted],
    estimates: Sequence[RowEstimates],
    context: PricingContext,
    *,
    every_offer: bool,
) -> PurchasePlan:
    """A plan with the kinds of noise that are offered."""
    planned: tuple[PlannedMeasurement, ...] = ()
    offers: list[tuple[Offer, ...]] = []
    beside = context.forecast
    for one, known in zip(wanted, estimates, strict=True):
        checkpoint()
        block, target = one.block, one.target
        if meets(known, target) or (
            planned and beside.half_width(block, target) <= target.half_width
        ):
            offers.append(())
            continue
        chooser = _Chooser(context, beside, one, planned)
        found = chooser.offers(every_offer=every_offer)
        offers.append(found)
        planned = _chosen(found).plan
        beside = beside.with_planned(planned)
    is_known = [meets(known, one.target) for one, known in zip(wanted, estimates, strict=True)]
    unknown = [place for place, known in enumerate(is_known) if not known]
    return PurchasePlan(*_looked_at_again(wanted, unknown, planned, offers, context))


def _looked_at_again(
    wanted: Sequence[Wanted],
    unknown: Sequence[int],
    planned: tuple[PlannedMeasurement, ...],
    offers: Sequence[tuple[Offer, ...]],
    context: PricingContext,
) -> tuple[tuple[PlannedMeasurement, ...], tuple[tuple[Offer, ...], ...]]:
    """The plan, topped up for `unknown` blocks that the whole plan serves worse than a part of it.

    What is bought for one block may change which rows another block is estimated from.
    """
    offers = list(offers)
    for _ in range(N_LOOKS_MAX if len(unknown) > 1 else 0):
        forecast = context.forecast.after(planned)
        short = [
            place
            for place in unknown
            if forecast.half_width(wanted[place].block, wanted[place].target)
            > wanted[place].target.half_width
        ]
        if not short:
            break
        for place in short:
            checkpoint()
            one = wanted[place]
            beside = context.forecast.with_planned(planned)
            chooser = _Chooser(context, beside, one, planned)
            found = chooser.offers(every_offer=False)
            offers[place] = (*offers[place], _chosen(found))
            planned = _chosen(found).plan
    return planned, tuple(offers)


def _chosen(offers: Sequence[Offer]) -> Offer:
    return next(offer for offer in offers if offer.is_chosen)


class _Chooser:
    """The offers for one aggregate, given the measurements already planned for the request."""

    def __init__(
        self,
        context: PricingContext,
        beside: Forecast,
        wanted: Wanted,
        base: tuple[PlannedMeasurement, ...],
    ) -> None:
        self._context = context
        self._block = wanted.block
        self._row = wanted.block.primitive[0]
        self._target = wanted.target
        self._only_rents = wanted.is_searched
        self._weighing = Weighing(
            wanted.block,
            wanted.target,
            context.forecast,
            beside,
            base,
            context.schema.rows_per_unit_max,
            context.holders,
            context.caps,
            1 if context.holders is None else context.schema.of_one_holder.rows_per_unit_max,
        )
        self._base_epsilon = context.price(base).epsilon if base else Fraction(0)
        self._base_is_gaussian = any(one.is_gaussian for one in base)

    def offers(self, *, every_offer: bool) -> tuple[Offer, ...]:
        """Every offer that was priced; the chosen one is marked."""
        strategy = self._context.strategy
        if strategy is Strategy.PAPER:
            offers = [self._as_the_paper()]
            chosen = offers[0]
        elif strategy is Strategy.AUTO:
            offers = self._narrow()
            narrow = chosen = min(offers, key=lambda offer: offer.weighed)
            if every_offer or (narrow.weighed and not self._only_rents):
                wide = self._instead_of_rent(narrow.weighed, every_offer=every_offer)
                offers += wide
                chosen = narrow if self._only_rents else _best(narrow, wide)
        else:
            offers = [] if strategy is Strategy.QUERY else self._wide()
            offers = offers or self._narrow()
            chosen = min(offers, key=lambda offer: offer.weighed)
        if chosen.epsilon > self._limit():
            chosen = min(offers, key=lambda offer: offer.epsilon)
        return tuple(replace(offer, is_chosen=offer is chosen) for offer in offers)

    def _limit(self) -> Fraction:
        """What this aggregate may cost, once everything planned before it is paid for."""
        cap = self._target.epsilon_cap
        left = self._context.left()
        return (left if cap is None else min(left, cap)) - self._base_epsilon

    def _as_the_paper(self) -> Offer:
        row, multiplier = self._block.primitive
        planned = LAPLACE.planned(row, LAPLACE.fresh(self._target, multiplier))
        return self._offer(query_itself(self._block), (planned,))

    def _narrow(self) -> list[Offer]:
        """The query itself and, where there is one, the earlier measurement to top up."""
        offers = self._what_is_new()
        if any(not offer.epsilon for offer in offers):
            return offers  # on most days, and the others take time to weigh
        candidate = query_itself(self._block)
        with suppress(*((InvalidTarget,) if self._weighing.caps else ())):
            offers += self._offered(candidate)
        place = self._context.forecast.estimator.noisiest(self._block)
        if place is not None:
            earlier = self._of_all_holders(self._context.forecast.estimator.history[place].block)
            if fingerprint(earlier) != fingerprint(candidate.blocks[0]):
                top_up = Candidate("top_up", (earlier,), earlier.scope)
                with suppress(InvalidTarget):  # most of the noise is in other rows
                    offers += self._offered(top_up)
        for candidate in rests(self._row, self._context):
            with suppress(InvalidTarget):  # the intervals are too noisy
                offers += self._offered(candidate)
        # What holders cannot spend is planned as if they could: then they refuse it.
        return offers or self._offered(query_itself(self._block), self._weighing.without_caps)

    def _of_all_holders(self, block: QueryBlock) -> QueryBlock:
        """What was measured, as it would be of all holders if it was of one."""
        holders = self._context.holders
        return block if holders is None else holders.at_holder(block)[1]

    def _what_is_new(self) -> list[Offer]:
        """On a table that grows, what the history does not say beside what it says."""
        known = self._weighing.now.estimator.stretches
        if known is None:
            return []
        new, offers = WhatIsNew(self._weighing, known), list[Offer]()
        for plan, n_served in new.plans():
            if self._weighing.half_width(plan) <= self._target.half_width:
                offer = self._offer(new.candidate, plan)
                offers.append(replace(offer, n_served=n_served))
                if not offer.epsilon:
                    return offers
        if new.rows is not None:
            with suppress(InvalidTarget):  # they are too noisy beside the others
                offers += self._offered(new.rows)
        return offers

    def _offered(self, candidate: Candidate, weighing: Weighing | None = None) -> list[Offer]:
        """A candidate with each kind of noise, at the smallest weight that meets the target."""
        offers, refusals = [], []
        weighing = weighing or self._weighing
        for kind in self._context.offered.kinds:
            try:
                offers.append(self._offer(candidate, weighing.smallest(candidate, kind)))
            except InvalidTarget as refusal:
                refusals.append(refusal)
        if not offers:
            raise refusals[0]
        return offers

    def _scopes(self) -> list[Scope]:
        """The query's own scope, and larger ones on which rows are rented."""
        own = self._block.scope
        rental = self._context.ski_rental
        axes = frozenset(own)
        offered = [
            scope
            for scope in rental.scopes
            if axes < frozenset(scope) and families(scope, self._context.schema)
        ]
        rent = {scope: rent_at_most(rental.on(scope)) for scope in offered}
        by_rent = sorted(offered, key=lambda scope: (-rent[scope], len(scope), scope))
        return [own, *by_rent[:N_CUBOIDS_MAX]]

    def _wide(self) -> list[Offer]:
        """What the strategy measures instead of the query, for its own scope."""
        offers = []
        scopes = [self._block.scope]
        for candidate in wide_candidates(self._context.strategy, scopes, self._context.schema):
            found = completed(candidate, self._row, self._context)
            with suppress(InvalidTarget):
                offers += [] if found is None else self._offered(found[0])
        return offers

    def _with_rest(
        self, candidate: Candidate, kind: NoiseKind, units: int
    ) -> tuple[PlannedMeasurement, ...]:
        """Whole scopes at a common weight, with the rest of the row at its smallest beside them."""
        plan = self._weighing.raised(candidate, kind, units)
        found = completed(candidate, self._row, self._context)
        if found is None or found[1] is None:
            return plan
        return (*plan, *self._weighing.with_planned(plan).smallest(found[1], kind))

    def _instead_of_rent(self, rent_now: Fraction, *, every_offer: bool) -> list[Offer]:
        """Offers of whole scopes; without `every_offer`, only those the rent may cover."""
        context = self._context
        wide = wide_candidates(context.strategy, self._scopes(), context.schema)
        savings = Savings(context, self._weighing, rent_now, self._limit())
        found = (
            self._in_hindsight(savings, candidate, kind, every_offer=every_offer)
            for candidate in wide
            for kind in context.offered.kinds
        )
        return [offer for offer in found if offer is not None]

    def _in_hindsight(
        self, savings: Savings, candidate: Candidate, kind: NoiseKind, *, every_offer: bool
    ) -> Offer | None:
        """A wide offer at a weight at which it would have answered what was rented."""
        best = savings.best(candidate, kind, every_offer=every_offer)
        if best is None:
            return None
        try:
            plan = self._with_rest(candidate, kind, best.units)
        except InvalidTarget:  # these are not combined with earlier ones as well as read alone
            return None
        if not plan or self._weighing.half_width(plan) > self._target.half_width:
            return None
        return replace(self._offer(candidate, plan), rent=best.rent, worth=best.worth)

    def _offer(self, candidate: Candidate, plan: Sequence[PlannedMeasurement]) -> Offer:
        together = self._weighing.together(plan)
        epsilon = self._context.price(together).epsilon - self._base_epsilon
        is_gaussian = any(one.is_gaussian for one in plan)
        is_first = is_gaussian and not self._base_is_gaussian
        return Offer(
            candidate.name,
            candidate.scope,
            together,
            epsilon,
            rent=Fraction(0),
            opening=self._context.offered.opening if is_first else Fraction(0),
            is_gaussian=is_gaussian,
        )


def _best(narrow: Offer, wide: Sequence[Offer]) -> Offer:
    """The wide offer that would have saved most, if the rent covers any; else the narrow one.

    An offer that costs nothing now is never passed over for one that costs something.
    """
    if not narrow.weighed:
        return narrow
    left = [offer.worth - offer.weighed for offer in wide]
    most = max(left, default=Fraction(-1))
    return wide[left.index(most)] if most >= 0 else narrow
