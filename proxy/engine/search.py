"""The beginning of a search, and what to ask instead where it is not covered.

The beginning of a search: what the history knows of answers whose targets depend on them.

What it knows well enough is not bought again, and what it knows at all decides how accurately to
ask first. Where it knows nothing of an answer, a count of the same groups bounds it, and the
largest number of records does otherwise. Nothing is charged here.

What to ask instead: the way out that comes with a refusal for want of budget.

Two things are said about the answers that were asked for: how well history knows them now, for
nothing, and what accuracy what is left would pay for. Both follow from weights, targets and
budgets, never from data. Where either takes long to find, it goes unsaid.
"""

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.ledger import Payer
from cube.pace import within
from cube.query import QueryBlock, counting
from cube.refusals import (
    ColumnCost,
    GenerationOver,
    InvalidTarget,
    LimitReached,
    NotCovered,
    OfferedWidth,
    Shortfall,
    TooLarge,
    TooSlow,
)
from cube.schema import Schema
from inference import Places, Posterior, RowEstimates, all_known, widest
from planner.workload import Part, Wanted
from proxy.api import SOURCE_HISTORY, SOURCE_MEASURED, SOURCE_PUBLIC
from proxy.engine.answers import AnsweredAggregate, AnsweredPart, Asked, Step, at_widths, opening
from proxy.outer_sql.postprocessing import OuterSql
from proxy.tables import EmptyHistory, ServedTable, TableSnapshot

Known: TypeAlias = ServedTable | EmptyHistory | TableSnapshot

WIDEST: Final = sys.float_info.max  # any answer at all is as narrow


def opened(
    known: Known, schema: Schema, parts: Sequence[Part], asked: Sequence[Asked], outer: OuterSql
) -> Step:
    """What to ask for first; nothing in particular if no target depends on answers.

    Parameters
    ----------
    known : ServedTable, EmptyHistory or TableSnapshot
        What the caller may know of the table.
    parts : sequence of Part
        All of them on this table.
    asked : sequence of Asked
        Their blocks, with the half-widths that are asked for if nothing is known.
    """
    if not any(part.is_searched for part in parts):
        return Step()
    remembered = _remembered(known, asked)
    if remembered is not None:
        step = _step_from(remembered, known, schema, parts, asked, outer)
        if _is_met_by(remembered, asked, step):
            return step  # asked again, it is answered from the same rows as before
    rows = _estimates(known, [one.wanted for one in asked])
    return _step_from(rows, known, schema, parts, asked, outer)


def _remembered(known: Known, asked: Sequence[Asked]) -> Sequence[RowEstimates] | None:
    """What was last said about every block, however roughly, if nothing was measured since."""
    if not isinstance(known, ServedTable):
        return None
    return known.recalled(at_widths(asked, dict.fromkeys(range(len(asked)), WIDEST), None))


def _is_met_by(rows: Sequence[RowEstimates], asked: Sequence[Asked], step: Step) -> bool:
    """Whether rows are known as well as a step asks."""
    return all(
        widest(found, one.wanted.target.confidence) <= step.likely.get(place, WIDEST)
        for place, (found, one) in enumerate(zip(rows, asked, strict=True))
    )


def _step_from(  # noqa: PLR0913, PLR0917 - as `opened`, and what is known
    rows: Sequence[RowEstimates],
    known: Known,
    schema: Schema,
    parts: Sequence[Part],
    asked: Sequence[Asked],
    outer: OuterSql,
) -> Step:
    most = schema.n_records_max
    largest = [_largest(known, one, found, most) for one, found in zip(asked, rows, strict=True)]
    answered = [
        None
        if isinstance(known, EmptyHistory)
        else _answered_part(number, part, asked, rows, known.noises, outer)
        for number, part in enumerate(parts)
    ]
    return opening(asked, parts, rows, answered, largest)


def answered_parts(
    table: ServedTable | TableSnapshot,
    parts: Sequence[Part],
    asked: Sequence[Asked],
    rows: Sequence[RowEstimates],
    outer: OuterSql,
) -> list[AnsweredPart]:
    """The parts from the estimates of their blocks, after a purchase."""
    found = [
        _answered_part(number, part, asked, rows, table.noises, outer)
        for number, part in enumerate(parts)
    ]
    answered = [part for part in found if part is not None]
    if len(answered) < len(parts):
        raise RuntimeError("a measured query is not estimable")
    return answered


