"""Answers along the axis of time: rows as sums and differences of the same rows on other intervals.

On a table that grows, what was counted up to an earlier day is the same query on fewer levels of
the axis of time. Take the axis away, and today's total, last week's total and the days in between
are one query, its *shape*, on several intervals of the axis, its *stretches*. Blocks of one shape
add up along the axis, whatever else they ask. A block with a condition that is an interval has one
stretch; one that is grouped by the axis has a stretch for each run of its levels. Rows that are
about no interval have none.

A total up to today is yesterday's total and what came since; last week is the difference of two
totals. The stretches of one shape that were measured are the edges of a graph, the ends of their
intervals its nodes, and what is asked is a chain of edges from one node to another: an edge that is
followed backwards is subtracted. Of all chains the least noisy one is read, by weights alone: its
length is the sum of the variances.

Every stretch of a block is measured with the same noise, so one chain serves all its groups. The
coefficients are 1 and -1 exactly. Chains that share an end are not averaged: what several of them
say together the joint estimate says (`workspaces.py`), where the rows are few.

Nothing here knows budgets. What a stretch is knows no noisy values, nor which ones are measured.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from cube.classes import Tiles, by_first_appearance, first_places
from cube.measurement import Measurement
from cube.pieces import Pieces
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term
from inference.blue.partition_reader import Reading
from inference.history import History

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


@dataclass(frozen=True, eq=False, slots=True)
class MeasuredStretch:
    """A stretch of a measurement of the history.

    Parameters
    ----------
    place : int
        The measurement's place in the history.
    measurement : Measurement
    stretch : Stretch
    """

    place: int
    measurement: Measurement
    stretch: Stretch


@dataclass(frozen=True, eq=False, slots=True)
class Link:
    """A measured stretch in a chain: added with a sign of 1, subtracted with one of -1."""

    measured: MeasuredStretch
    sign: int


_Measured = Mapping[tuple[int, int], MeasuredStretch]  # of one shape, by start and end


class StretchesReader:
    """The measured stretches along one axis.

    Parameters
    ----------
    axis : str
    size : int
        The number of levels of the axis.
    """

    def __init__(self, axis: str, size: int) -> None:
        self.axis = axis
        self.size = size
        self._n_seen = 0
        self._of_shape: dict[bytes, _Measured] = {}
        self._graphs: dict[bytes, _Graph] = {}
        self._stretches: WeakKeyDictionary[QueryBlock, tuple[Stretch, ...]] = WeakKeyDictionary()

    def forked(self) -> "StretchesReader":
        """A copy for a copy of the history, which grows independently."""
        other = StretchesReader(self.axis, self.size)
        other._n_seen = self._n_seen
        other._of_shape = self._of_shape.copy()
        other._graphs = self._graphs.copy()
        other._stretches = self._stretches
        return other

    def take_in(self, history: History) -> None:
        """Take in the measurements that were added to the history since the last time.

        Of several on one interval the most precise is kept; a raised one is.
        """
        changed: dict[bytes, dict[tuple[int, int], MeasuredStretch]] = {}
        for place in range(self._n_seen, len(history)):
            measurement = history[place]
            for stretch in self.stretches_of(measurement.block):
                known = changed.get(stretch.shape)
                if known is None:
                    known = changed[stretch.shape] = dict(self._of_shape.get(stretch.shape, {}))
                held = known.get((stretch.start, stretch.end))
                if held is None or held.measurement.noise_scale > measurement.noise_scale:
                    one = MeasuredStretch(place, measurement, stretch)
                    known[stretch.start, stretch.end] = one
        self._n_seen = len(history)
        self._of_shape.update(changed)  # forks share the others
        for shape in changed:
            self._graphs.pop(shape, None)

    def stretches_of(self, block: QueryBlock) -> tuple[Stretch, ...]:
        """The stretches of a block in lowest terms."""
        if block not in self._stretches:
            self._stretches[block] = stretches_of(block, self.axis, self.size)
        return self._stretches[block]

    def read(self, block: QueryBlock) -> Reading | None:
        """The rows of a block in lowest terms as sums of measured ones; None if there are none."""
        asked: dict[bytes, list[Stretch]] = {}
        for stretch in self.stretches_of(block):
            if stretch.shape in self._of_shape:
                asked.setdefault(stretch.shape, []).append(stretch)
        found = [
            (stretch, chain)
            for shape, stretches in asked.items()
            for stretch, chain in zip(stretches, self._graph(shape).chains(stretches), strict=True)
            if chain
        ]
        return _summed(found, block.n_rows) if found else None

    def known_part(self, stretch: Stretch) -> tuple[Link, ...]:
        """The least noisy chain from a stretch's start to the last place within it that has one."""
        if stretch.shape not in self._of_shape:
            return ()
        return self._graph(stretch.shape).longest_chain(stretch)

    def _graph(self, shape: bytes) -> "_Graph":
        if shape not in self._graphs:
            self._graphs[shape] = _Graph(self._of_shape[shape])
        return self._graphs[shape]


