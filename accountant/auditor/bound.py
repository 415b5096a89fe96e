"""A bound on the most expensive cell of a history that grows row by row.

The cost of a cell is a sum of tables. The sum of their maxima is never below the most expensive
cell, and may be far above it, since each table may have its maximum at another cell. Numbers that
depend on one axis are therefore moved from table to table: what one gains, another loses, so that
the sum does not change at any cell, but the maxima move to the same cells.

Whatever is moved, the bound is valid, exactly, in whole numbers. How tight it is only decides how
much must be searched. Proof: proofs/ledger.md, "The most expensive cell".
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

import numpy as np

from accountant.auditor.axis_tables import AxisTables, Tilted
from accountant.auditor.prices import Whole
from accountant.auditor.tables import TOTAL_MAX, Layout, Row

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
        How many of them are included.
    value : int
        No cell costs more.
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
