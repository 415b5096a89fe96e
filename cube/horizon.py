"""The horizon of a table that grows: which of the levels of one axis are readable so far.

Two descriptions of the same rows meet here. What plans and estimates sees the table cut at the
horizon, as if the axis had no later levels: a total is a total so far. What is charged, measured
and kept is about the whole axis, for ever: the same total with the factor "before the horizon". So
a row that was measured at one horizon is an exact linear query of the table at every later one.

Nothing here decides when the horizon moves, or knows what was measured.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.axis import STEPS, Axis, DateAxis, IntegerAxis, TimestampAxis
from cube.classes import Tiles, tiled
from cube.pieces import Pieces, constant_runs
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term
from cube.schema import Schema

Span = tuple[int, int]  # levels from the first to before the second
_Blocks = WeakKeyDictionary[QueryBlock, QueryBlock]
_NO_GROUP = -1


@dataclass(frozen=True, eq=False)
class Horizon:
    """The first levels of an axis, and how rows are written on them and on all of it.

    Parameters
    ----------
    axis : str
        The axis along which the table grows.
    n_levels : int
        The number of declared levels of the axis.
    n_readable : int
        How many of them, from the first, are readable.
    """

    axis: str
    n_levels: int
    n_readable: int
    _known: _Blocks = field(default_factory=WeakKeyDictionary, init=False, repr=False)
    _cut: _Blocks = field(default_factory=WeakKeyDictionary, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.n_readable <= self.n_levels:
            raise ValueError(
                f"the number of readable levels must be 1 to {self.n_levels}, not {self.n_readable}"
            )

    def cut_schema(self, schema: Schema) -> Schema:
        """The schema of a table without the levels beyond the horizon."""
        axes = tuple(
            until(one, self.n_readable) if one.name == self.axis else one for one in schema.axes
        )
        most, by = schema.rows_per_unit_max, schema.rows_per_unit_max_by
        if by is not None and by.axis == self.axis:
            most = min(most, by.rows * self.n_readable)
            by = by if by.rows < most else None
        return replace(schema, axes=axes, rows_per_unit_max=most, rows_per_unit_max_by=by)

    def whole(self, block: QueryBlock) -> QueryBlock:
        """The same rows of the whole table: a block that was written for the cut one."""
        found = self._known.get(block)  # a price is asked for the same rows many times
        if found is None:
            found = self._known[block] = self._written(block, self.n_levels)
        return found

    def cut(self, block: QueryBlock) -> QueryBlock:
        """The same rows of the cut table: a block of the whole one that reaches no further.

        Raises
        ------
        ValueError
            If the block touches a level beyond the horizon.
        """
        found = self._cut.get(block)  # a charge and its measurement have the same rows
        if found is None:
            if self.n_readable < (reach(block, self.axis) or self.n_levels):
                raise ValueError("the rows reach beyond the horizon")
            found = self._cut[block] = self._written(block, self.n_readable)
        return found

    def _written(self, block: QueryBlock, new_size: int) -> QueryBlock:
        """The same rows over so many levels of the axis."""
        partition = block.partition
        is_grouped = partition is not None and self.axis in partition.axes
        terms = tuple(self._term(term, new_size, ends=not is_grouped) for term in block.query.terms)
        if partition is not None and is_grouped:
            groups = _resized(partition.groups, partition.axes.index(self.axis), new_size, fill=-1)
            partition = Partition(partition.axes, groups)
        written = QueryBlock(LinearQuery(terms, block.query.constant), partition)
        row, multiplier = written.primitive
        return (
            row if multiplier == 1 and not block.query.constant else written
        )  # equal rows are one

    def _term(self, term: Term, new_size: int, *, ends: bool) -> Term:
        """The term over so many levels; one that `ends` has a factor that ends at the horizon."""
        factors = [
            self._factor(one, new_size) if self.axis in one.axes else one for one in term.factors
        ]
        if ends and new_size > self.n_readable and self.axis not in term.scope:
            before = (np.arange(new_size) < self.n_readable).astype(np.int64)
            factors.append(Factor((self.axis,), before))
        return Term(term.scale, tuple(factors))

    def _factor(self, factor: Factor, new_size: int) -> Factor:
        if isinstance(factor.numbers, Pieces):
            return Factor(factor.axes, _resized_pieces(factor.numbers, new_size, fill=0))
        dimension = factor.axes.index(self.axis)
        return Factor(factor.axes, _resized_array(factor.numbers, dimension, new_size, fill=0))


def until(axis: Axis, n_levels: int) -> Axis:
    """An axis with only its first levels."""
    match axis:
        case DateAxis(low=low):
            return replace(axis, high=low + dt.timedelta(days=n_levels - 1))
        case IntegerAxis(low=low):
            return replace(axis, high=low + n_levels - 1)
        case TimestampAxis(low=low):
            return replace(axis, high=low + (n_levels - 1) * STEPS[axis.step])
    raise TypeError(f"the levels of {axis.name} have no order")


def reach(block: QueryBlock, axis: str) -> int | None:
    """The number of levels of an axis from the first that a block's rows touch; None if all."""
    partition = block.partition
    grouped = None
    if partition is not None and axis in partition.axes:
        grouped = _last_kept(partition.groups, partition.axes.index(axis), empty=_NO_GROUP)
    of_terms = [_reach_of_term(term, axis) for term in block.query.terms]
    counted = None if None in of_terms else max((one for one in of_terms if one), default=0)
    known = [one for one in (grouped, counted) if one is not None]
    return min(known, default=None)


