"""Statements that name no target: they are answered as well as their table's default cost pays.

A budget then lasts for about a hundred first statements, whatever they are. A statement may name
the cost instead (`epsilon`); then that is what it is answered for. The share falls once little is
left, so that a budget never ends with one statement.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, TypeVar

from accountant.ledger import Payer
from cube.refusals import NotCovered
from inference import all_known, widest
from planner.workload import Aggregate, Answer, Part
from proxy.engine.answers import Asked, asked_of, smallest_cap
from proxy.tables import DefaultWidth, ServedTable, unit_of

Found = TypeVar("Found")

N_WIDENED_MAX: Final = 4
WIDENED: Final = 1.03  # times what is lacking
SHARE_OF_LEFT: Final = Fraction(1, 20)  # a statement costs at most this share of the rest
SHARE_FOR_LEAST: Final = Fraction(1, 10)  # the same, where it has a price that no width is below
NOTE: Final = (
    "The statement names no half_width, relative or epsilon, so it may spend epsilon {cost:.3g} on "
    "{table}. For half as wide intervals name one of them: they cost about {half:.3g}."
)

LEAST_NOTE: Final = (
    "The statement names no half_width, relative or epsilon, so it may spend epsilon {cost:.3g} "
    "on {table}: no answer about it costs less."
)


def at_default_cost(
    table: ServedTable,
    parts: Sequence[Part],
    payer: Payer,
    elsewhere: Fraction = Fraction(0),
    rounds: int = 1,
) -> tuple[tuple[Part, ...], str | None]:
    """The parts with the targets that the default cost pays, and what is said about them.

    Nothing (None) is said where nothing is paid; an empty note, where half of the widths are free
    or the statement itself names an epsilon.

    Parameters
    ----------
    parts : sequence of Part
        All that a statement asks of the table. Those that name a target stay as they are.
    elsewhere : Fraction
        What the statement has spent on other tables, which counts towards a cost that it names.
    rounds : int
        How many statements have equal shares of the default cost.

    Raises
    ------
    TooLarge, TooSlow, InvalidTarget
        As planning does.
    """
    places = [place for place, part in enumerate(parts) if part.is_default]
    chosen = [parts[place] for place in places]
    cost = _cost(table, chosen, payer, elsewhere, rounds) if chosen else None
    if cost is None:
        return tuple(parts), None
    asked = [_at_narrowest(one, chosen[one.part]) for one in asked_of(chosen, None)]
    if not asked:
        return tuple(parts), None
    if cost:
        wanted = [one.wanted for one in asked]
        width = table.default_widths.fitting(wanted, cost)
        # What has a least price above the default cost may have it, as long as enough is left.
        if width.price > cost:
            cost = min(width.price, _most(table, chosen, payer, elsewhere))
    else:
        width = _known(table, asked)
    if not width.records:
        return tuple(parts), None
    # Parts that name a target are bought beside them, and have caps of their own.
    cap = cost + elsewhere if len(chosen) == len(parts) else smallest_cap(chosen)
    changed = list(parts)
    for place, part in zip(places, chosen, strict=True):
        changed[place] = _widened(part, width, cap)
    if not cost:
        return tuple(changed), None
    half = float(width.epsilon_of_half)
    if not half or smallest_cap(chosen) is not None:
        return tuple(changed), ""
    return tuple(changed), NOTE.format(table=table.info.schema.table, cost=float(cost), half=half)


def within_cost(  # noqa: PLR0913, PLR0917 - what was asked, by whom, and what was foreseen
    attempt: Callable[[tuple[Part, ...]], Found],
    table: ServedTable,
    asked: Sequence[Part],
    parts: tuple[Part, ...],
    payer: Payer,
    elsewhere: Fraction,
    said: str | None,
) -> tuple[Found, str | None]:
    """What an attempt gives to answer parts at the default cost, and what is said about that.

    What is bought together may cost more than was foreseen, since a search begins wider: then it
    is attempted at wider widths. Where none is cheap enough, the least price may be paid.

    Parameters
    ----------
    asked : sequence of Part
        What the statement asks of the table.
    parts : tuple of Part
        The same, as `at_default_cost` gave them.
    said : str, optional
        What `at_default_cost` said. None, if no cost bounds the parts: they are attempted once.

    Raises
    ------
    NotCovered
        If it does not get as cheap.
    """
    if said is None:
        return attempt(parts), None
    for _ in range(N_WIDENED_MAX):
        try:
            return attempt(parts), said
        except NotCovered as refusal:
            lacking = refusal.shortfall
            if not lacking.epsilon_left:
                raise
            factor = float(lacking.epsilon_needed / lacking.epsilon_left) * WIDENED
            parts = tuple(_scaled(part, factor) if part.is_default else part for part in parts)
    try:
        return attempt(parts), said
    except NotCovered as refusal:
        least = refusal.shortfall.epsilon_needed
        most = _most(table, asked, payer, elsewhere, SHARE_FOR_LEAST)
        caps = [part.epsilon_cap for part in parts if part.is_default and part.epsilon_cap]
        if least > most or len(caps) < len(parts):
            raise
    raised = max(*caps, least)
    found = attempt(tuple(replace(part, epsilon_cap=raised) for part in parts))
    if smallest_cap(asked) is not None:
        return found, ""
    return found, LEAST_NOTE.format(cost=float(least), table=table.info.schema.table)


def _scaled(part: Part, factor: float) -> Part:
    def wider(one: Aggregate) -> Aggregate:
        half_width = one.target.half_width * factor
        return replace(one, target=replace(one.target, half_width=half_width))

    return replace(
        part,
        aggregates=tuple(map(wider, part.aggregates)),
        answers=tuple(replace(one, width_floor=one.width_floor * factor) for one in part.answers),
    )


def _cost(
    table: ServedTable, parts: Sequence[Part], payer: Payer, elsewhere: Fraction, rounds: int
) -> Fraction | None:
    """The most that statements without a target may cost now; None if nothing bounds it.

    If the history is private it is the same whatever was spent: what is left would tell others'
    purchases.
    """
    default = table.info.default_cost
    most = _most(table, parts, payer, elsewhere)
    if smallest_cap(parts) is not None:
        return most
    return None if default is None else min(most, default / rounds)


def _most(
    table: ServedTable,
    parts: Sequence[Part],
    payer: Payer,
    elsewhere: Fraction,
    share: Fraction = SHARE_OF_LEFT,
) -> Fraction:
    """The most that statements without a target may cost, whatever the default cost is."""
    named = smallest_cap(parts)
    limits = (one.limit.per_query for one in table.gate.allowances(payer))
    costs = [limit for limit in limits if limit is not None]
    if named is not None:
        costs.append(max(Fraction(0), named - elsewhere))
    if table.empty_history is None:
        left = table.left(payer)
        costs.append(left if named is not None else share * left)
    return min(costs, default=table.gate.budget().limit)


def _at_narrowest(one: Asked, part: Part) -> Asked:
    """A block at the narrowest half-width that is ever asked for it."""
    floors = [
        answer.width_floor
        for answer in part.answers
        if answer.formula is None and answer.relative is not None and one.aggregate in answer.uses
    ]
    target = one.wanted.target
    narrowest = min((floor for floor in floors if floor), default=target.half_width)
    one.wanted = replace(
        one.wanted, target=replace(target, half_width=min(narrowest, target.half_width))
    )
    return one


def _known(table: ServedTable, asked: Sequence[Asked]) -> DefaultWidth:
    """The width at which all blocks are known already; 0 if some are not, or all well enough."""
    if table.empty_history is not None:
        return DefaultWidth()
    rows = table.look([one.wanted for one in asked])
    if all_known(rows) is None:
        return DefaultWidth()
    widths = [
        widest(found, one.wanted.target.confidence) / unit_of(one.wanted)
        for found, one in zip(rows, asked, strict=True)
    ]
    return DefaultWidth(max(widths))


def _widened(part: Part, width: DefaultWidth, cap: Fraction | None) -> Part:
    """A part whose blocks are no narrower than what is paid."""
    return replace(
        part,
        aggregates=tuple(_wider(one, width) for one in part.aggregates),
        answers=tuple(_with_floor(one, part, width) for one in part.answers),
        epsilon_cap=cap,
    )


def _wider(aggregate: Aggregate, width: DefaultWidth) -> Aggregate:
    wanted = [aggregate.wanted(block) for block in aggregate.blocks]
    half_width = max((width.of(one) for one in wanted), default=aggregate.target.half_width)
    return replace(aggregate, target=replace(aggregate.target, half_width=half_width))


def _with_floor(answer: Answer, part: Part, width: DefaultWidth) -> Answer:
    """An answer with a relative target, which need not be narrower than what is paid."""
    if answer.formula is not None or answer.relative is None:
        return answer
    (place,) = answer.uses
    aggregate = part.aggregates[place]
    units = [unit_of(aggregate.wanted(block)) for block in aggregate.blocks]
    floor = max(answer.width_floor, width.records * max(units, default=1.0))
    return replace(answer, width_floor=floor)
