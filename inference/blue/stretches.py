"""Stretches: a block as rows that are each about an interval of one axis.

On a table that grows, what was counted up to an earlier day is the same query on fewer levels of
the axis of time. Take the axis away, and today's total, last week's total and the days in between
are one query, its *shape*, on several intervals of the axis. Blocks of one shape add up along the
axis, whatever else they ask.

A block with a condition that is an interval has one stretch; one that is grouped by the axis has a
stretch for each run of its levels. Rows that are about no interval have none.

Nothing here knows noisy values, or which stretches are known.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.block import Partition, QueryBlock
from cube.classes import by_first_appearance, first_places
from cube.pieces import Pieces
from cube.query import Factor, LinearQuery, Term
from cube.tiles import Tiles

N_CELLS_MAX = 2**20  # of groups by the axis and others, compared level by level

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Stretch:
    """The rows of a block that are about one interval of the axis.

    Parameters
    ----------
    shape : bytes
        Equal for equal queries and groups but for the axis.
    start, end : int
        The levels ``start .. end - 1``.
    rows : (n_groups,) ndarray of int64
        The row of the block for each group of the shape, in the order in which their first cells
        come.
    """

    shape: bytes
    start: int
    end: int
    rows: Integers


def stretches_of(block: QueryBlock, axis: str, size: int) -> tuple[Stretch, ...]:
    """The stretches of a block in lowest terms; those of its rows that have one.

    Parameters
    ----------
    block : QueryBlock
    axis : str
    size : int
        The number of levels of the axis.
    """
    inside = _condition(block.query, axis, size)
    if inside is None or block.query.is_constant:
        return ()
    name, partition = _name(block.query, axis), block.partition
    if partition is None or axis not in partition.axes:
        runs = _runs_inside(inside)
        if len(runs) != 1:
            return ()
        shape, rows = _shape(name, partition)
        return (Stretch(shape, *runs[0], rows),)
    labels = _by_level(partition, axis)
    return () if labels is None else _of_groups(name, partition, axis, labels, inside)


def on_stretch(block: QueryBlock, axis: str, size: int, start: int, end: int) -> QueryBlock:
    """A block with one stretch, on another interval of the axis, in lowest terms.

    Groups by the axis must have all of that interval in their stretch.
    """
    inside = np.zeros(size, dtype=np.int64)
    inside[start:end] = 1
    partition = block.partition
    beside: tuple[Factor, ...] = (Factor((axis,), inside),)
    if partition is not None and axis in partition.axes:
        sizes = [size if one == axis else 1 for one in partition.axes]
        labels = np.where(inside.reshape(sizes) == 1, partition.labels, -1)
        partition, beside = Partition(partition.axes, labels), ()
    terms = tuple(
        Term(term.scale, (*(one for one in term.factors if one.axes != (axis,)), *beside))
        for term in block.query.terms
    )
    return QueryBlock(LinearQuery(terms), partition).primitive[0]


def _condition(query: LinearQuery, axis: str, size: int) -> Integers | None:
    """1 on the levels that a query is about, 0 elsewhere; None if that is not all of its axis."""
    found: Integers | None = None
    for term in query.terms:
        along = np.ones(size, dtype=np.int64)
        for factor in term.factors:
            if axis in factor.axes:
                if factor.axes != (axis,) or factor.ends != (0, 1):
                    return None
                along = factor.values
        if found is not None and not np.array_equal(found, along):
            return None
        found = along
    return found


def _runs_inside(inside: Integers) -> list[tuple[int, int]]:
    """The runs of levels with a 1: the first, and the one after the last."""
    steps = np.diff(inside, prepend=0, append=0)
    begins, ends = np.flatnonzero(steps > 0).tolist(), np.flatnonzero(steps < 0).tolist()
    return list(zip(begins, ends, strict=True))


def _name(query: LinearQuery, axis: str) -> bytes:
    """Equal for equal queries but for their conditions on the axis."""
    parts = []
    for term in query.terms:
        parts.append(repr(term.scale).encode())
        for factor in term.factors:
            if factor.axes != (axis,):
                parts += [repr((factor.axes, factor.shape)).encode(), factor.content]
        parts.append(b"term")
    return _digest(*parts)


def _shape(name: bytes, partition: Partition | None) -> tuple[bytes, Integers]:
    """The name of a query's shape with groups, and the row of each group of the shape."""
    if partition is None:
        return name, np.zeros(1, dtype=np.int64)
    groups, within = partition.groups, b""
    if isinstance(groups, Pieces):
        within, labels = groups.starts.tobytes(), groups.coefficients[:, 0]
    elif isinstance(groups, Tiles):
        within = b"".join(one.content for one in groups.along)
        labels = groups.values.ravel()
    else:
        labels = groups.ravel()
    numbers, rows = _renumbered(labels)
    kind = repr((partition.axes, partition.shape, type(groups).__name__)).encode()
    return _digest(name, kind, within, numbers.tobytes()), rows


def _by_level(partition: Partition, axis: str) -> Integers | None:
    """The group of each cell, with a line for each level of the axis; None if they are many."""
    if partition.n_cells > N_CELLS_MAX:
        return None
    place = partition.axes.index(axis)
    return np.moveaxis(partition.labels, place, 0).reshape(partition.shape[place], -1)


def _of_groups(
    name: bytes, partition: Partition, axis: str, labels: Integers, inside: Integers
) -> tuple[Stretch, ...]:
    """The stretches of groups by the axis: the runs of levels with the same groups.

    A group that is in several runs is about no interval, and no group of its runs is used.
    """
    others = tuple(one for one in partition.axes if one != axis)
    sizes = tuple(
        size for one, size in zip(partition.axes, partition.shape, strict=True) if one != axis
    )
    labels = np.where(inside[:, np.newaxis] == 1, labels, -1)
    (changes,) = (labels[1:] != labels[:-1]).any(axis=1).nonzero()
    starts = [0, *(changes + 1).tolist()]
    lines = [labels[start] for start in starts]
    within = [np.unique(line[line >= 0]) for line in lines]
    n_runs = np.bincount(np.concatenate(within), minlength=1)
    found = []
    for line, groups, start, end in zip(
        lines, within, starts, [*starts[1:], labels.shape[0]], strict=True
    ):
        if not groups.size or n_runs[groups].max() > 1:
            continue
        if others:
            numbers, rows = _renumbered(line)
            left = Partition(others, numbers.reshape(sizes))
            found.append(Stretch(_shape(name, left)[0], start, end, rows))
        else:
            found.append(Stretch(name, start, end, groups))
    return tuple(found)


def _renumbered(labels: Integers) -> tuple[Integers, Integers]:
    """Labels in the order in which they first appear, and the old label of each; -1 stays."""
    (used,) = (labels >= 0).nonzero()
    numbers = np.full(labels.size, -1, dtype=np.int64)
    numbers[used] = by_first_appearance(labels[used])
    return numbers, labels[used][first_places(numbers[used])]


def _digest(*parts: bytes) -> bytes:
    """A name for some bytes, each with its length."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.digest()
