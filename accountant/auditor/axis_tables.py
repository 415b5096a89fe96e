"""The tables with one axis, and the numbers moved between them at each class of the axis.

At each class of the axis, a number is added to each table, and these numbers sum to zero, so that
the sum of the tables stays the same at every cell. A table that does not distinguish two classes
has to use the larger of their numbers.

There are hundreds of tables, and most are small. So all of them are in one long array, in which the
small ones of an axis are read and changed at once. Nothing here knows why numbers are moved.
Proof: proofs/ledger.md, "The most expensive cell".
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from accountant.auditor.classes import Indices
from accountant.auditor.prices import Whole
from accountant.auditor.tables import Table

N_SMALL_MAX: Final = 2**10  # cells; larger tables are worth calls of their own


class Tilted:
    """A table, the rows added to it so far, and the numbers moved to it from others.

    Parameters
    ----------
    table : Table
    cells : (n_all_cells,) ndarray
        The cells of all tables, initially zero; this table's begin at `first`.
    first : int

    Attributes
    ----------
    values : ndarray
        The sum of its rows.
    tilted : ndarray
        The same, plus the largest number that was moved to any of the levels in a class; a part
        of `cells`.
    peak : int
        The largest of `tilted`.
    """

    def __init__(self, table: Table, cells: Whole, first: int) -> None:
        self.table = table
        self.first = first
        self.values: Whole = np.zeros(table.shape, dtype=cells.dtype)
        self.tilted: Whole = cells[first : first + self.values.size].reshape(table.shape)
        self.peak = 0

    def add(self, cost: Whole) -> None:
        """Add a row."""
        self.values += cost
        self.tilted += cost
        self.peak = int(self.tilted.max())

    def along(self, dimension: int) -> Whole:
        """The largest of `tilted` in each class of one of its axes."""
        left = self.tilted
        if dimension > 0:  # one maximum over dimensions on both sides takes several times longer
            left, dimension = np.maximum.reduce(left, axis=0), dimension - 1
        others = tuple(n for n in range(left.ndim) if n != dimension)
        most: Whole = np.maximum.reduce(left, axis=others) if others else left
        return most

    def tilt(self, dimension: int, numbers: Whole) -> None:
        """Add a number to each class of one of its axes; the caller updates the peak."""
        self.tilted += numbers.reshape(
            [-1 if n == dimension else 1 for n in range(self.values.ndim)]
        )

    def places(self, dimension: int) -> Indices:
        """The places of its cells among those of all tables, by the class of one of its axes."""
        places = np.arange(self.first, self.first + self.values.size).reshape(self.values.shape)
        return np.moveaxis(places, dimension, 0).ravel()


class AxisTables:
    """The tables with one axis, and the numbers moved between them.

    Parameters
    ----------
    axis : str
    n_classes : int
        The number of classes of the axis, in the whole history.
    cells : (n_all_cells,) ndarray
        The cells of all tables.
    tables : sequence of Tilted
        The tables with the axis, in the order in which they come into use.

    Attributes
    ----------
    tables : sequence of Tilted
        The tables in use.
    reach : int
        A bound on the magnitude of every moved number.
    """

    def __init__(self, axis: str, n_classes: int, cells: Whole, tables: Sequence[Tilted]) -> None:
        self.tables: Sequence[Tilted] = ()
        self.reach = 0
        self._cells = cells
        self._every = tables
        self._dimensions = [one.table.axes.index(axis) for one in tables]
        self._large = [n for n, one in enumerate(tables) if one.values.size > N_SMALL_MAX]
        labels = [one.table.label[n] for one, n in zip(tables, self._dimensions, strict=True)]
        sizes = [one.values.shape[n] for one, n in zip(tables, self._dimensions, strict=True)]
        # A row for each table: the moved numbers, and the table's class of each history class.
        self._moved: Whole = np.zeros((len(tables), n_classes), dtype=cells.dtype)
        self._ends = np.cumsum([0, *sizes]).tolist()
        self._label = np.stack(labels) + np.array(self._ends[:-1])[:, np.newaxis]
        # For each class of each table: where it is in `_moved`, and the largest number there.
        self._order = np.argsort(self._label, axis=None, kind="stable")
        self._starts = np.flatnonzero(np.diff(self._label.ravel()[self._order], prepend=-1))
        self._largest: Whole = np.zeros(self._ends[-1], dtype=cells.dtype)
        self._small = _Small.of(tables, self._dimensions)

    def use_next(self) -> int:
        """Start using the next table; its number here."""
        number = len(self.tables)
        self.tables = self._every[: number + 1]
        return number

    def read(self) -> tuple[Whole, Whole]:
        """The cells of the small tables, for `replace`, and the largest value in every table.

        The latter by class, without the moved numbers: a row for each table, a column for each
        class of the history.
        """
        n_tables = len(self.tables)
        small = self._small.up_to(self._ends[n_tables])
        cells = self._cells.take(small.places)
        own: Whole = np.empty(self._ends[n_tables], dtype=cells.dtype)
        own[small.classes] = np.maximum.reduceat(cells, small.first)
        for number in self._large_in_use():
            own[self._part(number)] = self.tables[number].along(self._dimensions[number])
        own -= self._largest[: own.size]
        return cells, own[self._label[:n_tables]]

    def most(self, number: int) -> Whole:
        """The largest value in one table, by class."""
        own = self.tables[number].along(self._dimensions[number]) - self.largest(number)
        most: Whole = own[self._label[number] - self._ends[number]] + self._moved[number]
        return most

    def largest(self, number: int) -> Whole:
        """The largest number that was moved to each of a table's own classes."""
        return self._largest[self._part(number)]

    def replace(self, moved: Whole, cells: Whole) -> None:
        """Replace the moved numbers, a row for each table. The caller updates the peaks.

        `cells` is the last result of `read`, and is changed.
        """
        n_own = self._ends[len(moved)]
        small = self._small.up_to(n_own)
        self._moved[: len(moved)] = moved
        self.reach = int(np.abs(moved).max())
        largest = np.maximum.reduceat(
            moved.ravel()[self._order[: moved.size]], self._starts[:n_own]
        )
        change = largest - self._largest[:n_own]
        self._largest[:n_own] = largest
        cells += np.repeat(change[small.classes], small.n_cells)
        self._cells[small.places] = cells
        for number in self._large_in_use():
            self.tables[number].tilt(self._dimensions[number], change[self._part(number)])

    def move(self, numbers: Whole, source: int, target: int) -> None:
        """Move further numbers from one table to another."""
        self.reach += int(np.abs(numbers).max())
        self._add(source, -numbers)
        self._add(target, numbers)

    def _add(self, number: int, numbers: Whole) -> None:
        self._moved[number] += numbers
        first = number * numbers.size
        order = self._order[first : first + numbers.size]
        starts = self._starts[self._part(number)] - first
        largest = np.maximum.reduceat(self._moved.ravel()[order], starts)
        table, before = self.tables[number], self.largest(number)
        table.tilt(self._dimensions[number], largest - before)
        before[:] = largest
        table.peak = int(table.tilted.max())

    def _part(self, number: int) -> slice:
        """A table's own classes among those of all tables."""
        return slice(self._ends[number], self._ends[number + 1])

    def _large_in_use(self) -> Sequence[int]:
        return self._large[: bisect_left(self._large, len(self.tables))]


