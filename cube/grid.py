"""Grids: levels that no query distinguishes, merged axis by axis.

Almost every query cuts an axis into two or three pieces, whatever the number of levels. A `Grid`
keeps, for each of its axes, the classes of levels on which all the arrays that it has seen agree.
Computing on products of classes instead of products of levels then loses nothing.

On an axis along which arrays rise or fall, a class has a part for each power (`classes.py`), and
the cells of the grid are the products of parts: a query is there what its polynomials' coefficients
are, which add up as its values do.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import AxisClasses, Tiles
from cube.pieces import Pieces, runs_of
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Scope, Term, check_scope
from cube.runtime import cached_property


@dataclass(frozen=True, eq=False)
class Grid:
    """Classes of levels on a few axes; its cells are the products of their parts.

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
            raise ValueError("each axis needs exactly one set of classes")

    @classmethod
    def undivided(cls, axes: Scope, sizes: tuple[int, ...]) -> "Grid":
        """One class for each axis: the grid before any query."""
        return cls(axes, tuple(AxisClasses.undivided(size) for size in sizes))

    @cached_property
    def position(self) -> dict[str, int]:
        """The place of each axis, by name."""
        return {name: place for place, name in enumerate(self.axes)}

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of parts of each axis."""
        return tuple(classes.n_parts for classes in self.classes)

    @cached_property
    def n_cells(self) -> int:
        """The number of products of parts, exactly."""
        return math.prod(self.shape)

    def cell_sizes(self) -> NDArray[np.float64]:
        """The number of cube cells in the classes of each grid cell, in the grid's shape."""
        sizes = np.ones((), dtype=np.float64)
        for classes in self.classes:
            sizes = np.multiply.outer(sizes, classes.sizes.astype(np.float64))
        return sizes

    def refined(self, blocks: Iterable[QueryBlock]) -> "Grid":
        """Split classes until every array of `blocks` is one polynomial on each; mostly a constant.

        The blocks' scopes must lie within the grid's axes.
        """
        along: dict[str, list[Pieces]] = {}
        for part in dict.fromkeys(chain.from_iterable(map(_parts_of, blocks))):
            for name, keys in _keys_of(part):
                along.setdefault(name, []).append(keys)
        classes = list(self.classes)
        for name, arrays in along.items():
            place = self.position[name]
            classes[place] = classes[place].refined(*arrays)
        if all(new is old for new, old in zip(classes, self.classes, strict=True)):
            return self
        return Grid(self.axes, tuple(classes))

    @cached_property
    def n_powers(self) -> int:
        """The number of parts of each product of classes."""
        return math.prod(classes.n_powers for classes in self.classes)

    def parents(self, finer: "Grid") -> NDArray[np.int64]:
        """The cell that each cell of a finer grid is a piece of; -1 for a power that is new."""
        place = np.zeros([1] * len(self.axes), dtype=np.int64)
        is_new = np.zeros([1] * len(self.axes), dtype=np.bool_)
        for dimension, (old, new) in enumerate(zip(self.classes, finer.classes, strict=True)):
            along = self._along(old.parents(new), dimension)
            place = place * old.n_parts + along
            if new.degree:
                is_new = is_new | (along < 0)
        return (np.where(is_new, -1, place) if finer.n_powers > 1 else place).ravel()

    def labels(self, axes: Scope, groups: NDArray[np.int64] | Pieces | Tiles) -> NDArray[np.int64]:
        """The group of each cell, of an array over levels of `axes` that is constant on classes.

        The result has the grid's number of dimensions; axes outside `axes` have length 1.
        """
        chosen = [self.classes[self.position[name]].representatives for name in axes]
        if isinstance(groups, Pieces):
            return self._spread(axes, groups.at(chosen[0]))
        places = np.ix_(*chosen)
        found = groups.at(places) if isinstance(groups, Tiles) else groups[places]
        return self._spread(axes, found)

    def factor(self, factor: Factor) -> NDArray[np.float64]:
        """The coefficient of a factor on each cell, in the form of `labels`.

        Those of higher powers are multiplied with the largest value of the power: the error
        of a query at a level is at most the sum of the errors of its coefficients.
        """
        classes = [self.classes[self.position[name]] for name in factor.axes]
        if len(classes) == 1:
            (along,) = classes
            found = along.coefficients(factor.numbers).astype(np.float64)
            return self._spread(factor.axes, found * along.part_scales if along.degree else found)
        found = self.labels(factor.axes, factor.numbers).astype(np.float64)
        return found * self._constants(factor.axes)  # 1 unless some axis has powers

    def term(self, term: Term) -> NDArray[np.float64]:
        """The product of a term's factors (without its scale), broadcastable to the grid."""
        product = self._constants(tuple(name for name in self.axes if name not in term.scope))
        for factor in term.factors:
            product = product * self.factor(factor)
        return product

    def _constants(self, axes: Scope) -> NDArray[np.float64]:
        """1 on the cells of the lowest power of each of some axes, 0 on others."""
        product = np.ones([1] * len(self.axes))
        for name in axes if self.n_powers > 1 else ():
            classes = self.classes[self.position[name]]
            if classes.degree:
                product = product * self._spread((name,), (classes.powers == 0).astype(np.float64))
        return product

    def _spread(self, axes: Scope, values: NDArray[Any]) -> NDArray[Any]:
        """An array over the parts of some axes, with a length of 1 along all others."""
        shape = [1] * len(self.axes)
        for name, length in zip(axes, values.shape, strict=True):
            shape[self.position[name]] = length
        return values.reshape(shape)

    def _along(self, values: NDArray[np.int64], dimension: int) -> NDArray[np.int64]:
        return values.reshape([-1 if n == dimension else 1 for n in range(len(self.axes))])

    def coefficients(self, query: LinearQuery) -> NDArray[np.float64]:
        """The query's coefficient on each grid cell, as floats of the grid's shape."""
        total = np.zeros(self.shape, dtype=np.float64)
        for term in query.terms:
            total += float(term.scale) * self.term(term)
        return total


