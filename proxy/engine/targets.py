"""Brings the parts of one table to their targets: estimate, buy what is missing, estimate again.

A linear answer's target is met by one purchase. A target of a formula, and a target that is a
fraction of the answer, depend on the answers: after each round the targets of the linear parts are
narrowed by as much as the answers require, until all targets are met. Those answers are public by
then: what is bought next is decided from noisy values that were paid for, never from the data. An
interval whose stopping depended on noise gets a higher confidence for that
(`planner.optional_stopping`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from accountant.ledger.limits import Payer
from cube.pace import checkpoint
from cube.refusals import InvalidTarget, NotCovered, Refused, TargetNotReached, TooSlow
from cube.shortfall import FreeWidth
from inference.posterior import Posterior, RowEstimate, widest
from planner.workload import Part, Wanted
from proxy.api.requests import SOURCE_HISTORY, SOURCE_MEASURED, SOURCE_PUBLIC
from proxy.engine.alternatives import advised
from proxy.engine.disclosure import shown_parts, shown_refusal
from proxy.engine.postprocessing import OuterSql
from proxy.engine.results import AnsweredAggregate, AnsweredItem, AnsweredPart
from proxy.monitoring.events import Stage
from proxy.tables.empty_history import EmptyHistory
from proxy.tables.in_flight import ANSWER_SECONDS
from proxy.tables.private_table import ServedTable

N_ROUNDS_MAX: Final = 16  # each brings a target much closer
OVERSHOOT: Final = 0.9  # a formula's width decreases about as its parts' do
SHARE_MIN: Final = 1 / 8  # of the width so far, in one round: refinement costs only the difference
SHARE_LEAST: Final = (
    2.0**-60
)  # for an unbounded interval: no price is high enough, and it is refused
FORESEEN_SLACK: Final = 2  # how far the price may rise above the first forecast


@dataclass(slots=True)
class _Asked:
    """One block of one aggregate: its target, and what that has cost so far."""

    part: int
    aggregate: int
    wanted: Wanted
    epsilon: Fraction = Fraction(0)
    was_known: bool = True


def asked_of(parts: Sequence[Part], cap: Fraction | None) -> list[_Asked]:
    """Every block that the parts need."""
    return [
        _Asked(place, number, Wanted(block, replace(aggregate.target, epsilon_cap=cap)))
        for place, part in enumerate(parts)
        for number, aggregate in enumerate(part.aggregates)
        for block in aggregate.blocks
    ]


def smallest_cap(parts: Sequence[Part]) -> Fraction | None:
    """The most that the parts of one table may cost together."""
    caps = [part.epsilon_cap for part in parts if part.epsilon_cap is not None]
    return min(caps, default=None)


def settle(  # noqa: PLR0913 - the request, the payer, and what they may see
    table: ServedTable,
    parts: Sequence[Part],
    *,
    payer: Payer,
    outer: OuterSql,
    elsewhere: Fraction = Fraction(0),
    empty_history: EmptyHistory | None = None,
) -> list[AnsweredPart]:
    """The parts, answered to their targets. May charge.

    What the statement has spent on other tables, `elsewhere`, counts towards its cap. With
    `empty_history`, everything that is decided for the caller and shown to them follows from what
    the statement would cost on an empty history.

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap
        Before anything is charged; with alternatives that would work.
    LedgerUnavailable, SourceUnavailable
        What was charged is kept, and completed at the next request.
    TargetNotReached
        If a target that depends on the answers turns out to cost more than is left.
    """
    cap = _cap(table, parts, payer, elsewhere)
    asked = asked_of(parts, cap)
    spent = Fraction(0)
    foreseen: Fraction | None = None
    answered: list[AnsweredPart] = []
    shown: Sequence[AnsweredPart] = []
    for _ in range(N_ROUNDS_MAX):
        left = None if cap is None else cap - spent
        try:
            _check_time(answered)
            if empty_history is None:
                rows, epsilon = _bought(table, asked, payer, left)
                spent += epsilon
            else:
                _checked_price(empty_history, [one.wanted for one in asked], payer, cap)
                rows, _ = _bought(table, asked, payer, cap, is_binding=False)
            with table.watcher.stage(Stage.OUTER):
                answered = _answered(table, parts, asked, rows, outer)
                shown = answered if empty_history is None else shown_parts(empty_history, answered)
                shares = _shares_wanted(asked, shown)
            if not shares:
                return answered
            left = None if cap is None else cap - spent
            needed = spent + _price(empty_history or table, asked, shares, payer, left)
        except (InvalidTarget, TooSlow) as refusal:
            if not answered:
                raise
            raise _not_reached(shown, refusal) from None
        except NotCovered as refusal:
            if answered and empty_history is None:
                raise _not_reached(shown, refusal) from None
            said = _said(refusal, table, empty_history, [one.wanted for one in asked], payer, left)
            raise _not_reached(shown, said) if answered else said from None
        foreseen = needed if foreseen is None else foreseen
        if needed > FORESEEN_SLACK * foreseen and not _may_cost_more(parts):
            break  # an answer that does not narrow as its parts do, such as a ratio to zero
        for place, share in shares.items():
            _narrow(asked[place], max(share, SHARE_MIN))
    raise _not_reached(shown, None)


def _check_time(answered: Sequence[AnsweredPart]) -> None:
    """Refuse to begin a round that could not be answered in time; the first is still free."""
    if answered:
        checkpoint(ANSWER_SECONDS)


def _may_cost_more(parts: Sequence[Part]) -> bool:
    """Whether a price may rise as an answer becomes known: relative targets of linear answers."""
    return any(
        answer.relative is not None and answer.formula is None
        for part in parts
        for answer in part.answers
    )


def rehearse(
    table: ServedTable,
    parts: Sequence[Part],
    payer: Payer,
    elsewhere: Fraction,
    empty_history: EmptyHistory | None = None,
) -> Fraction:
    """Refuse what `settle` would refuse at once; the price. Charges nothing.

    For a statement on several tables, so that none is charged when another refuses.
    """
    cap = _cap(table, parts, payer, elsewhere)
    wanted = [one.wanted for one in asked_of(parts, cap)]
    try:
        price = None if empty_history is None else _checked_price(empty_history, wanted, payer, cap)
        own = _checked_price(table, wanted, payer, cap if price is None else None)
    except NotCovered as refusal:
        raise _said(refusal, table, empty_history, wanted, payer, cap) from None
    return own if price is None else price


def _said(  # noqa: PLR0913, PLR0917 - everything that a refusal may mention
    refusal: NotCovered,
    table: ServedTable,
    empty_history: EmptyHistory | None,
    wanted: Sequence[Wanted],
    payer: Payer,
    cap: Fraction | None,
) -> NotCovered:
    """A refusal for lack of budget, with the alternatives that the caller may see."""
    if empty_history is None:
        return advised(refusal, table.snapshot(), wanted, payer, cap)
    return shown_refusal(refusal, empty_history, wanted, payer, cap)


def _cap(
    table: ServedTable, parts: Sequence[Part], payer: Payer, elsewhere: Fraction
) -> Fraction | None:
    """The most that a statement may cost on a table, by its own cap and by per-query limits."""
    own = smallest_cap(parts)
    left = None if own is None else max(Fraction(0), own - elsewhere)
    of_payer = [allowance.limit.per_query for allowance in table.gate.allowances(payer)]
    caps = [cap for cap in (left, *of_payer) if cap is not None]
    return min(caps, default=None)


def _bought(
    table: ServedTable,
    asked: Sequence[_Asked],
    payer: Payer,
    cap: Fraction | None,
    *,
    is_binding: bool = True,
) -> tuple[list[Sequence[RowEstimate]], Fraction]:
    """The estimates of every block once they meet their targets, and what that cost now.

    A cap that is not binding has already been compared with another price, and is not checked
    again.
    """
    wanted = [_capped(one.wanted, cap) for one in asked]
    acquired = table.acquire(wanted, payer, cap if is_binding else None)
    for one, epsilon, was_known in zip(asked, acquired.epsilons, acquired.was_known, strict=True):
        one.epsilon += epsilon
        one.was_known = one.was_known and was_known
    return list(acquired.known), acquired.epsilon


def _capped(wanted: Wanted, cap: Fraction | None) -> Wanted:
    return replace(wanted, target=replace(wanted.target, epsilon_cap=cap))


def _price(
    table: ServedTable | EmptyHistory,
    asked: Sequence[_Asked],
    shares: Mapping[int, float],
    payer: Payer,
    cap: Fraction | None,
) -> Fraction:
    """The price of all targets at once, if widths decrease as those of their parts.

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap, InvalidTarget
    """
    wanted = []
    for place, one in enumerate(asked):
        target = one.wanted.target
        half_width = target.half_width * shares.get(place, 1.0)
        wanted.append(
            _capped(replace(one.wanted, target=replace(target, half_width=half_width)), cap)
        )
    return _checked_price(table, wanted, payer, cap)


def _checked_price(
    table: ServedTable | EmptyHistory, wanted: Sequence[Wanted], payer: Payer, cap: Fraction | None
) -> Fraction:
    snapshot = table.snapshot()
    plan = snapshot.plan(wanted, snapshot.estimates(wanted))
    snapshot.check(plan.planned, payer, epsilon_cap=cap)
    return snapshot.price(plan.planned).epsilon


def _answered(
    table: ServedTable,
    parts: Sequence[Part],
    asked: Sequence[_Asked],
    rows: Sequence[Sequence[RowEstimate]],
    outer: OuterSql,
) -> list[AnsweredPart]:
    answered = []
    for place, part in enumerate(parts):
        aggregates = []
        for number, aggregate in enumerate(part.aggregates):
            own = [
                (one, found)
                for one, found in zip(asked, rows, strict=True)
                if (one.part, one.aggregate) == (place, number)
            ]
            source = SOURCE_HISTORY if all(one.was_known for one, _ in own) else SOURCE_MEASURED
            aggregates.append(
                AnsweredAggregate(
                    aggregate=aggregate,
                    posteriors=_all_known([row for _, found in own for row in found]),
                    source=SOURCE_PUBLIC if aggregate.is_constant else source,
                    epsilon_spent=sum((one.epsilon for one, _ in own), Fraction(0)),
                    asked=tuple(one.wanted for one, _ in own),
                )
            )
        answered.append(AnsweredPart(part, tuple(aggregates), table.history, outer))
    return answered


def _all_known(rows: Sequence[RowEstimate]) -> tuple[Posterior, ...]:
    """The posteriors of an answered aggregate; after a purchase none is missing."""
    posteriors = tuple(row for row in rows if isinstance(row, Posterior))
    if len(posteriors) != len(rows):
        raise RuntimeError("a measured query is not estimable")
    return posteriors


def _shares_wanted(asked: Sequence[_Asked], answered: Sequence[AnsweredPart]) -> dict[int, float]:
    """For each block of an answer above its target, the share of its width to ask for next.

    The share refers to the block's current target, or to its half-width where that is smaller.
    """
    shares: dict[int, float] = {}
    for number, part in enumerate(answered):
        for item in part.answers:
            share = _share_wanted(item, part.part.confidence)
            if share >= 1:
                continue
            for place, one in enumerate(asked):
                if one.part == number and one.aggregate in item.answer.uses:
                    posteriors = part.aggregates[one.aggregate].posteriors
                    known = widest(posteriors, one.wanted.target.confidence)
                    half_width = one.wanted.target.half_width
                    own = share * min(known, half_width) / half_width
                    if own > 0:  # what is known exactly cannot be narrowed
                        shares[place] = min(shares.get(place, 1.0), own)
    return shares


def _narrow(one: _Asked, share: float) -> None:
    target = one.wanted.target
    narrower = replace(target, half_width=target.half_width * share)
    one.wanted = replace(one.wanted, target=narrower)


def _share_wanted(item: AnsweredItem, confidence: float) -> float:
    """The share of its half-width that an answer should have; 1 or more if it is narrow enough.

    A row in which a formula has no value has no target.
    """
    answer = item.answer
    if answer.relative is None and answer.half_width is None:
        return 1.0
    widths = np.where(np.isnan(item.values), 0.0, item.half_widths(confidence))
    if answer.relative is None:
        enough = wanted = np.full(widths.shape, answer.half_width)
    else:
        size = np.abs(np.nan_to_num(item.values))
        enough = np.maximum(answer.relative * (size - widths), answer.width_floor)
        # In the end, the width w with w = relative * (size - w).
        in_the_end = answer.relative / (1 + answer.relative) * size
        wanted = np.maximum(in_the_end, answer.width_floor)
    is_wide = widths > enough
    if not is_wide.any():
        return 1.0
    share = float((wanted[is_wide] / widths[is_wide]).min())
    return OVERSHOOT * min(max(share, SHARE_LEAST), 1.0)


def _not_reached(answered: Sequence[AnsweredPart], refusal: Refused | None) -> TargetNotReached:
    """The refusal that the target was not reached, with the half-widths that are free now."""
    free = [
        FreeWidth(item.answer.name, float(item.half_widths(part.part.confidence).max()))
        for part in answered
        for item in part.answers
        if item.answer.relative is not None or item.answer.half_width is not None
    ]
    spent = sum((part.epsilon_spent for part in answered), Fraction(0))
    return TargetNotReached(epsilon_spent=spent, free=free, because=refusal)
