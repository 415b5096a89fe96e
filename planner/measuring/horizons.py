"""Earlier horizons: what a block was when it was bought, on a table that has grown since.

A table is cut at its horizon. When the horizon moves, what was measured of everything becomes a
measurement of the levels that there were. As evidence of what analysts ask, it is still of
everything: a whole scope that was counted then was a wide purchase; and a total up to that day is
no sign that the days before it will be asked for again, since today's total needs the new ones.

The ledger's charges come in order, so the horizon at each of them is, as far as any charge shows,
the last level that anything bought so far is about. On a table that does not grow, every block is
what it was.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cube.axis import Axis, DateAxis, IntegerAxis
from cube.block import Partition, QueryBlock
from cube.query import Factor, LinearQuery, Term
from cube.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class BoughtBlock:
    """A block as it was bought.

    Parameters
    ----------
    block : QueryBlock
        On the levels that there were.
    schema : Schema
        With these levels.
    is_past : bool
        Whether it was about everything up to a horizon that has moved since.
    """

    block: QueryBlock
    schema: Schema
    is_past: bool = False


class Horizons:
    """The horizons of a table's charges, one after another.

    Parameters
    ----------
    schema : Schema
        As the table is now.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._reached = 0

    def copy(self) -> "Horizons":
        """A copy that does not change when this one does."""
        other = Horizons(self._schema)
        other._reached = self._reached
        return other

    def as_bought(self, blocks: Sequence[QueryBlock]) -> list[BoughtBlock]:
        """The blocks of the next charge."""
        axis = self._schema.grows
        if axis is None:
            return [BoughtBlock(block, self._schema) for block in blocks]
        size = self._schema.by_name[axis].size
        ends = [end_of(block, axis, size) for block in blocks]
        self._reached = max(self._reached, *ends)
        if self._reached == size:
            return [BoughtBlock(block, self._schema) for block in blocks]
        then = shortened_schema(self._schema, self._reached)
        return [
            BoughtBlock(shortened(block, axis, self._reached), then, is_past=end == self._reached)
            for block, end in zip(blocks, ends, strict=True)
        ]


def end_of(block: QueryBlock, axis: str, size: int) -> int:
    """The level after the last one of an axis that a block is about."""
    end = max((_end_of_term(term, axis, size) for term in block.query.terms), default=0)
    partition = block.partition
    if partition is not None and axis in partition.axes:
        end = min(end, _last(partition.labels >= 0, partition.axes, axis))
    return end


def _end_of_term(term: Term, axis: str, size: int) -> int:
    ends = [_last(one.values != 0, one.axes, axis) for one in term.factors if axis in one.axes]
    return min([size, *ends])


def _last(is_used: NDArray[np.bool_], axes: tuple[str, ...], axis: str) -> int:
    place = axes.index(axis)
    others = tuple(one for one in range(is_used.ndim) if one != place)
    (used,) = np.nonzero(is_used.any(axis=others))
    return int(used[-1]) + 1 if used.size else 0


def shortened(block: QueryBlock, axis: str, n_levels: int) -> QueryBlock:
    """A block on the first levels of an axis, in lowest terms; it must be about some of them."""
    terms = tuple(
        Term(
            term.scale,
            tuple(
                Factor(one.axes, _cut(one.values, one.axes, axis, n_levels))
                if axis in one.axes
                else one
                for one in term.factors
            ),
        )
        for term in block.query.terms
    )
    partition = block.partition
    if partition is not None and axis in partition.axes:
        labels = _cut(partition.labels, partition.axes, axis, n_levels)
        partition = Partition(partition.axes, labels)
    return QueryBlock(LinearQuery(terms), partition).primitive[0]


def _cut(
    values: NDArray[np.int64],
    axes: tuple[str, ...],
    axis: str,
    n_levels: int,
) -> NDArray[np.int64]:
    return np.ascontiguousarray(values.take(np.arange(n_levels), axis=axes.index(axis)))


def shortened_schema(schema: Schema, n_levels: int) -> Schema:
    """A schema with the first levels of the axis by which the table grows."""
    axes = tuple(
        _first_levels(one, n_levels) if one.name == schema.grows else one for one in schema.axes
    )
    return replace(schema, axes=axes)


def _first_levels(axis: Axis, n_levels: int) -> Axis:
    if isinstance(axis, DateAxis):
        return replace(axis, high=axis.low + dt.timedelta(days=n_levels - 1))
    if isinstance(axis, IntegerAxis):
        return replace(axis, high=axis.low + n_levels - 1)
    raise TypeError("a table grows along a date or integer column")