def arrays_of(
    blocks: Iterable[QueryBlock],
) -> Iterator[tuple[Scope, NDArray[np.int64] | Pieces | Tiles]]:
    """Every array over levels that occurs in the rows of `blocks`."""
    for part in chain.from_iterable(map(_parts_of, blocks)):
        yield part.axes, part.numbers if isinstance(part, Factor) else part.groups


def _parts_of(block: QueryBlock) -> Iterator[Factor | Partition]:
    """The factors and the partition of a block, which hold the arrays of its rows."""
    for term in block.query.terms:
        yield from term.factors
    if block.partition is not None:
        yield block.partition


# Weak: they may hold megabytes. Each statement refines grids by much of the history again, and many
# blocks share few factors.
_KEYS: WeakKeyDictionary[Factor | Partition, tuple[tuple[str, Pieces], ...]]
_KEYS = WeakKeyDictionary()


def _keys_of(part: Factor | Partition) -> tuple[tuple[str, Pieces], ...]:
    """For each axis of an array, its name and the keys of the array's slices."""
    known = _KEYS.get(part)
    if known is None:
        numbers = part.numbers if isinstance(part, Factor) else part.groups
        known = _KEYS[part] = tuple(
            (name, _as_pieces(slice_keys(numbers, dimension)))
            for dimension, name in enumerate(part.axes)
        )
    return known


def _as_pieces(keys: NDArray[np.int64] | Pieces) -> Pieces:
    return keys if isinstance(keys, Pieces) else runs_of(keys)


def slice_keys(
    numbers: NDArray[Any] | Pieces | Tiles, dimension: int
) -> NDArray[np.int64] | Pieces:
    """A number for each slice along `dimension`; equal numbers for equal slices."""
    if isinstance(numbers, Tiles):
        return numbers.along[dimension]
    if isinstance(numbers, Pieces) or numbers.ndim == 1:
        return numbers
    slices = np.moveaxis(numbers, dimension, 0).reshape(numbers.shape[dimension], -1)
    seen: dict[bytes, int] = {}
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in slices], dtype=np.int64)
