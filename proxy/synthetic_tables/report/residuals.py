"""Synthetic counts held against each measured table: whether its noise explains the difference.

Each table is looked at in four ways, for each way hides something from the others: every count; the
large counts, because near-empty ones are many, and their noise would cover a large error; single
counts; and sums, of a column's levels and of all near-empty counts. What is asked is whether the
noise would be an unlikely one if the private table had the counts of the rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope
from cube.runtime import cached_property
from proxy.synthetic_tables.report.measured import MeasuredTable
from proxy.synthetic_tables.report.noise_limits import sum_limit, total_limit

ODDS: Final = 0.001  # that noise alone takes any table of a report outside
LARGE_SDS: Final = 3.0  # standard deviations; a count below is one that noise hides
NEAR_SHARE: Final = 0.005  # of all rows: a table that misses its limit by less is near it
DRAW_SDS: Final = 4.0  # of a count of independent draws; beyond it is one in 16,000
N_WAYS: Final = 4
# Seen where noise is small, on the tables of the benchmark: the deviation of a pair's count from
# its model's, as a share of that of independent draws.
JOINT_RANDOMNESS: Final = 0.5

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Way(StrEnum):
    """How a table is looked at."""

    EVERY = "every"
    LARGE = "large"
    COUNT = "count"
    SUM = "sum"
    SMALL = "small"


class Standing(StrEnum):
    """Where a table is, seen from its noise."""

    INSIDE = "inside"
    NEAR = "near"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Drawing:
    """How far drawn rows may be from the counts that their model expects.

    Counts of single columns are rounded. Those of several are drawn given other columns, whose
    combinations hold few rows each: much of that is as random as independent draws.

    Parameters
    ----------
    scale : float
        By what synthetic counts are multiplied.
    is_independent : bool
        Whether rows are as good as drawn independently of each other.
    """

    scale: float = 1.0
    is_independent: bool = False

    def expected(self, counts: Floats, n_columns: int) -> float:
        """What is expected of the sum of absolute differences."""
        if self._randomness(n_columns) == 0:
            return self.scale * float(np.count_nonzero(counts)) / 2
        deviations = np.sqrt(2 / np.pi * counts / self.scale)
        return self.scale * self._randomness(n_columns) * float(deviations.sum())

    def of_total(self, counts: Floats, n_columns: int) -> float:
        """Of the sum of absolute differences: what is expected, and more with independent draws."""
        beyond = float(np.sqrt(counts.sum() / self.scale)) if self.is_independent else 0.0
        return self.expected(counts, n_columns) + self.scale * DRAW_SDS * beyond

    def of_sums(self, sums: Floats, n_columns: int) -> Floats:
        """Of single counts, or of sums of them."""
        if self._randomness(n_columns) == 0:
            return np.full(sums.shape, self.scale)
        deviations = np.sqrt(sums / self.scale + 1.0)
        return np.asarray(self.scale * self._randomness(n_columns) * DRAW_SDS * deviations)

    def _randomness(self, n_columns: int) -> float:
        """The deviation of a count, as a share of what it is with independent draws."""
        if self.is_independent:
            return 1.0
        return JOINT_RANDOMNESS if n_columns > 1 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """A difference, and the limit of what noise and drawing explain.

    Parameters
    ----------
    way : Way
    rows : float
        Of one count or sum: synthetic rows less measured ones. Of several counts: rows in the wrong
        place, half the sum of their differences.
    limit : float
    groups : (n,) ndarray of int64
        The groups of the measured table that it is about.
    """

    way: Way
    rows: float
    limit: float
    groups: Integers

    @property
    def excess(self) -> float:
        """The rows beyond the limit."""
        return max(0.0, abs(self.rows) - self.limit)


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A measured table and the synthetic counts of its groups.

    Parameters
    ----------
    measured : MeasuredTable
    synthetic : (n_groups,) ndarray of float64
        Scaled to the number of rows of the private table.
    n_rows : float
        That number.
    residuals : tuple of Residual
    """

    measured: MeasuredTable
    synthetic: Floats
    n_rows: float
    residuals: tuple[Residual, ...]

    @property
    def scope(self) -> Scope:
        """The columns, sorted by name."""
        return self.measured.scope

    @cached_property
    def worst(self) -> Residual:
        """The residual furthest beyond its limit, or nearest to it if none is beyond."""
        return max(self.residuals, key=lambda one: (one.excess, abs(one.rows) / one.limit))

    @property
    def excess_share(self) -> float:
        """The rows beyond the worst limit, as a share of all rows."""
        return self.worst.excess / max(1.0, self.n_rows)

    @property
    def standing(self) -> Standing:
        """Inside its noise, near it, or outside."""
        if not self.excess_share:
            return Standing.INSIDE
        return Standing.NEAR if self.excess_share <= NEAR_SHARE else Standing.OUTSIDE


