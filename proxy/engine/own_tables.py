"""A statement's parts on a table that answers by itself (`proxy/tables/self_answering.py`).

Such an answer is free and has the interval that it has. A target that is not met is no reason to
refuse: nothing can be bought, so the interval and a note say how well the answer is known. The
intervals of formulas hold whatever the correlation of their parts (`boxes.py`), since these tables
say only how far each part may be off. A test of independence takes the table's own word on how its
counts come about. Counts that are to be made to agree are refused.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Final

import numpy as np

from accountant.ledger import Payer
from cube.refusals import UnsupportedSql
from inference import History, NoisePlaces
from planner.workload import Fallback, Part, Wanted
from proxy.api import SOURCE_MIXED, SOURCE_PUBLIC
from proxy.engine.answers import AnsweredAggregate, AnsweredItem, AnsweredPart
from proxy.engine.explain import ExplainedBlock, ExplainedPart
from proxy.outer_sql.postprocessing import OuterSql
from proxy.tables import AS_IT_IS, OwnAnswer, OwnCells, SelfAnswering

NO_PLACES: Final = NoisePlaces(History(), ())
WIDER: Final = (
    "{} is known less well than was asked for: to within {:.4g}. {} answers by itself, so no "
    "purchase can make the interval narrower."
)


def own_answers(
    table: SelfAnswering, parts: Sequence[Part], payer: Payer, fallback: Fallback, outer: OuterSql
) -> tuple[list[AnsweredPart], tuple[str, ...]]:
    """The parts as their table answers them, and sentences on how.

    Raises
    ------
    Refused
        If the table, or a table of its kind, cannot answer some part.
    """
    found = table.answer(wanted_of(table, parts), payer, fallback)
    blocks, ways = iter(found.blocks), Counter[str]()
    answered = []
    for part in parts:
        own = [tuple(islice(blocks, len(one.blocks))) for one in part.aggregates]
        answered.append(_answered(table, part, own, outer))
        if part.question is None:  # the law of a test is simulated: it has no interval
            ways.update(way for some in own for block in some for way in block.intervals)
    name = table.info.schema.table
    wide = [note for part in answered for note in _unmet(part, name)]
    tested = [part.cells.note for part in answered if part.cells is not None]
    return answered, (*found.notes, *_told(ways), *dict.fromkeys(tested), *wide)


def wanted_of(table: SelfAnswering, parts: Sequence[Part]) -> list[Wanted]:
    """Every block of the parts, in order.

    Raises
    ------
    UnsupportedSql
        If some part needs more than its rows by themselves.
    """
    for part in parts:
        _check(table, part)
    return [one.wanted(block) for part in parts for one in part.aggregates for block in one.blocks]


def own_explained(
    table: SelfAnswering, parts: Sequence[Part], fallback: Fallback
) -> list[ExplainedPart]:
    """What would be answered, and how well; nothing of it costs anything.

    Raises
    ------
    Refused
        As the statement would be.
    """
    widths = iter(table.foreseen(wanted_of(table, parts), fallback))
    return [
        ExplainedPart(
            part,
            tuple(
                ExplainedBlock(place, one.wanted(block), (), (), own_width=next(widths))
                for place, one in enumerate(part.aggregates)
                for block in one.blocks
            ),
            own_source=table.info.kind,
        )
        for part in parts
    ]


def _check(table: SelfAnswering, part: Part) -> None:
    kind, name = table.info.kind, table.info.schema.table
    _cells(table, part)  # or a refusal
    if part.consistency is not None:
        raise UnsupportedSql(
            f"{name} is {kind}, and its counts are made to agree only in its own way.",
            hint="Leave the option consistency out.",
        )


def _cells(table: SelfAnswering, part: Part) -> OwnCells | None:
    """The cells of the table that a part is a test of, if it is one."""
    if part.question is None:
        return None
    (counted,) = part.aggregates
    (block,) = counted.blocks
    return table.cells(block, part.question)


def _answered(
    table: SelfAnswering, part: Part, blocks: Sequence[tuple[OwnAnswer, ...]], outer: OuterSql
) -> AnsweredPart:
    aggregates = []
    for aggregate, own in zip(part.aggregates, blocks, strict=True):
        sources = {one.source for one in own}
        source = sources.pop() if len(sources) == 1 else SOURCE_MIXED
        aggregates.append(
            AnsweredAggregate(
                aggregate=aggregate,
                posteriors=tuple(row for one in own for row in one.rows),
                source=SOURCE_PUBLIC if aggregate.is_constant else source,
                epsilon_spent=Fraction(0),
                asked=tuple(map(aggregate.wanted, aggregate.blocks)),
            )
        )
    # Nothing is searched for, so no interval has to be surer than it says.
    part = replace(part, is_searched=False)
    cells = _cells(table, part)
    return AnsweredPart(
        part, tuple(aggregates), NO_PLACES, outer, is_boxed=True, cells=cells, has_laws=False
    )


def _told(ways: Counter[str]) -> Iterator[str]:
    """How intervals were found, for a receipt; nothing where the table does not say."""
    if len(ways) == 1:
        yield f"Intervals: {next(iter(ways))}."
    elif ways:
        total = ways.total()
        parts = (f"{one} in {n} of {total}" for one, n in ways.most_common())
        yield f"Intervals: {'; '.join(parts)}."


def _unmet(answered: AnsweredPart, table: str) -> Iterator[str]:
    """A note for every answer that is wider than its target, where it has one."""
    part = answered.part
    for item in answered.answers:
        widths = item.half_widths(part.confidence)
        is_wide = item.has_target & (widths > _wanted_widths(item, part))
        if is_wide.any():
            yield WIDER.format(item.answer.name, float(widths[is_wide].max()), table)


def _wanted_widths(item: AnsweredItem, part: Part) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The half-width that each row was to have, at most; infinite where anything will do."""
    answer = item.answer
    if answer.relative is not None:
        return np.asarray(answer.relative * np.abs(np.nan_to_num(item.values)))
    width = answer.half_width
    if answer.formula is None:
        (place,) = answer.uses
        width = part.aggregates[place].target.half_width
    if width is None or width >= AS_IT_IS.half_width:
        width = np.inf
    return np.full(item.values.shape, width)
