"""The cost of a history as a sum of tables, each over classes of the levels of a few axes.

    B_cell <= constant + sum over tables of  table at the cell

Rows on the same axes are added up in one table, which distinguishes only the levels that they do.
The two sides are equal unless a row alone spans too many classes: its part in the sum is then
larger than its cost at some cells. Nothing here looks for a maximum.

Levels that no array distinguishes are one class, represented by one of them. A thousand predicates
on an axis of a million levels still make few classes, because predicates are ranges and lists. All
further computation is on classes, and loses nothing. Along an axis with curves, the levels where a
piece begins or ends stand for all between them, as what rows cost is nowhere larger there.

Proof: proofs/ledger.md, "The most expensive cell".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.noise import Price, Whole
from accountant.auditor.rows import Curve, LevelArray, Scope, Share, Term

N_STACKED_MAX = 2**22  # numbers sorted at once

Indices = NDArray[np.intp]


def distinct_columns(vectors: Sequence[NDArray[np.int64]]) -> tuple[Indices, Indices]:
    """The places at which vectors of one length differ.

    Returns
    -------
    first : (n_distinct,) ndarray
        A place for each distinct column.
    label : (length,) ndarray
        For each place, the number of the column that it equals.
    """
    length = vectors[0].size
    changes = np.zeros(length, dtype=bool)
    changes[0] = True
    for vector in vectors:
        changes[1:] |= vector[1:] != vector[:-1]
    starts = np.flatnonzero(changes)
    label = np.zeros(starts.size, dtype=np.int64)
    n_at_once = max(1, N_STACKED_MAX // starts.size)
    for begin in range(0, len(vectors), n_at_once):
        some = [vector[starts] for vector in vectors[begin : begin + n_at_once]]
        label = _label(np.stack([label, *some]))
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return starts[first], np.repeat(inverse.ravel(), np.diff(starts, append=length))


def _label(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each column of a table; equal columns have equal numbers."""
    order = np.lexsort(table)
    is_new = (np.diff(table[:, order], axis=1) != 0).any(axis=0)
    label = np.empty_like(order)
    label[order] = np.cumsum([0, *is_new])
    return label


def _at(keys: NDArray[np.int64] | Curve, levels: Indices) -> NDArray[np.int64]:
    """The numbers at some levels."""
    return keys.at(levels) if isinstance(keys, Curve) else keys[levels]


def _dense(keys: NDArray[np.int64] | Curve) -> NDArray[np.int64]:
    return keys.dense() if isinstance(keys, Curve) else keys


def _starts(keys: NDArray[np.int64] | Curve) -> Indices:
    """Where pieces, or runs, begin."""
    if isinstance(keys, Curve):
        return keys.starts
    return np.append(0, np.flatnonzero(keys[1:] != keys[:-1]) + 1)


