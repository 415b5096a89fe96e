"""The cost of a history as a sum of tables, each over classes of the levels of a few axes.

    B_cell <= constant + sum over tables of  table at the cell

Rows on the same axes are added up in one table, which distinguishes only the levels that they do.
The two sides are equal unless a row alone spans too many classes: its part in the sum is then
larger than its cost at some cells. Nothing here looks for a maximum.
Proof: proofs/ledger.md, "The most expensive cell".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.classes import AxisClasses, Indices, classes_of
from accountant.auditor.prices import Price, Whole
from accountant.auditor.rows import LevelArray, Scope, Share, Term

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
    """What a row adds to one table; or to the constant, without a table, if it is constant."""

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
        int64 if no sum can overflow.
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