def _answered_part(  # noqa: PLR0913, PLR0917 - a part, and everything that it is made from
    number: int,
    part: Part,
    asked: Sequence[Asked],
    rows: Sequence[RowEstimates],
    history: Places,
    outer: OuterSql,
) -> AnsweredPart | None:
    """A part from the estimates of its blocks; None if some row is not estimable."""
    aggregates = []
    for place, aggregate in enumerate(part.aggregates):
        own = [
            (one, found)
            for one, found in zip(asked, rows, strict=True)
            if (one.part, one.aggregate) == (number, place)
        ]
        posteriors = all_known(found for _, found in own)
        if posteriors is None:
            return None
        source = SOURCE_HISTORY if all(one.was_known for one, _ in own) else SOURCE_MEASURED
        aggregates.append(
            AnsweredAggregate(
                aggregate=aggregate,
                posteriors=posteriors,
                source=SOURCE_PUBLIC if aggregate.is_constant else source,
                epsilon_spent=sum((one.epsilon for one, _ in own), Fraction(0)),
                asked=tuple(one.wanted for one, _ in own),
            )
        )
    return AnsweredPart(part, tuple(aggregates), history, outer)


def _estimates(known: Known, wanted: Sequence[Wanted]) -> Sequence[RowEstimates]:
    return known.look(wanted) if isinstance(known, ServedTable) else known.estimates(wanted)


def _largest(
    known: Known, one: Asked, rows: RowEstimates, n_records_max: int
) -> NDArray[np.float64]:
    """How large the size of each row's answer can be, plausibly or certainly."""
    query = one.wanted.block.query
    n_records = np.full(len(rows), float(n_records_max))
    if not all(isinstance(row, Posterior) for row in rows):
        counts = QueryBlock(counting(), one.wanted.block.partition)
        target = replace(one.wanted.target, half_width=float(n_records_max))
        for number, row in enumerate(_estimates(known, [Wanted(counts, target)])[0]):
            if isinstance(row, Posterior):
                plausible = row.value + row.half_width(target.confidence)
                n_records[number] = min(max(plausible, 1.0), n_records[number])
    sizes = n_records * float(query.bound) + abs(float(query.constant))
    for number, row in enumerate(rows):
        if isinstance(row, Posterior):
            plausible = abs(row.value) + row.half_width(one.wanted.target.confidence)
            sizes[number] = min(sizes[number], plausible)
    return sizes


FACTOR_MAX: Final = 2.0**20  # times the width asked for; a wider answer is of no use
SECONDS_MAX: Final = 0.5  # of a refusal's time: it comes without advice rather than late
N_TRIED_MAX: Final = 3  # factors; each takes as long as planning the request
FIRST_GUESS: Final = 1.001  # times what is lacking: most prices are in inverse proportion
AIMED: Final = 0.97  # the next guess costs this share of the remaining budget
CLOSE: Final = 0.9  # a price above this share of the budget left ends the search
WIDER: Final = 2.0  # times a guess that may not be paid


def advised(
    refusal: NotCovered,
    snapshot: TableSnapshot,
    wanted: Sequence[Wanted],
    payer: Payer,
    cap: Fraction | None,
) -> NotCovered:
    """The refusal, with what is free on a snapshot and what would fit."""
    free = fits = math.inf
    with suppress(TooSlow), within(SECONDS_MAX):
        free = _free_factor(wanted, snapshot.estimates(wanted))
        # What is bought for a single block costs no more than its row if that is all that is left.
        # A payer's limit is only looked at by the gate, and what is bought for one block may be
        # wide, and leave too little for the next.
        is_alone = len(wanted) == 1 and not isinstance(refusal, LimitReached)
        tried = [replace(one, is_searched=True) for one in wanted] if is_alone else wanted
        payable = _Payable(snapshot, tried, payer, cap)
        if not isinstance(refusal, GenerationOver):  # nothing pays for data that was replaced
            fits = fitting_factor(payable.at, refusal.shortfall, min(free, FACTOR_MAX))
    fitting = _offered(fits, wanted) if fits < free else None
    return type(refusal)(replace(refusal.shortfall, free=_offered(free, wanted), fitting=fitting))


@dataclass(frozen=True, slots=True)
class _Payable:
    """What is wanted by whom, and how it is paid for."""

    table: TableSnapshot
    wanted: Sequence[Wanted]
    payer: Payer
    cap: Fraction | None

    def at(self, factor: float) -> float | None:
        """What all of it costs at so many times the widths; None if that may not be spent."""
        wanted = _widened(self.wanted, factor)
        with suppress(NotCovered, InvalidTarget, TooLarge):
            plan = self.table.plan(wanted, self.table.estimates(wanted))
            rows, counts = plan.planned, plan.counts
            self.table.check(rows, self.payer, epsilon_cap=self.cap, counts=counts)
            return float(self.table.price(rows, counts).epsilon)
        return None


def _free_factor(wanted: Sequence[Wanted], known: Sequence[RowEstimates]) -> float:
    """How many times wider than asked for all of it is known; infinite if it is not."""
    factors = (
        widest(rows, one.target.confidence) / one.target.half_width
        for rows, one in zip(known, wanted, strict=True)
    )
    return float(max(factors))


