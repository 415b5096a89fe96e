"""Hierarchies without cells: what they need beside them for a row, and which rows they answer.

Above some number of cells a hierarchy begins with intervals of several levels. A range is then the
whole intervals within it and a rest at its ends, a row that is measured beside them.

Nothing here weighs or prices anything.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from cube.query import QueryBlock
from planner.measuring.candidates import Candidate, may_be_whole
from planner.measuring.offers import PricingContext
from planner.measuring.ski_rental import RentedRows


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
