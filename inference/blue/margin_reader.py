"""Counts of one column, or of the whole table, from every table that was counted with the column.

A table of counts by two columns or more says something about each of them: summed over the others,
it is another independent count of the column's groups. Synthetic tables and dashboards leave dozens
of such tables. Those whose partitions of the column are nested are combined: equal partitions are
averaged by their precision, and the levels of the nesting as a hierarchy's are
(`nested_groups.py`).

What the tables say about each other through two columns at once is left out, so the combination is
unbiased and not the best. Nothing here knows budgets; values play no part in the choice of
coefficients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.classes import AxisClasses
from cube.grid import Grid
from cube.measurement import Measurement
from cube.query import Scope
from inference.blue.atoms import row_signature
from inference.blue.hierarchy_reader import divided
from inference.blue.nested_groups import Floats, NestedGroups, extends
from inference.blue.partition_reader import Reading

N_TABLES_MAX = 64  # the most precise; more of them add little, and take time
N_CELLS_MAX = 2**16  # of all tables together: a sum of so many noises takes ten milliseconds
N_NUMBERS_MAX = 2**20  # groups of the finest partition times rows that are read together

Integers = NDArray[np.int64]


class MarginReader:
    """All tables that were counted with one column, or with any.

    Parameters
    ----------
    axes : tuple of str
        The column; empty for the whole table.
    measured : mapping of int to Measurement
        Partitions whose axes include the column, by place. See `history.counts_groups`.
    known : mapping of int to _Margin, optional
        The margins of measurements that another reader has worked out, by place.
    """

    def __init__(
        self,
        axes: Scope,
        measured: Mapping[int, Measurement],
        known: "Mapping[int, _Margin]" = MappingProxyType({}),
    ) -> None:
        self._axes = axes
        self._measured = frozenset(measured)
        self._read: WeakKeyDictionary[QueryBlock, Reading | None] = WeakKeyDictionary()
        margins = {
            place: known.get(place) or _Margin.of(axes, place, measured[place])
            for place in _least_noisy(measured)
        }
        self._known = {place: one for place, one in margins.items() if one is not None}
        self._levels = _nested(list(self._known.values()))
        if not self._levels:
            return
        chain = [level[0].classes for level in self._levels]
        self._finest = Grid(axes, (chain[0],) if axes else ())
        self._tree = NestedGroups.of(chain, np.array([_precision(one) for one in self._levels]))

    def reading(self, measured: Mapping[int, Measurement]) -> "MarginReader":
        """The reader of these measurements: this one, or one that extends it."""
        if self._measured == measured.keys():
            return self
        return MarginReader(self._axes, measured, self._known)

    @property
    def n_tables(self) -> int:
        """The number of tables that are combined."""
        return sum(len(level) for level in self._levels)

    def read(self, block: QueryBlock) -> Reading | None:
        """The rows of a block as sums of noisy counts.

        None if they are too many, if the block tells apart what was counted together, or if there
        is only one table, which other readers read.
        """
        if self.n_tables < 2:  # noqa: PLR2004 - nothing to combine
            return None
        if block not in self._read:
            self._read[block] = self._combined(block)
        return self._read[block]

    def _combined(self, block: QueryBlock) -> Reading | None:
        if self._finest.n_cells * block.n_rows > N_NUMBERS_MAX:
            return None
        if self._finest.refined([block]) is not self._finest:
            return None  # it cuts the finest groups
        coefficient, row = row_signature(self._finest, block)
        (touched,) = np.nonzero(row >= 0)
        asked = np.zeros((coefficient.size, block.n_rows))
        asked[touched, row[touched]] = coefficient[touched]
        found = self._tree.coefficients(asked, 0)
        parts = []
        for level, start, end in zip(
            self._levels, self._tree.starts, self._tree.starts[1:], strict=False
        ):
            groups, rows = np.nonzero(found[start:end])
            shares = found[start:end][groups, rows] / _precision(level)
            parts += [one.terms(groups, rows, shares * one.precision) for one in level]
        return _joined(parts, block.n_rows)


@dataclass(frozen=True, eq=False, slots=True)
class _Margin:
    """A table's counts, summed over all its axes but one.

    Parameters
    ----------
    place : int
        In the history.
    measurement : Measurement
    classes : AxisClasses
        The partition of the axis.
    rows : (n_rows,) ndarray of int64
        The table's rows, those of each class together.
    n_rows : int
        The number of rows of each class.
    """

    place: int
    measurement: Measurement
    classes: AxisClasses
    rows: Integers
    n_rows: int

    @classmethod
    def of(cls, axes: Scope, place: int, one: Measurement) -> "_Margin | None":
        """The margin of a table; None if its groups are not products over the axes."""
        partition, every = one.block.partition, np.arange(one.block.n_rows)
        along = divided(one.block)
        if not axes:
            is_whole = partition is None or along is not None
            undivided = AxisClasses.undivided(1)
            return cls(place, one, undivided, every, every.size) if is_whole else None
        if partition is None or along is None:
            return None
        grid = Grid(partition.axes, along)
        dimension = partition.axes.index(axes[0])
        groups = grid.labels(partition.axes, partition.groups).reshape(grid.shape)
        rows = np.moveaxis(groups, dimension, 0).reshape(grid.shape[dimension], -1)
        return cls(place, one, along[dimension], rows.ravel(), rows.shape[1])

    @property
    def precision(self) -> float:
        """Of the count of a class, up to a factor that all margins share."""
        return float(1 / (self.n_rows * self.measurement.noise_scale**2))

    def terms(self, groups: Integers, rows: Integers, coefficients: Floats) -> Reading:
        """Multiples of the counts of some classes, for some rows of a block."""
        one, n = self.measurement, self.n_rows
        used = self.rows.reshape(-1, n)[groups].ravel()
        return Reading(
            row=np.repeat(rows, n),
            coefficient=np.repeat(coefficients, n),
            value=one.values[used],
            noise_scale=np.full(used.size, one.noise_scale),
            is_gaussian=np.full(used.size, one.is_gaussian),
            lattice_widening=np.full(used.size, one.lattice_widening),
            noise_place=np.full(used.size, self.place),
            noise_row=used,
            is_covered=np.empty(0, dtype=np.bool_),
        )


def _least_noisy(measured: Mapping[int, Measurement]) -> list[int]:
    """The places of the tables with the least noise in the sum of all counts."""
    noise = {place: one.block.n_rows * one.noise_scale**2 for place, one in measured.items()}
    found, n_cells = [], 0
    for place in sorted(noise, key=lambda place: (noise[place], place))[:N_TABLES_MAX]:
        n_cells += measured[place].block.n_rows
        if n_cells <= N_CELLS_MAX:
            found.append(place)
    return found


def _nested(margins: Sequence[_Margin]) -> list[list[_Margin]]:
    """Margins over equal classes together, the finest first; those not nested are left out."""
    levels: list[list[_Margin]] = []
    for one in sorted(margins, key=lambda one: (-one.classes.n_classes, -one.precision)):
        equal = next((level for level in levels if level[0].classes.equals(one.classes)), None)
        if equal is not None:
            equal.append(one)
        elif not levels or extends([level[0].classes for level in levels], one.classes):
            levels.append([one])
    return levels


def _precision(level: Sequence[_Margin]) -> float:
    return sum(one.precision for one in level)


def _joined(parts: Sequence[Reading], n_rows: int) -> Reading:
    """Several readings of the same rows as one."""

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(one, name) for one in parts])

    return Reading(
        row=joined("row"),
        coefficient=joined("coefficient"),
        value=joined("value"),
        noise_scale=joined("noise_scale"),
        is_gaussian=joined("is_gaussian"),
        lattice_widening=joined("lattice_widening"),
        noise_place=joined("noise_place"),
        noise_row=joined("noise_row"),
        is_covered=np.ones(n_rows, dtype=np.bool_),
    )