def spans(axis: Axis, start: int, end: int) -> Iterator[Span]:
    """Levels of an axis, those of each month by themselves if they are days or moments."""
    if not isinstance(axis, DateAxis | TimestampAxis):
        yield start, end
        return
    step = STEPS["day" if isinstance(axis, DateAxis) else axis.step]
    while start < end:
        first = axis.low + start * step
        following = (first.replace(day=1) + dt.timedelta(days=31)).replace(day=1)
        if isinstance(following, dt.datetime):
            following = dt.datetime.combine(following, dt.time())
        stop = min(end, start + (following - first) // step)
        yield start, stop
        start = stop


def _reach_of_term(term: Term, axis: str) -> int | None:
    for factor in term.factors:
        if axis in factor.axes:
            return _last_kept(factor.numbers, factor.axes.index(axis), empty=0)
    return None


def _last_kept(numbers: NDArray[np.int64] | Pieces | Tiles, dimension: int, empty: int) -> int:
    """One more than the last place along a dimension at which not all is empty."""
    match numbers:
        case Pieces():
            for piece, start, length in reversed(list(numbers)):
                if tuple(piece.tolist()) != (empty, 0, 0):
                    return start + length
            return 0
        case Tiles():
            along = numbers.along[dimension]
            rest = tuple(i for i in range(numbers.values.ndim) if i != dimension)
            is_empty = (numbers.values == empty).all(axis=rest)
            kept = np.flatnonzero(~is_empty[along.coefficients[:, 0]])
            return int((along.starts + along.lengths)[kept[-1]]) if kept.size else 0
        case _:
            rest = tuple(i for i in range(numbers.ndim) if i != dimension)
            kept = np.flatnonzero((numbers != empty).any(axis=rest))
            return int(kept[-1]) + 1 if kept.size else 0


def _resized(
    numbers: NDArray[np.int64] | Pieces | Tiles, dimension: int, size: int, fill: int
) -> NDArray[np.int64] | Pieces | Tiles:
    """Numbers over more or fewer levels along a dimension; new levels have the number `fill`."""
    match numbers:
        case Pieces():
            return _resized_pieces(numbers, size, fill)
        case Tiles():
            return _resized_tiles(numbers, dimension, size, fill)
        case _:
            return _resized_array(numbers, dimension, size, fill)


def _resized_array(
    numbers: NDArray[np.int64], dimension: int, size: int, fill: int
) -> NDArray[np.int64]:
    present = numbers.shape[dimension]
    if size <= present:
        return np.ascontiguousarray(np.take(numbers, np.arange(size), axis=dimension))
    widths = [(0, size - present if i == dimension else 0) for i in range(numbers.ndim)]
    return np.pad(numbers, widths, constant_values=fill)


def _resized_pieces(pieces: Pieces, size: int, fill: int) -> Pieces:
    if size <= pieces.size:
        kept = pieces.starts < size
        return Pieces(size, pieces.starts[kept], pieces.coefficients[kept])
    last = pieces.coefficients[-1].tolist()
    if last == [fill, 0, 0]:
        return Pieces(size, pieces.starts.copy(), pieces.coefficients.copy())
    filled = np.array([[fill, 0, 0]], dtype=np.int64)
    starts = np.append(pieces.starts, pieces.size)
    return Pieces(size, starts, np.concatenate((pieces.coefficients, filled)))


def _resized_tiles(tiles: Tiles, dimension: int, size: int, fill: int) -> Tiles:
    values, along = tiles.values, list(tiles.along)
    classes = along[dimension]
    if size <= classes.size:
        along[dimension] = _resized_pieces(classes, size, 0)
        return tiled(tuple(along), values)
    new = values.shape[dimension]
    labels = np.append(classes.coefficients[:, 0], new)
    starts = np.append(classes.starts, classes.size)
    along[dimension] = constant_runs(starts, labels, size)
    widths = [(0, 1 if i == dimension else 0) for i in range(values.ndim)]
    return tiled(tuple(along), np.pad(values, widths, constant_values=fill))
