"""Answers from counted groups: a query as a sum of disjoint groups that were measured.

Where every cell of a scope is counted, or the blocks of a hierarchy over an ordered column, any
query on that scope is a sum of independent noisy counts. Its estimate and the law of its error then
need no linear algebra, however long the history is. Of the ways to cover the query with groups, the
one of least variance is used if the groups are nested; it depends on weights alone.

The joint estimate from all rows (`workspaces.py`) is never wider, but much slower on many rows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import AxisClasses, first_places
from cube.encoding import fingerprint
from cube.grid import Grid
from cube.measurement import Measurement
from cube.query import QueryBlock, Scope
from inference.blue.atoms import row_signature

# Cells of a scope that is read from: a few milliseconds, for any one block of groups.
N_READ_CELLS_MAX = 2**17


@dataclass(frozen=True, eq=False)
class Reading:
    """Rows of a block as sums over groups: one entry for each group that is used.

    Parameters
    ----------
    row : (n,) ndarray of int64
        The row of the block that the group is a part of.
    coefficient, value, noise_scale, lattice_widening : (n,) ndarray of float64
        The factor of the group, its noisy count, the scale of its noise, and what the lattice adds.
    is_gaussian : (n,) ndarray of bool
        Whether that noise is Gaussian; see `Measurement.noise_scale`.
    noise_place, noise_row : (n,) ndarray of int64
        The place in the history of the measurement that counted the group, and the row there.
    is_covered : (n_rows,) ndarray of bool
        Rows that the groups add up to; the others cannot be read.
    """

    row: NDArray[np.int64]
    coefficient: NDArray[np.float64]
    value: NDArray[np.float64]
    noise_scale: NDArray[np.float64]
    is_gaussian: NDArray[np.bool_]
    lattice_widening: NDArray[np.float64]
    noise_place: NDArray[np.int64]
    noise_row: NDArray[np.int64]
    is_covered: NDArray[np.bool_]

    @property
    def variances(self) -> NDArray[np.float64]:
        """The variance of each row's noise over that of Laplace noise of scale 1, (n_rows,)."""
        terms = np.square(self.coefficient * self.noise_scale)
        return np.bincount(self.row, terms, self.is_covered.size).astype(np.float64)

    def with_row(self, place: int, measured: Measurement, coefficient: float) -> "Reading":
        """The reading of one row to which a multiple of a measured row is added."""

        def and_one(values: NDArray[Any], one: float) -> NDArray[Any]:
            return np.append(values, np.array([one], dtype=values.dtype))

        return Reading(
            row=and_one(self.row, 0),
            coefficient=and_one(self.coefficient, coefficient),
            value=and_one(self.value, float(measured.values[0])),
            noise_scale=and_one(self.noise_scale, measured.noise_scale),
            is_gaussian=and_one(self.is_gaussian, measured.is_gaussian),
            lattice_widening=and_one(self.lattice_widening, measured.lattice_widening),
            noise_place=and_one(self.noise_place, place),
            noise_row=and_one(self.noise_row, 0),
            is_covered=self.is_covered,
        )