def checked_tables(
    tables: Sequence[MeasuredTable],
    levels: Mapping[str, Integers],
    *,
    n_rows: float,
    drawing: Drawing,
) -> list[CheckedTable]:
    """Hold synthetic rows against every measured table; those furthest outside come first.

    Parameters
    ----------
    tables : sequence of MeasuredTable
    levels : mapping of str to (n_rows,) ndarray of int64
        The position of each synthetic row's level in each column.
    n_rows : float
        Of the private table, about.
    drawing : Drawing
    """
    found = []
    for table in tables:
        synthetic = drawing.scale * table.counted(levels)
        looked = _Look(table, synthetic, drawing, ODDS / len(tables) / N_WAYS)
        found.append(CheckedTable(table, synthetic, n_rows, tuple(looked.residuals())))
    return sorted(found, key=lambda one: (-one.excess_share, -_of_limit(one)))


def _of_limit(checked: CheckedTable) -> float:
    return abs(checked.worst.rows) / checked.worst.limit


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """A table's residuals, in each way at the same odds."""

    measured: MeasuredTable
    synthetic: Floats
    drawing: Drawing
    odds: float

    def residuals(self) -> Iterator[Residual]:
        every = np.arange(self.synthetic.size)
        is_large = self.synthetic >= LARGE_SDS * self.measured.deviation
        large, small = every[is_large], every[~is_large]
        yield self._total(Way.EVERY, every)
        yield self._worst_sum(Way.COUNT, every[:, np.newaxis], every.size)
        if 0 < large.size < every.size:
            yield self._total(Way.LARGE, large)
        sums = list(_sums_of_levels(self.measured))
        n_sums = sum(len(one) for one in sums) + 1
        for one in sums:
            yield self._worst_sum(Way.SUM, one, n_sums)
        if small.size > 1:
            yield self._sum_of_small(small, n_sums)

    def _total(self, way: Way, groups: Integers) -> Residual:
        """Half of the sum: a row in the wrong place is missing here and too many there."""
        noise = total_limit(
            groups.size, self.measured.scale, self.odds, is_gaussian=self.measured.is_gaussian
        )
        drawn = self.drawing.of_total(self.synthetic[groups], self._n_columns)
        off = np.abs(self.synthetic[groups] - self.measured.values[groups]).sum()
        limit = noise + groups.size * self.measured.widening + drawn
        return Residual(way, float(off) / 2, limit / 2, groups)

    def _worst_sum(self, way: Way, groups: Integers, n_asked: int) -> Residual:
        """Of the sums over each row of groups, the one that is furthest beyond its limit."""
        counts = self.synthetic[groups]
        limits = self._noise_of_sum(groups.shape[1], n_asked) + self.drawing.of_sums(
            counts.sum(axis=1), self._n_columns
        )
        rows = (counts - self.measured.values[groups]).sum(axis=1)
        worst = int(np.argmax(np.abs(rows) - limits))
        return Residual(way, float(rows[worst]), float(limits[worst]), groups[worst])

    def _sum_of_small(self, groups: Integers, n_asked: int) -> Residual:
        """The near-empty counts together; they may be near-empty because few rows were drawn."""
        counts = self.synthetic[groups]
        limit = self._noise_of_sum(groups.size, n_asked) + self.drawing.of_total(
            counts, self._n_columns
        )
        rows = float((counts - self.measured.values[groups]).sum())
        return Residual(Way.SMALL, rows, limit, groups)

    @property
    def _n_columns(self) -> int:
        return len(self.measured.scope)

    def _noise_of_sum(self, n_counts: int, n_asked: int) -> float:
        of_sum = sum_limit(
            n_counts,
            self.measured.scale,
            self.odds / n_asked,
            is_gaussian=self.measured.is_gaussian,
        )
        return of_sum + n_counts * self.measured.widening


def _sums_of_levels(measured: MeasuredTable) -> Iterator[Integers]:
    """For each column of several, the groups of each of its levels: (n_levels, n_groups)."""
    grid = measured.grid
    if grid is not None and grid.ndim > 1:
        for axis in range(grid.ndim):
            of_level = np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)
            if of_level.shape[1] > 1:
                yield of_level
