"""The tables that have one axis, and what was moved from one to another at each of its classes.

To each class of the axis a number is moved to each table, and these add up to nothing, so that the
sum of the tables stays what it is at every cell. A table that does not tell two classes apart has
to take the larger of their numbers.

Kept in a few long arrays for all tables together: there are hundreds, and each is small. Nothing
here knows why numbers are moved. Proof: proofs/ledger.md, "The most expensive cell".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from accountant.auditor.classes import Indices
from accountant.auditor.tables import Table, Whole


class Tilted:
    """A table, the rows added to it so far, and what was moved to it from others.

    Attributes
    ----------
    values : ndarray
        The sum of its rows.
    tilted : ndarray
        The same, with the largest number that was moved to any of the levels in a class.
    peak : int
        The largest of `tilted`.
    """

    def __init__(self, table: Table, dtype: type[Any]) -> None:
        self.table = table
        self.values: Whole = np.zeros(table.shape, dtype=dtype)
        self.tilted = self.values.copy()
        self.peak = 0

    def add(self, cost: Whole) -> None:
        """Add a row."""
        self.values += cost
        self.tilted += cost
        self.peak = int(self.tilted.max())


class AxisTables:
    """The tables that have one axis, and what was moved between them.

    Parameters
    ----------
    n_classes : int
        Of the axis, in the whole history.
    dtype : type

    Attributes
    ----------
    tables : list of Tilted
    reach : int
        No number that was moved is further from 0.
    """

    def __init__(self, n_classes: int, dtype: type[Any]) -> None:
        self.tables: list[Tilted] = []
        self.reach = 0
        self._places: list[int] = []  # of the axis in each table
        self._parts: list[_Part] = []
        self._moved: Whole = np.zeros((0, n_classes), dtype=dtype)  # a row for each table
        self._largest: Whole = np.zeros(0, dtype=dtype)  # of it, in each table's own classes
        self._own: Whole = self._largest.copy()
        self._change: Whole = self._largest.copy()
        self._ends = [0]  # of each table's part in those
        self._label: Indices = np.zeros((0, n_classes), dtype=np.intp)
        self._order: Indices = np.zeros(0, dtype=np.intp)
        self._starts: Indices = np.zeros(0, dtype=np.intp)

    def append(self, tilted: Tilted, place: int) -> int:
        """Take in a table with the axis as its dimension `place`; which one here it is."""
        label = tilted.table.label[place]
        order = np.argsort(label, kind="stable")
        starts = np.flatnonzero(np.diff(label[order], prepend=-1))
        none_moved = np.zeros((1, label.size), dtype=self._moved.dtype)
        self._label = np.vstack([self._label, label + self._ends[-1]])
        self._order = np.concatenate([self._order, order + self._moved.size])
        self._starts = np.concatenate([self._starts, starts + self._moved.size])
        self._moved = np.vstack([self._moved, none_moved])
        self._largest = np.concatenate([self._largest, none_moved[0, : starts.size]])
        self._own, self._change = np.empty_like(self._largest), np.empty_like(self._largest)
        self._ends.append(self._largest.size)
        self.tables.append(tilted)
        self._places.append(place)
        self._parts = [self._part(number) for number in range(len(self.tables))]
        return len(self.tables) - 1

    def own(self) -> Whole:
        """The most a cell can have in each table by its class, without what was moved there.

        A row for each table, a column for each class of the history.
        """
        for part in self._parts:
            np.maximum.reduce(part.tilted, axis=part.others, out=part.own)
        self._own -= self._largest
        own: Whole = self._own[self._label]
        return own

    def most(self, number: int) -> Whole:
        """The most a cell can have in one table, by its class."""
        part = self._parts[number]
        np.maximum.reduce(part.tilted, axis=part.others, out=part.own)
        np.subtract(part.own, self.largest(number), out=part.own)
        most: Whole = self._own[self._label[number]] + self._moved[number]
        return most

    def largest(self, number: int) -> Whole:
        """The largest number that was moved to each of a table's own classes."""
        return self._largest[self._ends[number] : self._ends[number + 1]]

    def replace(self, moved: Whole) -> None:
        """Move other numbers instead, a row for each table. Peaks are for the caller to set."""
        self._moved = moved
        self.reach = int(np.abs(moved).max())
        largest = np.maximum.reduceat(moved.ravel()[self._order], self._starts)
        np.subtract(largest, self._largest, out=self._change)
        self._largest = largest
        for part in self._parts:
            np.add(part.tilted, part.change, out=part.tilted)

    def move(self, numbers: Whole, source: int, target: int) -> None:
        """Move something more from one table to another."""
        self.reach += int(np.abs(numbers).max())
        self._add(source, -numbers)
        self._add(target, numbers)

    def _add(self, number: int, numbers: Whole) -> None:
        self._moved[number] += numbers
        first = number * numbers.size
        order = self._order[first : first + numbers.size]
        starts = self._starts[self._ends[number] : self._ends[number + 1]] - first
        largest = np.maximum.reduceat(self._moved.ravel()[order], starts)
        part, before = self._parts[number], self.largest(number)
        np.add(part.tilted, (largest - before).reshape(part.change.shape), out=part.tilted)
        before[:] = largest
        self.tables[number].peak = int(part.tilted.max())

    def _part(self, number: int) -> "_Part":
        tilted, place = self.tables[number].tilted, self._places[number]
        part = slice(self._ends[number], self._ends[number + 1])
        others = tuple(n for n in range(tilted.ndim) if n != place)
        shape = [-1 if n == place else 1 for n in range(tilted.ndim)]
        return _Part(tilted, others, self._own[part], self._change[part].reshape(shape))


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One table, and its part in the long arrays, which it is read into and changed by."""

    tilted: Whole
    others: tuple[int, ...]
    own: Whole
    change: Whole
