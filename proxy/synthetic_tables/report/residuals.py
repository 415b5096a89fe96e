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

from cube.cached import cached_property
from cube.query import Scope
from proxy.synthetic_tables.report.measured import MeasuredTable
from proxy.synthetic_tables.report.noise_limits import sum_limit, total_limit

ODDS: Final = 0.001  # that noise alone takes any table of a report outside
LARGE_SDS: Final = 3.0  # standard deviations; a count below is one that noise hides
NEAR_SHARE: Final = 0.005  # of all rows: a table that misses its limit by less is near it
DRAW_SDS: Final = 4.0  # of a count of independent draws; beyond it is one in 16,000
N_WAYS: Final = 4

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Way(StrEnum):
    """How a table is looked at."""

    EVERY = "every"
    LARGE = "large"
    COUNT = "count"
    SUM = "sum"


class Standing(StrEnum):
    """Where a table is, seen from its noise."""

    INSIDE = "inside"
    NEAR = "near"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Drawing:
    """How far drawn rows may be from the counts that their model expects.

    Parameters
    ----------
    scale : float
        By what synthetic counts are multiplied.
    is_independent : bool
        Whether rows were drawn independently of each other; otherwise counts were rounded.
    """

    scale: float = 1.0
    is_independent: bool = False

    def of_total(self, counts: Floats) -> float:
        """Of the sum of absolute differences: what is expected, and with independent draws more."""
        if not self.is_independent:
            return self.scale * float(np.count_nonzero(counts)) / 2
        rows = counts / self.scale
        return self.scale * float(np.sqrt(2 / np.pi * rows).sum() + DRAW_SDS * np.sqrt(rows.sum()))

    def of_sums(self, sums: Floats, n_occupied: Floats) -> Floats:
        """Of sums of counts, each with so many counts above 0."""
        if not self.is_independent:
            return np.asarray(self.scale * np.sqrt(np.maximum(1.0, n_occupied)))
        return np.asarray(self.scale * DRAW_SDS * np.sqrt(sums / self.scale + 1.0))


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
        return self.worst.excess / self.n_rows if self.n_rows > 0 else 0.0

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
    found = [
        _checked(table, drawing.scale * table.counted(levels), n_rows, drawing, ODDS / len(tables))
        for table in tables
    ]
    return sorted(found, key=lambda one: (-one.excess_share, -_of_limit(one)))


def _of_limit(checked: CheckedTable) -> float:
    return abs(checked.worst.rows) / checked.worst.limit


def _checked(
    measured: MeasuredTable, synthetic: Floats, n_rows: float, drawing: Drawing, odds: float
) -> CheckedTable:
    differences = synthetic - measured.values
    every = np.arange(synthetic.size)
    large = np.flatnonzero(synthetic >= LARGE_SDS * measured.deviation)
    each = odds / N_WAYS
    residuals = [_total(Way.EVERY, every, measured, synthetic, drawing, each)]
    if 0 < large.size < every.size:
        residuals.append(_total(Way.LARGE, large, measured, synthetic, drawing, each))
    sums = list(_sums(measured, np.setdiff1d(every, large)))
    n_sums = sum(len(groups) for groups in sums)
    for way, groups, n_asked in (
        (Way.COUNT, every[:, np.newaxis], every.size),
        *((Way.SUM, one, n_sums) for one in sums),
    ):
        limit = groups.shape[1] * measured.widening + sum_limit(
            groups.shape[1], measured.scale, each / n_asked, is_gaussian=measured.is_gaussian
        )
        counts = synthetic[groups]
        limits = limit + drawing.of_sums(counts.sum(axis=1), np.count_nonzero(counts, axis=1))
        rows = differences[groups].sum(axis=1)
        worst = int(np.argmax(np.abs(rows) - limits))
        residuals.append(Residual(way, float(rows[worst]), float(limits[worst]), groups[worst]))
    return CheckedTable(measured, synthetic, n_rows, tuple(residuals))


def _total(  # noqa: PLR0913, PLR0917 - a helper of one caller
    way: Way,
    groups: Integers,
    measured: MeasuredTable,
    synthetic: Floats,
    drawing: Drawing,
    odds: float,
) -> Residual:
    """Of several counts: half the sum, for a misplaced row is missing here and too many there."""
    noise = total_limit(groups.size, measured.scale, odds, is_gaussian=measured.is_gaussian)
    limit = noise + groups.size * measured.widening + drawing.of_total(synthetic[groups])
    off = np.abs(synthetic[groups] - measured.values[groups]).sum()
    return Residual(way, float(off) / 2, limit / 2, groups)


def _sums(measured: MeasuredTable, small: Integers) -> Iterator[Integers]:
    """Groups that are added up: (n_sums, n_groups in each), all sums of one array alike."""
    if small.size > 1:
        yield small[np.newaxis]
    grid = measured.grid
    if grid is not None and grid.ndim > 1:
        for axis in range(grid.ndim):
            of_level = np.moveaxis(grid, axis, 0).reshape(grid.shape[axis], -1)
            if of_level.shape[1] > 1:
                yield of_level
