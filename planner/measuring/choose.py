"""What to measure when the history does not suffice: weigh and price every candidate, choose one.

Under `auto` the choice is between renting and buying. The rent is the price of the row that is
asked for, at the smallest weight that meets the target together with the history. Every cell of a
scope is bought as soon as everything spent on the scope, this purchase included, is at most twice
what renting alone would have cost (`ski_rental.py`).

Weights, prices and choices follow from targets, the history's weights and the public schema alone,
never from noisy values.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.measurement import (
    UNITS_PER_EPSILON,
    WEIGHT_UNITS_MAX,
    PlannedMeasurement,
    Weight,
)
from cube.pace import checkpoint
from cube.query import Scope
from cube.refusals import InvalidTarget, TooLarge
from cube.target import AccuracyTarget
from inference.posterior import RowEstimate, widest
from planner.measuring.candidates import N_CUBOIDS_MAX, Candidate, query_itself, wide_candidates
from planner.measuring.forecast import Forecast
from planner.measuring.offers import Offer, PricingContext, PurchasePlan
from planner.measuring.strategy import Strategy
from planner.measuring.weights import affordable_units, smallest_weight, weight_for
from planner.workload import Wanted

N_LOOKS_MAX = 3  # at a whole plan; a second one is rarely needed


def meets(rows: Sequence[RowEstimate], target: AccuracyTarget) -> bool:
    """Whether every row is known as accurately as the target asks."""
    return widest(rows, target.confidence) <= target.half_width


def plan_purchases(
    wanted: Sequence[Wanted],
    estimates: Sequence[Sequence[RowEstimate]],
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
    """
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
    """The offers for one aggregate, on top of what is already planned for the request.

    Only measurements of the history are raised. The forecast `beside` also holds what is planned.
    """

    def __init__(
        self,
        context: PricingContext,
        beside: Forecast,
        wanted: Wanted,
        base: tuple[PlannedMeasurement, ...],
    ) -> None:
        self._context = context
        self._beside = beside
        self._block = wanted.block
        self._target = wanted.target
        self._only_rents = wanted.is_searched
        self._base = base
        self._base_epsilon = context.price(base).epsilon if base else Fraction(0)

    def offers(self, *, every_offer: bool) -> tuple[Offer, ...]:
        """Every offer that was priced; the chosen one is marked."""
        strategy = self._context.strategy
        if strategy is Strategy.PAPER:
            offers = [self._as_the_paper()]
            chosen = offers[0]
        elif strategy is Strategy.AUTO:
            offers = self._narrow()
            narrow = chosen = min(offers, key=lambda offer: offer.epsilon)
            if every_offer or (narrow.epsilon and not self._only_rents):
                wide = self._wide(self._scopes(), narrow.epsilon, every_offer=every_offer)
                offers += wide
                chosen = narrow if self._only_rents else _best(narrow, wide)
        else:
            offers = [] if strategy is Strategy.QUERY else self._wide([self._block.scope])
            offers = offers or self._narrow()
            chosen = min(offers, key=lambda offer: offer.epsilon)
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
        planned = PlannedMeasurement(row, weight_for(self._target, multiplier))
        return self._offer(query_itself(self._block), (planned,))

    def _narrow(self) -> list[Offer]:
        """The query itself and, where there is one, the earlier measurement to top up."""
        candidate = query_itself(self._block)
        _, multiplier = self._block.primitive
        fresh = weight_for(self._target, multiplier)
        offers = [self._offer(candidate, self._weighed(candidate, fresh.units))]
        place = self._context.forecast.estimator.noisiest(self._block)
        if place is not None:
            earlier = self._context.forecast.estimator.history[place]
            if fingerprint(earlier.block) != fingerprint(candidate.blocks[0]):
                top_up = Candidate("top_up", (earlier.block,), earlier.block.scope)
                with suppress(InvalidTarget):  # most of the noise is in other rows
                    offers.append(self._offer(top_up, self._weighed(top_up, fresh.units)))
        return offers

    def _scopes(self) -> list[Scope]:
        """The query's own scope, and larger ones on which rent was paid."""
        own = self._block.scope
        rental = self._context.ski_rental
        larger = {tuple(sorted({*own, *scope})) for scope in rental.scopes} - {own}
        by_rent = sorted(larger, key=lambda scope: (-rental.on(scope), len(scope), scope))
        return [own, *by_rent[:N_CUBOIDS_MAX]]

    def _wide(
        self, scopes: list[Scope], rent_now: Fraction | None = None, *, every_offer: bool = True
    ) -> list[Offer]:
        """Offers of every cell of a scope; without `every_offer`, only those the rent may cover."""
        offers = []
        for candidate in wide_candidates(self._context.strategy, scopes, self._context.schema):
            if not every_offer and rent_now is not None:
                budget = _worth(rent_now, self._rent(candidate.scope))
                if not self._suffices(candidate, int(budget * UNITS_PER_EPSILON)):
                    continue
            _, multiplier = self._block.primitive
            start = weight_for(self._target, multiplier).units
            with suppress(InvalidTarget):
                offers.append(self._offer(candidate, self._weighed(candidate, start)))
        return offers

    def _suffices(self, candidate: Candidate, units: int) -> bool:
        """Whether a candidate bought for `units` of table cost would meet the target."""
        common = min(affordable_units(self._held(candidate), units), WEIGHT_UNITS_MAX)
        if common < 1:
            return False
        plan = self._raised(candidate, Weight(common))
        return self._half_width(plan) <= self._target.half_width

    def _weighed(self, candidate: Candidate, start: int) -> tuple[PlannedMeasurement, ...]:
        """The candidate at the smallest weight that meets the target."""
        low = min(self._held(candidate))
        lightest = _merged(self._base, self._raised(candidate, Weight(low + 1)))
        rising = self._beside.rising(self._block, self._target, lightest)
        weight = smallest_weight(
            lambda weight: rising.half_width(_merged(self._base, self._raised(candidate, weight))),
            self._target,
            low,
            max(start, low + 1),
            rising.at_lightest,
        )
        return self._raised(candidate, weight)

    def _half_width(self, plan: Sequence[PlannedMeasurement]) -> float:
        together = _merged(self._base, plan)
        return self._beside.half_width(self._block, self._target, together)

    def _held(self, candidate: Candidate) -> list[int]:
        """The weight of each block so far, in units."""
        history = self._context.forecast.estimator.history
        places = [history.most_precise(block) for block in candidate.blocks]
        return [0 if place is None else history[place].weight.units for place in places]

    def _raised(self, candidate: Candidate, weight: Weight) -> tuple[PlannedMeasurement, ...]:
        """The measurements that raise every block below `weight` to that weight."""
        history = self._context.forecast.estimator.history
        plan = []
        for block in candidate.blocks:
            place = history.most_precise(block)
            if place is None:
                plan.append(PlannedMeasurement(block, weight))
            elif history[place].weight < weight:
                plan.append(self._refined(block, weight, place))
        return tuple(plan)

    def _refined(self, block: QueryBlock, weight: Weight, place: int) -> PlannedMeasurement:
        raised = PlannedMeasurement(block, weight, place)
        try:
            self._context.forecast.noise_for(raised)
        except TooLarge:  # its lattice is too coarse for a weight this large
            return PlannedMeasurement(block, weight)
        return raised

    def _rent(self, scope: Scope) -> Fraction:
        return Fraction(self._context.ski_rental.on(scope), UNITS_PER_EPSILON)

    def _offer(self, candidate: Candidate, plan: Sequence[PlannedMeasurement]) -> Offer:
        together = _merged(self._base, plan)
        epsilon = self._context.price(together).epsilon - self._base_epsilon
        return Offer(
            candidate.name, candidate.scope, together, epsilon, self._rent(candidate.scope)
        )