class _Graph:
    """The measured stretches of one shape, as a graph of the ends of their intervals."""

    def __init__(self, measured: _Measured) -> None:
        self._measured = measured
        self._ends = np.unique(np.array(list(measured), dtype=np.int64))
        self._place = {end: place for place, end in enumerate(self._ends.tolist())}
        first, last = ([self._place[one[side]] for one in measured] for side in (0, 1))
        variances = [one.measurement.noise_scale**2 for one in measured.values()]
        n_ends = self._ends.size
        self._lengths = sparse.csr_array((variances, (first, last)), shape=(n_ends, n_ends))

    def chains(self, stretches: Sequence[Stretch]) -> Iterator[tuple[Link, ...]]:
        """The least noisy chain of each stretch; an empty one where there is none."""
        starts = sorted({one.start for one in stretches} & self._place.keys())
        before = {}
        if starts:
            _, found = self._shortest(starts)
            before = dict(zip(starts, found, strict=True))
        for one in stretches:
            is_reached = one.start in before and one.end in self._place
            yield self._chain(before[one.start], one.start, one.end) if is_reached else ()

    def longest_chain(self, stretch: Stretch) -> tuple[Link, ...]:
        """The chain from a stretch's start that reaches furthest within it."""
        if stretch.start not in self._place:
            return ()
        (lengths,), (before,) = self._shortest([stretch.start])
        is_within = np.isfinite(lengths) & (self._ends > stretch.start)
        reached = self._ends[is_within & (self._ends <= stretch.end)]
        return self._chain(before, stretch.start, int(reached[-1])) if reached.size else ()

    def _shortest(self, starts: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """The distance of each end from each start, and the end before it on the way."""
        places = [self._place[start] for start in starts]
        lengths, before = dijkstra(
            self._lengths, directed=False, indices=places, return_predecessors=True
        )
        return lengths, before

    def _chain(self, before: NDArray[np.int32], start: int, end: int) -> tuple[Link, ...]:
        """The links from one end to another; none if there is no way."""
        links: list[Link] = []
        while end != start:
            place = int(before[self._place[end]])
            if place < 0:
                return ()
            previous = int(self._ends[place])
            forward = previous < end
            interval = (previous, end) if forward else (end, previous)
            links.append(Link(self._measured[interval], 1 if forward else -1))
            end = previous
        return tuple(reversed(links))


def _summed(found: Sequence[tuple[Stretch, Sequence[Link]]], n_rows: int) -> Reading:
    """Chains as sums of noisy values, group by group."""
    rows: list[Integers] = []
    used: list[Integers] = []
    links: list[Link] = []
    is_covered = np.zeros(n_rows, dtype=np.bool_)
    for stretch, chain in found:
        is_covered[stretch.rows] = True
        for link in chain:
            rows.append(stretch.rows)
            used.append(link.measured.stretch.rows)
            links.append(link)
    n_groups = [one.size for one in rows]
    measured = [link.measured.measurement for link in links]
    values = [one.values[groups] for one, groups in zip(measured, used, strict=True)]
    return Reading(
        row=np.concatenate(rows),
        coefficient=np.repeat([float(link.sign) for link in links], n_groups),
        value=np.concatenate(values),
        noise_scale=np.repeat([one.noise_scale for one in measured], n_groups),
        is_gaussian=np.repeat([one.is_gaussian for one in measured], n_groups),
        lattice_widening=np.repeat([one.lattice_widening for one in measured], n_groups),
        noise_place=np.repeat([link.measured.place for link in links], n_groups),
        noise_row=np.concatenate(used),
        is_covered=is_covered,
    )