@dataclass(frozen=True, slots=True, eq=False)
class _Small:
    """The cells of small tables, by the classes of one axis.

    Parameters
    ----------
    places : (n_cells,) ndarray
        Their places among the cells of all tables.
    classes : (n_classes,) ndarray
        Their classes among the own classes of all tables.
    first : (n_classes,) ndarray
        The first place of each class in `places`.
    n_cells : (n_classes,) ndarray
        The number of cells of each class.
    """

    places: Indices
    classes: Indices
    first: Indices
    n_cells: Indices

    @classmethod
    def of(cls, tables: Sequence[Tilted], dimensions: Sequence[int]) -> Self:
        """The cells of `tables`, in each of which the axis is the given dimension."""
        places, classes, n_cells = [_NONE], [_NONE], [_NONE]
        end = 0
        for tilted, dimension in zip(tables, dimensions, strict=True):
            n_own = tilted.values.shape[dimension]
            if tilted.values.size <= N_SMALL_MAX:
                places.append(tilted.places(dimension))
                classes.append(np.arange(end, end + n_own))
                n_cells.append(np.full(n_own, tilted.values.size // n_own))
            end += n_own
        of_each = np.concatenate(n_cells)
        first = np.cumsum(of_each) - of_each
        return cls(np.concatenate(places), np.concatenate(classes), first, of_each)

    def up_to(self, end: int) -> "_Small":
        """The cells of the classes before `end`, among the classes of all tables."""
        n_classes = int(np.searchsorted(self.classes, end))
        n_cells = int(self.first[n_classes]) if n_classes < self.first.size else self.places.size
        return _Small(
            self.places[:n_cells],
            self.classes[:n_classes],
            self.first[:n_classes],
            self.n_cells[:n_classes],
        )


_NONE: Final = np.zeros(0, dtype=np.intp)