class AxisClasses:
    """The classes of one axis, from all arrays of a history.

    Parameters
    ----------
    axis : str
    appeared : dict of LevelArray to int
        The arrays in the order in which they appear, each with the number of the first row that
        uses it.

    Attributes
    ----------
    levels : (n_classes,) ndarray
        One level of each class.
    n_levels : int
        The number of all levels.
    segments : (n_segments,) ndarray
        Where levels begin that follow one another and cost the same, or no more than the ends do.
    ends : (2, n_segments) ndarray
        The class of the first and of the last level of each segment.
    """

    def __init__(self, axis: str, appeared: dict[LevelArray, int]) -> None:
        self._axis = axis
        keys = [array.keys(axis) for array in appeared]
        if any(isinstance(key, Curve) for key in keys):
            self._take_ends(appeared, keys)
        else:
            self.levels, of_level = distinct_columns([_dense(key) for key in keys])
            self.segments = np.flatnonzero(np.diff(of_level, prepend=-1))
            self.ends = np.stack((of_level[self.segments], of_level[self.segments]))
            self.n_levels = of_level.size
            self._keys = {
                one: _at(key, self.levels) for one, key in zip(appeared, keys, strict=True)
            }
        self._appeared = list(appeared.items())
        self._n_looked_at = 0
        self._label = np.zeros(self.levels.size, dtype=np.int64)
        self._distinguished: Indices = np.zeros(1, dtype=np.intp)

    def _take_ends(
        self, appeared: Iterable[LevelArray], keys: Sequence[NDArray[np.int64] | Curve]
    ) -> None:
        """Classes of the levels at which a piece of some array begins or ends."""
        self.n_levels = keys[0].size
        self.segments = np.unique(np.concatenate([_starts(key) for key in keys]))
        last = np.append(self.segments[1:], self.n_levels) - 1
        places = np.concatenate((self.segments, last))
        at_places = [_at(key, places) for key in keys]
        first, label = distinct_columns(at_places)
        self.levels, self.ends = places[first], label.reshape(2, -1)
        self._keys = {one: key[first] for one, key in zip(appeared, at_places, strict=True)}

    def by(self, arrays: Sequence[LevelArray]) -> tuple[Indices, Indices]:
        """The classes that a few arrays distinguish, in the form of `distinct_columns`.

        The arrays must be from the history, or distinguish no more than those.
        """
        for array in arrays:
            if array not in self._keys:
                self._keys[array] = _at(array.keys(self._axis), self.levels)
        return distinct_columns([self._keys[array] for array in arrays])

    def distinguished(self, n_rows: int) -> Indices:
        """Representatives of the classes that the first `n_rows` rows, at least, distinguish."""
        while (
            self._distinguished.size < self.levels.size
            and self._appeared[self._n_looked_at][1] < n_rows
        ):
            array, _ = self._appeared[self._n_looked_at]
            self._n_looked_at += 1
            self._distinguished, self._label = distinct_columns([self._label, self._keys[array]])
            if self._n_looked_at == len(self._appeared):
                break
        return self._distinguished


def classes_of(rows: Sequence[Sequence[LevelArray]]) -> dict[str, AxisClasses]:
    """The classes of every axis, from the arrays of each row in order."""
    appeared: dict[str, dict[LevelArray, int]] = {}
    for place, arrays in enumerate(rows):
        for array in arrays:
            for axis in array.axes:
                appeared.setdefault(axis, {}).setdefault(array, place)
    return {axis: AxisClasses(axis, of_axis) for axis, of_axis in appeared.items()}


N_TABLE_CELLS_MAX: Final = 2**18  # of one table; rows that need more are split over several
TOTAL_MAX: Final = 2**50  # totals below this leave room for the sums inside a bound


@dataclass(frozen=True, eq=False)
class Row:
    """A share at a price."""

    share: Share
    price: Price

    @property
    def bound(self) -> int:
        """A bound on its cost for every cell."""
        return self.price.of(self.share.bound)


class Table:
    """The cost of the rows on some axes, on the classes of levels that these rows distinguish.

    Attributes
    ----------
    axes : tuple of str
    label : list of (n_classes,) ndarray
        For each axis, the place in this table of each class of the whole history.
    shape : tuple of int
    """

    def __init__(
        self, axes: Scope, shares: Sequence[Share], classes: Mapping[str, AxisClasses]
    ) -> None:
        arrays = list(dict.fromkeys(array for share in shares for array in share.arrays))
        self.axes = axes
        self.label: list[Indices] = []
        self._levels: list[Indices] = []
        for axis in axes:
            first, label = classes[axis].by([one for one in arrays if axis in one.axes])
            self.label.append(label)
            self._levels.append(classes[axis].levels[first])
        self.shape = tuple(levels.size for levels in self._levels)
        self._at_classes: dict[LevelArray, NDArray[np.int64]] = {}

    def cost(self, row: Row, dtype: type[Any]) -> Whole:
        """The cost of one row, in a shape that broadcasts to the table."""
        return row.price.of_all(self._size(row.share, dtype))

    def _size(self, share: Share, dtype: type[Any]) -> Whole:
        if len(share.terms) == 1:
            return self._product(share.terms[0].scale, share.arrays, dtype)
        total = self._product(0, (), dtype)
        for term in share.terms:
            total = total + self._product(term.scale, term.arrays, dtype)
        inside = () if share.inside is None else (share.inside,)
        return np.abs(total) * self._product(1, inside, dtype)

    def _product(self, scale: int, arrays: Sequence[LevelArray], dtype: type[Any]) -> Whole:
        product: Whole = np.array(scale, dtype=dtype)
        for array in arrays:
            product = product * self._restricted(array)
        return product

    def _restricted(self, array: LevelArray) -> NDArray[np.int64]:
        """An array at the table's classes, in its dimensions."""
        known = self._at_classes.get(array)
        if known is None:
            places = [self.axes.index(name) for name in array.axes]
            small = array.at(np.ix_(*(self._levels[place] for place in places)))
            shape = [1] * len(self.axes)
            for place, size in zip(places, small.shape, strict=True):
                shape[place] = size
            known = self._at_classes[array] = small.reshape(shape)
        return known


