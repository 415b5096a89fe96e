"""What to measure when the history does not suffice: weigh and price every candidate, choose one.

Under `auto` the choice is between renting and buying. The rent is the price of the row that is
asked for, at the smallest weight that meets the target together with the history. Every cell of a
scope, or a hierarchy, is bought at a weight at which it would have answered rows rented there, as
soon as it costs no more than these rows are worth (`savings.py`, `ski_rental.py`).

Weights, prices and choices follow from targets, the history's weights and the public schema alone,
never from noisy values.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from cube.encoding import fingerprint
from cube.measurement import PlannedMeasurement
from cube.pace import checkpoint
from cube.query import Scope
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget
from inference.block_estimates import RowEstimates, widest
from planner.measuring.candidates import (
    N_CUBOIDS_MAX,
    Candidate,
    families,
    query_itself,
    wide_candidates,
)
from planner.measuring.forecast import Forecast
from planner.measuring.intervals import completed, rests
from planner.measuring.noise_kinds import LAPLACE, ONLY_LAPLACE, NoiseKind
from planner.measuring.offers import Offer, PricingContext, PurchasePlan
from planner.measuring.savings import Savings
from planner.measuring.ski_rental import rent_at_most
from planner.measuring.strategy import Strategy
from planner.measuring.weighing import Weighing
from planner.measuring.what_is_new import WhatIsNew
from planner.workload import Wanted

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
        What the history says of the rows of each block.
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
    """The offers for one aggregate, on top of what is already planned for the request."""

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
        offers += self._offered(candidate)
        place = self._context.forecast.estimator.noisiest(self._block)
        if place is not None:
            earlier = self._context.forecast.estimator.history[place]
            if fingerprint(earlier.block) != fingerprint(candidate.blocks[0]):
                top_up = Candidate("top_up", (earlier.block,), earlier.block.scope)
                with suppress(InvalidTarget):  # most of the noise is in other rows
                    offers += self._offered(top_up)
        for candidate in rests(self._row, self._context):
            with suppress(InvalidTarget):  # the intervals are too noisy
                offers += self._offered(candidate)
        return offers

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

    def _offered(self, candidate: Candidate) -> list[Offer]:
        """A candidate with each kind of noise, at the smallest weight that meets the target."""
        offers, refusals = [], []
        for kind in self._context.offered.kinds:
            try:
                offers.append(self._offer(candidate, self._weighing.smallest(candidate, kind)))
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
