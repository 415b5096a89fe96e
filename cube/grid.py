"""Grids: levels that no query distinguishes, merged axis by axis.

Almost every query cuts an axis into two or three pieces, whatever the number of levels. A `Grid`
keeps, for each of its axes, the classes of levels on which all the arrays that it has seen agree.
Computing on products of classes instead of products of levels then loses nothing.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.cached import cached_property
from cube.query import LinearQuery, Scope, Term, check_scope

N_FEW = 48  # up to this many labels are numbered faster by a dictionary than by sorting


@dataclass(frozen=True, eq=False)
class AxisClasses:
    """The classes of one axis's levels, numbered by first appearance.

    Parameters
    ----------
    of_level : (n_levels,) ndarray of int64
        The class of each level.
    """

    of_level: NDArray[np.int64]

    @cached_property
    def representatives(self) -> NDArray[np.int64]:
        """The first level of each class, (n_classes,)."""
        return first_places(self.of_level)

    @cached_property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.of_level.max()) + 1

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of levels in each class, (n_classes,)."""
        starts = self._run_starts
        sizes = np.zeros(self.n_classes, dtype=np.int64)
        np.add.at(sizes, self.of_level[starts], _lengths(starts, self.of_level.size))
        return sizes

    @cached_property
    def _run_starts(self) -> NDArray[np.int64]:
        """Where runs of levels of one class begin; on an ordered axis there are few."""
        return run_starts(self.of_level)

    def refined(self, keys: NDArray[np.int64]) -> "AxisClasses":
        """Split the classes where `keys`, (n_levels,), differs within one."""
        # Neither keys nor classes change within these runs, so one level of each run suffices: a
        # range on an axis of a million levels is three runs.
        starts = _merged(self._run_starts, run_starts(keys))
        joint, n_classes = _numbered(self.of_level[starts], keys[starts])
        if n_classes == self.n_classes:
            return self
        return AxisClasses(np.repeat(joint, _lengths(starts, keys.size)))


@dataclass(frozen=True, eq=False)
class Grid:
    """Classes of levels on a few axes; its cells are the products of classes.

    Parameters
    ----------
    axes : tuple of str
        Sorted and distinct.
    classes : tuple of AxisClasses
        One for each axis.
    """

    axes: Scope
    classes: tuple[AxisClasses, ...]

    def __post_init__(self) -> None:
        check_scope(self.axes)
        if len(self.axes) != len(self.classes):
            raise ValueError("one set of classes for each axis")

    @classmethod
    def undivided(cls, axes: Scope, sizes: tuple[int, ...]) -> "Grid":
        """One class for each axis: the grid before any query."""
        return cls(axes, tuple(AxisClasses(np.zeros(size, dtype=np.int64)) for size in sizes))

    @cached_property
    def position(self) -> dict[str, int]:
        """The place of each axis, by name."""
        return {name: place for place, name in enumerate(self.axes)}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of classes of each axis."""
        return tuple(classes.n_classes for classes in self.classes)

    @property
    def n_cells(self) -> int:
        """The number of products of classes, exactly."""
        return math.prod(self.shape)

    def cell_sizes(self) -> NDArray[np.float64]:
        """The number of cube cells in each grid cell, as an array of the grid's shape."""
        sizes = np.ones((), dtype=np.float64)
        for classes in self.classes:
            sizes = np.multiply.outer(sizes, classes.sizes.astype(np.float64))
        return sizes

    def refined(self, blocks: Iterable[QueryBlock]) -> "Grid":
        """Split classes until every row of `blocks` is constant on each grid cell.

        The blocks' scopes must lie within the grid's axes.
        """
        classes = list(self.classes)
        for axes, values in arrays_of(blocks):
            for dimension, name in enumerate(axes):
                place = self.position[name]
                keys = slice_keys(values, dimension)
                classes[place] = classes[place].refined(keys)
        if all(new is old for new, old in zip(classes, self.classes, strict=True)):
            return self
        return Grid(self.axes, tuple(classes))

    def restricted(self, axes: Scope, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """An array over levels of `axes`, taken at one representative of each class.

        The result has the grid's number of dimensions; axes outside `axes` have length 1.
        """
        chosen = [self.classes[self.position[name]].representatives for name in axes]
        small = values[np.ix_(*chosen)]
        shape = [1] * len(self.axes)
        for name, length in zip(axes, small.shape, strict=True):
            shape[self.position[name]] = length
        return small.reshape(shape)

    def term(self, term: Term) -> NDArray[np.int64]:
        """The product of a term's factors (without its scale), broadcastable to the grid."""
        product = np.ones([1] * len(self.axes), dtype=np.int64)
        for factor in term.factors:
            product = product * self.restricted(factor.axes, factor.values)
        return product

    def coefficients(self, query: LinearQuery) -> NDArray[np.float64]:
        """The query's coefficient on each grid cell, as floats of the grid's shape."""
        total = np.zeros(self.shape, dtype=np.float64)
        for term in query.terms:
            total += float(term.scale) * self.term(term)
        return total


def first_places(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first place of each label; labels are ``0 .. n - 1``, each of them used."""
    first = np.empty(int(labels.max()) + 1, dtype=np.int64)
    # Written in reverse, so that the first place is written last and stays.
    first[labels[::-1]] = np.arange(labels.size - 1, -1, -1)
    return first


def run_starts(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place 0, and the places where a vector differs from the place before."""
    changes = np.flatnonzero(values[1:] != values[:-1])
    starts = np.empty(changes.size + 1, dtype=np.int64)
    starts[0] = 0
    np.add(changes, 1, out=starts[1:])
    return starts


def by_first_appearance(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Equal labels for equal codes, ``0 .. n - 1`` in the order in which they first appear."""
    starts = run_starts(codes)
    labels, _ = _numbered(codes[starts])
    return np.repeat(labels, _lengths(starts, codes.size))


def _numbered(
    codes: NDArray[np.int64], keys: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], int]:
    """Labels, by first appearance, equal where both vectors are equal; and how many there are."""
    if codes.size <= N_FEW:
        numbers: dict[Any, int] = {}
        each = codes.tolist() if keys is None else zip(codes.tolist(), keys.tolist(), strict=True)
        labels = [numbers.setdefault(one, len(numbers)) for one in each]
        return np.array(labels, dtype=np.int64), len(numbers)
    if keys is not None:
        _, key = np.unique(keys, return_inverse=True)
        codes = codes * (int(key.max()) + 1) + key
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size)
    return rank[inverse], first.size


def _lengths(starts: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """The lengths of the runs that begin at `starts`; the last run ends at `end`."""
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1] = end - starts[-1]
    return lengths


def _merged(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct numbers of two increasing vectors, increasing."""
    both = np.concatenate((first, second))
    both.sort(kind="stable")  # a merge: both halves are in order
    return both[run_starts(both)]


def arrays_of(blocks: Iterable[QueryBlock]) -> Iterator[tuple[Scope, NDArray[np.int64]]]:
    """Every array over levels that occurs in the rows of `blocks`."""
    for block in blocks:
        for term in block.query.terms:
            for factor in term.factors:
                yield factor.axes, factor.values
        if block.partition is not None:
            yield block.partition.axes, block.partition.labels


def slice_keys(values: NDArray[np.int64], dimension: int) -> NDArray[np.int64]:
    """A number for each slice along `dimension`; equal numbers for equal slices."""
    if values.ndim == 1:
        return values
    slices = np.moveaxis(values, dimension, 0).reshape(values.shape[dimension], -1)
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in slices], dtype=np.int64)