def fitting_factor(
    price_at: Callable[[float], float | None], shortfall: Shortfall, too_wide: float
) -> float:
    """The smallest factor found on the widths asked for that may be paid; infinite if none is.

    Parameters
    ----------
    price_at : callable
        The epsilon at a factor; None where it may not be spent.
    shortfall : Shortfall
        Of the widths asked for.
    too_wide : float
        The largest factor that helps anybody.

    Notes
    -----
    A price falls about as fast as widths grow, or faster, so the first factor tried is what is
    lacking; the next follow from the prices found.
    """
    left = float(shortfall.epsilon_left or 0)
    low, high = _Tried(1.0, float(shortfall.epsilon_needed)), _Tried(too_wide, 0.0)
    guess = FIRST_GUESS * low.epsilon / left if left else too_wide
    factor = guess if guess < too_wide else _between(low, high, AIMED * left)
    fits = math.inf
    for _ in range(N_TRIED_MAX):
        epsilon = price_at(factor)
        if epsilon is not None:
            fits, high = factor, _Tried(factor, epsilon)
            if epsilon >= CLOSE * left:
                break
        elif factor >= too_wide:
            break
        else:
            low = replace(low, factor=factor)
        is_found = math.isfinite(fits)
        factor = _between(low, high, AIMED * left) if is_found else min(too_wide, WIDER * factor)
    return fits


@dataclass(frozen=True, slots=True)
class _Tried:
    """A factor on the widths asked for, and a price about there."""

    factor: float
    epsilon: float


def _between(low: _Tried, high: _Tried, aimed: float) -> float:
    """Where a price is likely, on a line between logarithms; or the middle."""
    share = 0.5
    if low.epsilon > aimed > high.epsilon > 0:
        share = math.log(low.epsilon / aimed) / math.log(low.epsilon / high.epsilon)
    return low.factor * math.pow(high.factor / low.factor, min(max(share, 0.1), 0.95))


def _widened(wanted: Sequence[Wanted], factor: float) -> list[Wanted]:
    return [
        replace(one, target=replace(one.target, half_width=one.target.half_width * factor))
        for one in wanted
    ]


def _offered(factor: float, wanted: Sequence[Wanted]) -> OfferedWidth | None:
    if not factor <= FACTOR_MAX:
        return None
    return OfferedWidth.widened(factor, {one.target.half_width for one in wanted})


def by_column(  # noqa: PLR0913, PLR0917 - what was asked, and all that it is answered from
    refusal: NotCovered,
    table: ServedTable,
    parts: Sequence[Part],
    asked: Sequence[Asked],
    wanted: Sequence[Wanted],
    outer: OuterSql,
) -> NotCovered:
    """The refusal, with what each answer costs, and with the half-width at which it is free now."""
    costs: dict[tuple[int, int], Fraction] = {}
    free: dict[tuple[int, int], float | None] = {}
    with suppress(TooSlow, TooLarge, InvalidTarget), within(SECONDS_MAX):
        snapshot = table.snapshot()
        rows = snapshot.estimates(wanted)
        plan = snapshot.plan(wanted, rows)
        for one, offers in zip(asked, plan.offers, strict=True):
            asking = one.part, one.aggregate
            chosen = (offer.epsilon for offer in offers if offer.is_chosen)
            costs[asking] = costs.get(asking, Fraction(0)) + sum(chosen, Fraction(0))
        free = free_widths(snapshot, parts, asked, rows, outer)
    if not costs:
        return refusal
    columns: list[ColumnCost] = []
    for place, part in enumerate(parts):
        paid: set[int] = set()
        for number, answer in enumerate(part.answers):
            new = set(answer.uses) - paid
            paid |= new
            epsilon = sum((costs[place, aggregate] for aggregate in new), Fraction(0))
            columns.append(ColumnCost(answer.name, epsilon, free.get((place, number))))
    return type(refusal)(replace(refusal.shortfall, columns=tuple(columns)))


def free_widths(
    table: TableSnapshot,
    parts: Sequence[Part],
    asked: Sequence[Asked],
    rows: Sequence[RowEstimates],
    outer: OuterSql,
) -> dict[tuple[int, int], float | None]:
    """The half-width at which each answer is free now, by the places of its part and in it.

    Empty if nothing is known of some block, or if it takes too long to find.
    """
    with suppress(TooSlow, TooLarge), within(SECONDS_MAX):
        if all_known(rows) is not None:
            return {
                (place, number): _widest_of(one, number)
                for place, one in enumerate(answered_parts(table, parts, asked, rows, outer))
                for number in range(len(one.answers))
            }
    return {}


def _widest_of(part: AnsweredPart, answer: int) -> float | None:
    """The widest half-width of an answer's rows that have a value; None without a bound."""
    item = part.answers[answer]
    widths = item.half_widths(part.part.confidence)[~np.isnan(item.values)]
    found = float(widths.max()) if widths.size else math.inf
    return found if math.isfinite(found) else None