def _best(narrow: Offer, wide: Sequence[Offer]) -> Offer:
    """The wide offer with the most rent behind it, if the rent covers any; else the narrow one.

    An offer that costs nothing now is never passed over for one that costs something.
    """
    if not narrow.epsilon:
        return narrow
    paid_for = [offer for offer in wide if offer.epsilon <= _worth(narrow.epsilon, offer.rent)]
    return min(paid_for, key=lambda offer: (-offer.rent, offer.epsilon), default=narrow)


def _worth(rent_now: Fraction, rent_before: Fraction) -> Fraction:
    """What a wide purchase may cost, so that at most twice the rent is spent altogether.

    Renting alone would cost the rent paid before plus the rent now. At most twice that may be
    spent, and the rent paid before is spent already.
    """
    return 2 * rent_now + rent_before


def _merged(
    base: Sequence[PlannedMeasurement], plan: Sequence[PlannedMeasurement]
) -> tuple[PlannedMeasurement, ...]:
    """Both plans as one: of two measurements of the same rows, the one of larger weight."""
    merged: dict[str, PlannedMeasurement] = {}
    for planned in (*base, *plan):
        name = fingerprint(planned.block)
        if name not in merged or merged[name].weight < planned.weight:
            merged[name] = planned
    return tuple(merged.values())