class PartitionReader:
    """Partitions of the cells of a few axes, all of them counted.

    Parameters
    ----------
    axes : tuple of str
        Every partition's axes lie within them.
    sizes : tuple of int
        The number of levels of each axis.
    measured : mapping from int to Measurement
        By place in the history. See `history.counts_groups`.
    known : mapping, optional
        The cells of the groups of partitions, by fingerprint, where they are computed already.
    """

    def __init__(
        self,
        axes: Scope,
        sizes: tuple[int, ...],
        measured: Mapping[int, Measurement],
        known: "Mapping[str, _Groups]" = MappingProxyType({}),
    ) -> None:
        self._grid = Grid(axes, tuple(AxisClasses.of_labels(np.arange(size)) for size in sizes))
        self._measured = frozenset(measured)
        places = sorted(measured, key=lambda place: -measured[place].block.n_rows)
        by_fineness = [measured[place] for place in places]
        starts = np.cumsum([0, *(one.block.n_rows for one in by_fineness)])
        names = [fingerprint(one.block) for one in by_fineness]
        self._known = {
            name: known.get(name) or _Groups.of(self._labels(one.block))
            for name, one in zip(names, by_fineness, strict=True)
        }
        self._levels = [
            _Level(self._known[name], int(start), one.noise_scale**2)
            for name, one, start in zip(names, by_fineness, starts, strict=False)
        ]
        self._read: WeakKeyDictionary[QueryBlock, Reading] = WeakKeyDictionary()
        n_rows = np.diff(starts)
        self._values = np.concatenate([one.values for one in by_fineness])
        self._scales = np.repeat([one.noise_scale for one in by_fineness], n_rows)
        self._is_gaussian = np.repeat([one.is_gaussian for one in by_fineness], n_rows)
        self._widenings = np.repeat([one.lattice_widening for one in by_fineness], n_rows)
        self._places = np.repeat(places, n_rows)
        self._rows = np.concatenate([np.arange(n) for n in n_rows])

    def reading(self, measured: Mapping[int, Measurement]) -> Self:
        """The reader of these measurements: this one, or one that extends it."""
        if self._measured == measured.keys():
            return self
        sizes = tuple(one.n_levels for one in self._grid.classes)
        return type(self)(self._grid.axes, sizes, measured, self._known)

    def read(self, block: QueryBlock) -> Reading:
        """Cover the rows of a block, whose scope lies within the axes, with groups."""
        reading = self._read.get(block)
        if reading is None:
            reading = self._read[block] = self._covered(block)
        return reading

    def _covered(self, block: QueryBlock) -> Reading:
        coefficient, row = row_signature(self._grid, block)
        used = self._cover(coefficient, row)
        touched = row >= 0
        is_covered = np.ones(block.n_rows, dtype=np.bool_)
        is_covered[row[touched & (used < 0)]] = False
        whole = touched & is_covered[row]
        groups, cells = np.unique(used[whole], return_index=True)
        cell = np.flatnonzero(whole)[cells]
        return Reading(
            row=row[cell],
            coefficient=coefficient[cell],
            value=self._values[groups],
            noise_scale=self._scales[groups],
            is_gaussian=self._is_gaussian[groups],
            lattice_widening=self._widenings[groups],
            noise_place=self._places[groups],
            noise_row=self._rows[groups],
            is_covered=is_covered,
        )

    def _cover(self, coefficient: NDArray[np.float64], row: NDArray[np.int64]) -> NDArray[np.int64]:
        """The group in which each cell is counted; -1 where there is none.

        From the finest partition to the coarsest, a group replaces the finer groups inside it where
        the query is constant on it, none of the finer groups extends beyond it, and it is less
        noisy than they are together.
        """
        used = np.full(row.size, -1, dtype=np.int64)
        variance = np.full(row.size, math.inf)  # of each group, divided evenly among its cells
        for level in self._levels:
            groups = level.groups
            label, cells, first = groups.label, groups.cells, groups.first
            takes = level.variance < np.bincount(label, weights=variance[cells])
            takes &= row[first] >= 0
            if not takes.any():
                continue
            is_split = (coefficient[cells] != coefficient[first][label]) | (
                row[cells] != row[first][label]
            )
            takes[label[is_split]] = False
            takes[self._cut(used, groups)] = False
            taken = cells[takes[label]]
            group = groups.labels[taken]
            used[taken] = level.start + group
            variance[taken] = level.variance / groups.n_cells[group]
        return used

    def _cut(self, used: NDArray[np.int64], groups: "_Groups") -> NDArray[np.int64]:
        """Groups of this partition that contain a part of a group in use, but not all of it."""
        in_use = np.flatnonzero(used >= 0)
        group, label = used[in_use], groups.labels[in_use]
        one_of = np.zeros(self._values.size, dtype=np.int64)  # for each group, of one of its cells
        one_of[group] = label
        reaches_out = np.zeros(self._values.size, dtype=np.bool_)
        reaches_out[group[label != one_of[group]]] = True
        cut = label[reaches_out[group]]
        return cut[cut >= 0]

    def _labels(self, block: QueryBlock) -> NDArray[np.int64]:
        """The group of each cell over the axes."""
        if block.partition is None:
            return np.zeros(self._grid.n_cells, dtype=np.int64)
        labels = self._grid.labels(block.partition.axes, block.partition.groups)
        return np.ascontiguousarray(np.broadcast_to(labels, self._grid.shape)).ravel()


@dataclass(frozen=True, eq=False)
class _Groups:
    """The cells of each group of one partition.

    Parameters
    ----------
    labels : (n_cells,) ndarray of int64
        The group of each cell; -1 outside all groups.
    cells, label : (n,) ndarray of int64
        The cells inside a group, and the group of each.
    first, n_cells : (n_groups,) ndarray of int64
        One cell of each group, and how many cells it has.
    """

    labels: NDArray[np.int64]
    cells: NDArray[np.int64]
    label: NDArray[np.int64]
    first: NDArray[np.int64]
    n_cells: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[np.int64]) -> Self:
        """The groups that labels of cells define."""
        cells = np.flatnonzero(labels >= 0)
        label = labels[cells]
        return cls(labels, cells, label, cells[first_places(label)], np.bincount(label))


@dataclass(frozen=True, eq=False)
class _Level:
    """One measured partition of the cells, with what the reader needs of it.

    Parameters
    ----------
    groups : _Groups
    start : int
        The number of its first group among the groups of all partitions.
    variance : float
        The variance of one group's count, in units of twice the squared noise scale.
    """

    groups: _Groups
    start: int
    variance: float