@dataclass(frozen=True, slots=True)
class Part:
    """A row, and the place of the table that it is added to; None for a row that is constant."""

    row: Row
    table: int | None


class Layout:
    """The assignment of rows to tables.

    Parameters
    ----------
    rows : sequence of Row
        The whole history, in order.

    Attributes
    ----------
    classes : mapping of str to AxisClasses
    tables : list of Table
    parts : list of list of Part
        The parts of each row.
    dtype : type
        int64 if no sum can overflow, else object.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.classes = classes_of([row.share.arrays for row in rows])
        self.tables: list[Table] = []
        self.parts: list[list[Part]] = [[] for _ in rows]
        self.own: dict[str, int] = {}
        total = sum(row.bound for row in rows)
        largest = max((row.share.bound for row in rows), default=0)
        self.dtype: type[Any] = np.int64 if max(total, largest) < TOTAL_MAX else object
        by_scope: dict[Scope, list[tuple[int, Row]]] = {}
        bounding: dict[Share, list[Share]] = {}
        for place, row in enumerate(rows):
            if row.share not in bounding:
                bounding[row.share] = _bounding(row.share)
            for part in _parts(row, bounding[row.share]):
                by_scope.setdefault(part.share.axes, []).append((place, part))
        for axis in self.classes:
            shares = [share for share in bounding if axis in share.axes]
            self.own[axis] = len(self.tables)
            self.tables.append(Table((axis,), shares, self.classes))
        for axes, placed in by_scope.items():
            self._make(axes, placed)

    def _make(self, axes: Scope, placed: Sequence[tuple[int, Row]]) -> None:
        """A table for rows on the same axes, or several if one would be too large."""
        if not axes or axes[1:] == ():
            own = self.own[axes[0]] if axes else None
            for place, row in placed:
                self.parts[place].append(Part(row, own))
            return
        table = Table(axes, [row.share for _, row in placed], self.classes)
        middle = len(placed) // 2
        if middle and math.prod(table.shape) > N_TABLE_CELLS_MAX:
            self._make(axes, placed[:middle])
            self._make(axes, placed[middle:])
            return
        for place, row in placed:
            self.parts[place].append(Part(row, len(self.tables)))
        self.tables.append(table)


def _parts(row: Row, shares: Sequence[Share]) -> list[Row]:
    """The row at each of the shares whose sum bounds its own."""
    if len(shares) == 1:
        return [row if shares[0] is row.share else Row(shares[0], row.price)]
    price = row.price.of_part(sum(share.bound for share in shares))
    return [Row(share, price) for share in shares]


def _bounding(share: Share) -> list[Share]:
    """Shares whose sum is the given one; or nowhere below it, if it spans too many classes."""
    if _n_cells(share) <= N_TABLE_CELLS_MAX:
        return [share]
    if len(share.terms) > 1:  # the magnitude of a sum is at most the sum of magnitudes
        terms = [Term(abs(term.scale), _magnitudes(term)) for term in share.terms]
        return [one for term in terms for one in _bounding(Share((term,), share.inside))]
    (term,) = share.terms
    widest = max(share.arrays, key=lambda array: array.n_classes)
    if widest is share.inside:
        return _bounding(Share(share.terms, None))
    others = tuple(array for array in term.arrays if array is not widest)
    return _bounding(Share((Term(term.scale * widest.bound, others),), share.inside))


def _magnitudes(term: Term) -> tuple[LevelArray, ...]:
    return tuple(array.magnitude for array in term.arrays)


def _n_cells(share: Share) -> int:
    """An upper bound on its number of classes of cells."""
    return math.prod(array.n_classes for array in share.arrays)
