"""A bound on the most expensive cell of a history that grows row by row.

The cost of a cell is a sum of tables. The sum of their maxima is never below the most expensive
cell, and may be far above it, since each table may have its maximum at another cell. Numbers that
depend on one axis are therefore moved from table to table: at each class of the axis a number is
added to each table, and these numbers sum to zero, so that the sum of the tables does not change at
any cell, but the maxima move to the same cells. A table that does not distinguish two classes has
to use the larger of their numbers.

There are hundreds of tables with one axis, and most are small. So all of them are in one long
array, in which the small ones of an axis are read and changed at once.

Whatever is moved, the bound is valid, exactly, in whole numbers. How tight it is only decides how
much must be searched. Proof: proofs/ledger.md, "The most expensive cell".
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Final, Self

import numpy as np

from accountant.auditor.costs.tables import TOTAL_MAX, Indices, Layout, Row, Table
from accountant.auditor.noise import Whole

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
        """The cells of `tables`; `dimensions` gives the dimension of the axis in each table."""
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


SUM_MAX: Final = 2**62  # of the sum of all tables of one axis, in int64


class Bound:
    """The first rows of a history, and a bound on what they cost any cell.

    Parameters
    ----------
    rows : sequence of Row
        The whole history, in order.

    Attributes
    ----------
    n_added : int
        How many of the rows the bound includes.
    value : int
        The bound: no cell costs more.
    tables : list of Tilted
        The tables of all rows of the history.
    of_axis : dict of str to AxisTables
        The tables in use, by axis.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.layout = Layout(rows)
        self.n_added = 0
        self.value = 0
        tables = self.layout.tables
        ends = np.cumsum([0, *(math.prod(table.shape) for table in tables)]).tolist()
        cells: Whole = np.zeros(ends[-1], dtype=self.layout.dtype)
        self.tables = [Tilted(*one) for one in zip(tables, repeat(cells), ends[:-1])]
        # The first of an axis is over that axis alone; the others follow as rows are added.
        own = self.layout.own.values()
        parts = (part.table for of_row in self.layout.parts for part in of_row)
        order = [n for n in dict.fromkeys(chain(own, parts)) if n is not None]
        self.of_axis = {
            axis: AxisTables(
                axis,
                classes.levels.size,
                cells,
                [self.tables[n] for n in order if axis in tables[n].axes],
            )
            for axis, classes in self.layout.classes.items()
        }
        # For each table in use and each of its axes: its number among the tables of the axis.
        self._numbers: dict[int, list[int]] = {}
        for place in own:
            self._use(place)

    @property
    def in_use(self) -> list[int]:
        """The tables to which rows were added."""
        return list(self._numbers)

    def go_to(self, n_rows: int) -> None:
        """Add the next rows, or remove the last, until `n_rows` are included."""
        while self.n_added < n_rows:
            self._add(self.n_added, 1)
            self.n_added += 1
        while self.n_added > n_rows:
            self.n_added -= 1
            self._add(self.n_added, -1)

    def sweep(self) -> None:
        """Move numbers so that the tables of each axis agree on it, axis by axis."""
        for axis in self.of_axis:
            self._level(axis, is_gathered=False)

    def gather(self) -> None:
        """Move everything that depends on one axis into the table over that axis alone.

        This also gives a bound, and is the form that `_make_up_for` needs.
        """
        for axis in self.of_axis:
            self._level(axis, is_gathered=True)

    def most(self, axis: str) -> Whole:
        """For each class of an axis, a bound on the cost of its cells."""
        tables = self.of_axis[axis]
        most: Whole = np.full(self.layout.classes[axis].levels.size, self.value, self.layout.dtype)
        for number, tilted in enumerate(tables.tables):
            most += tables.most(number) - tilted.peak
        return most

    def largest(self, table: int, dimension: int) -> Whole:
        """The largest number that was moved to each class of an axis of a table in use."""
        axis = self.tables[table].table.axes[dimension]
        return self.of_axis[axis].largest(self._numbers[table][dimension])

    def costs_along(self, axis: str, chosen: Mapping[str, int]) -> Whole:
        """The tables' sum at every class of one axis, with the other axes at the chosen classes."""
        costs: Whole = np.zeros(self.layout.classes[axis].levels.size, dtype=self.layout.dtype)
        for tilted in self.of_axis[axis].tables:
            table = tilted.table
            line: list[Any] = [
                int(label[chosen[name]])
                for name, label in zip(table.axes, table.label, strict=True)
            ]
            place = table.axes.index(axis)
            line[place] = table.label[place]
            costs += tilted.values[tuple(line)]
        return costs

    def _add(self, place: int, sign: int) -> None:
        for part in self.layout.parts[place]:
            if part.table is None:
                self.value += sign * part.row.bound
                continue
            self._use(part.table)
            tilted = self.tables[part.table]
            before = tilted.peak
            tilted.add(sign * tilted.table.cost(part.row, self.layout.dtype))
            self.value += tilted.peak - before
            if tilted.peak > before and tilted.tilted.ndim > 1:
                self._make_up_for(part.table, before)

    def _use(self, table: int) -> None:
        """Add a table to those of its axes, once."""
        if table not in self._numbers:
            axes = self.tables[table].table.axes
            self._numbers[table] = [self.of_axis[axis].use_next() for axis in axes]

    def _make_up_for(self, table: int, peak: int) -> None:
        """Move what a new row adds to a peak to a single axis where it raises no peak.

        A row over few cells rarely includes the most expensive one; an axis on which it does not
        is found here at once, and the tables need no sweep.
        """
        tilted = self.tables[table]
        for number, axis in zip(self._numbers[table], tilted.table.axes, strict=True):
            of_axis = self.of_axis[axis]
            alone = of_axis.tables[0]
            above = np.maximum(of_axis.most(number) - peak, 0)
            moved = np.minimum(above, alone.peak - of_axis.most(0))
            if moved.any():
                before = tilted.peak + alone.peak
                of_axis.move(moved, number, 0)
                self.value += tilted.peak + alone.peak - before
                if tilted.peak <= peak:
                    return

    def _level(self, axis: str, *, is_gathered: bool) -> None:
        of_axis = self.of_axis[axis]
        n_tables = len(of_axis.tables)
        if n_tables == 1 or not self._has_room(n_tables):
            return
        cells, own = of_axis.read()
        # The numbers moved to a class sum to zero, so this is the sum of the tables there.
        total = own.sum(axis=0)
        before = [tilted.peak for tilted in of_axis.tables]
        if is_gathered:
            peaks = before.copy()
            height = np.array(peaks, dtype=own.dtype)[:, np.newaxis]
            rest = total - sum(peaks[1:])
        else:
            # Rounded up, but not beyond the largest: the bound is then the largest total exactly.
            peak = int(total.max()) // n_tables
            height = np.minimum(-(-total // n_tables), peak)
            peaks = [peak] * n_tables
            rest = total - height * (n_tables - 1)
        moved = height - own
        moved[0] = rest - own[0]
        peaks[0] = int(rest.max())
        of_axis.replace(moved, cells)
        self.value += sum(peaks) - sum(before)
        for tilted, peak in zip(of_axis.tables, peaks, strict=True):
            tilted.peak = peak

    def _has_room(self, n_tables: int) -> bool:
        """Whether no sum can overflow. Otherwise the bound is left unchanged."""
        reach = TOTAL_MAX + sum(one.reach for one in self.of_axis.values())
        return self.layout.dtype is object or 4 * n_tables * reach < SUM_MAX
