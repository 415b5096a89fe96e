"""Bounds that fit a statement: how much of each unit counts, found out from noisy sizes of units.

A statement is charged for as many rows as a unit may have, though it is mostly about a few of them.
With OPTIONS(rows_per_unit => 'auto') the sizes of units are measured first (`UnitSizes`), at the
price of one row; the smallest bound is taken by which little is left out, as far as they tell. What
is chosen follows from noisy values that were paid for.

The sizes are measured more and more accurately until they have cost a fair part of the statement's
price. So a bound that does not pay costs little.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from accountant.cost import profile_of
from accountant.ledger import Payer
from cube.measurement import UNITS_PER_EPSILON
from cube.query import QueryBlock
from cube.refusals import InvalidTarget, NotCovered, Refused, TooLarge
from cube.schema import Schema
from cube.statistic import BOUNDED_ROWS, UNIT_SIZES, Rule
from cube.target import AccuracyTarget
from inference import Posterior, RowEstimates
from planner.measuring import weight_for
from planner.workload import Aggregate, Part, Wanted
from proxy.api import Caller
from proxy.engine.answers import HIDDEN, SURE, Sizes, smallest_cap
from proxy.tables import ServedTable, shown_instead

FIRST_PRICE: Final = Fraction(1, 1000)  # of the sizes
PART_OF_PRICE: Final = 4  # the sizes cost this part of the statement's price, up to twice as much
PAYS: Final = 2  # times less, or a bound is not worth telling
ADVICE: Final = (
    "OPTIONS(rows_per_unit => 'auto') may cost far less: it looks first how many rows of each {} "
    "the statement is about."
)
PART_WITHOUT: Final = 16  # the same while no unit is seen, or no bound seems to pay
PART_UNSEEN: Final = 2  # the same of a given price, while no unit is seen
PART_OF_LEFT: Final = 20  # of the budget, where the price cannot be foreseen


@dataclass(frozen=True, slots=True)
class _Fit:
    """What is looked for, for one aggregate: the sizes of units about its first block."""

    aggregate: Aggregate
    schema: Schema

    @property
    def block(self) -> QueryBlock:
        """Where it is not 0, rows are about the aggregate."""
        return self.aggregate.blocks[0]

    @property
    def by_sum(self) -> bool:
        """Whether sums are bounded, and not rows."""
        return self._largest_row > 1

    @property
    def _largest_row(self) -> int:
        return profile_of(self.block.primitive[0]).bound

    @property
    def largest(self) -> int:
        """The most that a unit can have."""
        return self.schema.rows_per_unit_max * self._largest_row

    @property
    def rule(self) -> Rule:
        """Of the sizes."""
        return Rule(UNIT_SIZES, (self.largest - 1).bit_length() + 1, int(self.by_sum))

    def bounded(self, bound: int | None) -> Rule | None:
        """What of each unit counts with a bound; None for all its rows."""
        if bound is None or bound >= self.largest:
            return None
        every = self.schema.rows_per_unit_max
        return Rule(BOUNDED_ROWS, every if self.by_sum else bound, bound)

    def wanted(self, price: Fraction) -> Wanted:
        """The sizes, as well as they are known for a price."""
        half_width = -math.log1p(-SURE) / float(price)
        return Wanted(
            self.block, AccuracyTarget(half_width=half_width, confidence=SURE), rule=self.rule
        )

    def sizes(self, found: RowEstimates) -> Sizes | None:
        """The sizes; None if they are not known."""
        known = tuple(one for one in found if isinstance(one, Posterior))
        return Sizes(known, self.largest) if len(known) == len(found) else None

    def price(self, bound: int | None, half_width: float) -> Fraction:
        """What the aggregate costs with a bound, where nothing is known."""
        _, multiplier = self.block.primitive
        target = replace(self.aggregate.target, half_width=half_width)
        reach = self.largest if bound is None else min(bound, self.largest)
        try:
            return Fraction(weight_for(target, multiplier).units * reach, UNITS_PER_EPSILON)
        except InvalidTarget:
            return Fraction(0)


def fitted(
    table: ServedTable, parts: Sequence[Part], payer: Payer, elsewhere: Fraction = Fraction(0)
) -> tuple[tuple[Part, ...], Fraction]:
    """Parts with bounds that fit them where they ask for these, and what that cost. May charge.

    What the statement has spent `elsewhere` counts towards its cap.

    Raises
    ------
    LedgerUnavailable, SourceUnavailable
        What was charged is kept, and completed at the next request.
    """
    rules, spent = {}, Fraction(0)
    cap = smallest_cap(parts)
    for key, (part, fit) in _asked(table, parts).items():
        left = None if cap is None else cap - elsewhere - spent
        rules[key], paid = _found(table, part, fit, payer, left)
        spent += paid
    return _with_rules(parts, rules), spent


def fitted_by_history(
    table: ServedTable, parts: Sequence[Part], caller: Caller, *, least: bool = False
) -> tuple[Part, ...]:
    """The same as far as the history tells, and without a bound where it does not; free.

    With `least`, one row of each unit counts where it does not: nothing costs less than that.

    Raises
    ------
    InvalidTarget
        If others' history is private: the bound would tell what they have asked.
    """
    rules, asked = {}, _asked(table, parts)
    if asked and shown_instead(table, caller) is not None:
        raise InvalidTarget(
            f"The history of {table.info.schema.table} is private, so no bound is looked up in it.",
            hint="Name the number of rows of a unit that count: rows_per_unit => 4.",
        )
    for key, (_, fit) in asked.items():
        sizes = _known(table, fit)
        bound = None if sizes is None else sizes.bound(table.info.cut_share_max)
        rules[key] = fit.bounded(1 if least and sizes is None else bound)
    return _with_rules(parts, rules)


def _asked(table: ServedTable, parts: Sequence[Part]) -> dict[tuple[int, int], tuple[Part, _Fit]]:
    """What asks for a bound that fits, by the places of the part and of the aggregate."""
    return {
        (at, place): (part, _Fit(aggregate, table.info.schema))
        for at, part in enumerate(parts)
        for place, aggregate in enumerate(part.aggregates)
        if aggregate.fits_units and aggregate.blocks and not aggregate.is_constant
    }


def _with_rules(
    parts: Sequence[Part], rules: Mapping[tuple[int, int], Rule | None]
) -> tuple[Part, ...]:
    return tuple(
        replace(
            part,
            aggregates=tuple(
                replace(one, rule=rules.get((at, place), one.rule), fits_units=False)
                for place, one in enumerate(part.aggregates)
            ),
        )
        for at, part in enumerate(parts)
    )


def _known(table: ServedTable, fit: _Fit) -> Sizes | None:
    (found,) = table.look([fit.wanted(FIRST_PRICE)])
    return fit.sizes(found)


def _found(
    table: ServedTable, part: Part, fit: _Fit, payer: Payer, cap: Fraction | None
) -> tuple[Rule | None, Fraction]:
    """A bound, and what the sizes cost: they are bought until the bound can be told."""
    spent, price = Fraction(0), FIRST_PRICE
    if _is_known(table, part, fit):
        return None, spent  # all rows are known well enough
    while True:
        allowed = None if cap is None else cap - spent
        try:
            acquired = table.acquire([fit.wanted(price)], payer, allowed)
        except (NotCovered, TooLarge):
            return None, spent  # the statement is refused, or paid, as it is without a bound
        spent += acquired.epsilon
        sizes = fit.sizes(acquired.known[0])
        if sizes is None:
            return None, spent
        bound, most = _bound(table, part, fit, sizes, price)
        if price >= most or 2 * price > table.left(payer) / PART_OF_LEFT:
            return fit.bounded(bound), spent
        price *= 2


def _bound(
    table: ServedTable, part: Part, fit: _Fit, sizes: Sizes, price: Fraction
) -> tuple[int | None, Fraction]:
    """A bound by sizes that cost so much, and the price from which on they are accurate enough."""
    if not part.is_default:
        bound = sizes.bound(table.info.cut_share_max)
        foreseen = fit.price(bound, _width(part, fit, sizes))
    else:
        given = (part.epsilon_cap or table.info.default_cost or price) / len(part.aggregates)
        bound = sizes.best_for(float(given - price))
        foreseen = min(given, fit.price(bound, _width(part, fit, sizes)))
        if bound is None:
            return None, foreseen / PART_UNSEEN
    is_seen = any(sizes.seen) and (bound is None or fit.bounded(bound) is not None)
    return bound, foreseen / (PART_OF_PRICE if is_seen else PART_WITHOUT)


def _width(part: Part, fit: _Fit, sizes: Sizes) -> float:
    """The half-width that the statement will need, about."""
    target, decision = fit.aggregate.target, fit.aggregate.decision
    if decision is not None:
        return decision.farthest
    relative = _relative(part, fit)
    _, multiplier = fit.block.primitive
    total = sizes.total * abs(float(multiplier)) / max(1, fit.block.n_rows)
    widths = (max(share * total, floor) for share, floor in relative)
    return min((one for one in widths if one > 0), default=target.half_width)


def _relative(part: Part, fit: _Fit) -> list[tuple[float, float]]:
    """What fractions of answers that rest on it are wanted, each with the least half-width."""
    place = part.aggregates.index(fit.aggregate)
    return [
        (one.relative, one.width_floor)
        for one in part.answers
        if place in one.uses and one.relative is not None
    ]


def _is_known(table: ServedTable, part: Part, fit: _Fit) -> bool:
    """Whether the history says enough of all rows."""
    if part.is_default:
        return False  # how much is enough follows from what it costs
    target, relative = fit.aggregate.target, _relative(part, fit)
    (known,) = table.look([Wanted(fit.block, target)])
    for one in known:
        if not isinstance(one, Posterior):
            return False
        width = min((max(share * abs(one.value), floor) for share, floor in relative), default=None)
        if one.half_width(target.confidence) > (target.half_width if width is None else width):
            return False
    return True


def say_what_bounds_cost(refusal: Refused, epsilon: Fraction) -> None:
    """Let a refusal of the statement say what was spent to find bounds on units."""
    if epsilon:
        said = f"Epsilon {float(epsilon):.3g} was spent to find a bound on units, which is kept."
        refusal.hint = said if refusal.hint is None else f"{refusal.hint} {said}"


def advice_on(table: ServedTable, aggregate: Aggregate) -> str | None:
    """Which bound on units would make an aggregate cheaper, as far as the history tells.

    None if none would, or there is one already.
    """
    schema = table.info.schema
    is_about_rows = aggregate.rule is None and not aggregate.is_constant and aggregate.blocks
    if schema.rows_per_unit_max == 1 or not is_about_rows:
        return None
    fit = _Fit(aggregate, schema)
    sizes = _known(table, fit)
    if sizes is None:
        return ADVICE.format(schema.unit)
    bound = sizes.bound(table.info.cut_share_max)
    if bound is None or PAYS * bound > fit.largest:
        return None
    _, multiplier = fit.block.primitive
    option = f"rows_per_unit => {bound}"
    if fit.by_sum:
        option = f"unit_sum_max => {bound * abs(float(multiplier)):.15g}"
    confidence = table.info.default.confidence
    what = "the sum" if fit.by_sum else "the number"
    said = sizes.said(bound, confidence, str(schema.unit), what)
    return f"OPTIONS({option}) costs {fit.largest / bound:.3g} times less. {said}"


def said_of_bounds(
    table: ServedTable, parts: Sequence[Part], caller: Caller
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences on the bounds of each aggregate and on what they leave out, each once.

    Returns
    -------
    caveats, warnings : tuple of str
        Warnings are those by which most may be left out.
    """
    name = table.info.schema.table
    bounded = (
        (one, one.rule)
        for part in parts
        for one in part.aggregates
        if one.rule is not None and one.rule.kind == BOUNDED_ROWS and not one.is_constant
    )
    said = dict.fromkeys(f"{name}: {_said(table, *one, caller)}" for one in bounded)
    warnings = tuple(one for one in said if HIDDEN in one)
    return tuple(one for one in said if one not in warnings), warnings


def _said(table: ServedTable, one: Aggregate, rule: Rule, caller: Caller) -> str:
    schema = table.info.schema
    fit = _Fit(one, schema)
    _, multiplier = fit.block.primitive
    where = " at each holder" if table.extent.schema.people_overlap else ""
    by_rows = f"at most {rule.most} rows of each {schema.unit} count{where}"
    largest = rule.beside * abs(float(multiplier))
    by_sum = f"each {schema.unit} adds at most {largest:,.15g}{where}"
    bounds = [by_rows] if rule.most < schema.rows_per_unit_max else []
    if rule.beside < rule.most * profile_of(fit.block.primitive[0]).bound:
        bounds.append(by_sum)
    text = f"for {one.sql}, {' and '.join(bounds)}."
    sizes = None
    if shown_instead(table, caller) is None and len(bounds) == 1:
        by_own = fit.by_sum and bounds == [by_sum]
        known = _known(table, fit) if by_own or not fit.by_sum else None
        sizes = known
    if sizes is None:
        return f"{text} How much that leaves out is not known."
    what = "the sum" if fit.by_sum else "the number"
    bound = rule.beside if fit.by_sum else rule.most
    return f"{text} {sizes.said(bound, table.info.default.confidence, str(schema.unit), what)}"
