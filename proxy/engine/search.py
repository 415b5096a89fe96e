"""The beginning of a search: what the history knows of answers whose targets depend on them.

What it knows well enough is not bought again, and what it knows at all decides how accurately to
ask first. Where it knows nothing of an answer, a count of the same groups bounds it, and the
largest number of records does otherwise. Nothing is charged here.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.query import QueryBlock, counting
from cube.schema import Schema
from inference.block_estimates import RowEstimates, all_known, widest
from inference.error_terms import Places
from inference.posterior import Posterior
from planner.workload import Part, Wanted
from proxy.api.requests import SOURCE_HISTORY, SOURCE_MEASURED, SOURCE_PUBLIC
from proxy.engine.asked import Asked, Step, at_widths
from proxy.engine.narrowing import opening
from proxy.engine.postprocessing import OuterSql
from proxy.engine.results import AnsweredAggregate, AnsweredPart
from proxy.tables.empty_history import EmptyHistory
from proxy.tables.private_table import ServedTable
from proxy.tables.snapshot import TableSnapshot

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
    schema : Schema
        The table's.
    parts : sequence of Part
        All of them on this table.
    asked : sequence of Asked
        Their blocks, with the half-widths that are asked for if nothing is known.
    outer : OuterSql
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
    """What was last said of every block, however roughly, if nothing was measured since."""
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
