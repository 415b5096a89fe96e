"""Synthetic counts held against every measured table, and how far noise alone can put them.

The tables of counts that were measured, each as it was measured, with the law of its noise.

Unlike the intervals of `from_history`, nothing is combined here: the cells of one table have
independent noise of one scale, so that all of them together can be tested. Distances that were
released beside the history are read, too: they say how far a pair is from public numbers.

How far measured counts can be from the truth by noise alone: limits from the law of the noise.

A limit is exceeded at most at the given odds. Counts of one table have independent noise of one
scale, Laplace or Gaussian; no law is replaced by another that it resembles.

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
from scipy.special import gammainccinv, log_ndtr

from accountant.ledger import ChargedDistance, ChargedGaussian
from accountant.ledger.history import ReleasedStatistics
from cube.query import Partition, Scope
from cube.runtime import cached_property
from cube.statistic import Distance, GaussianNoisyCounts
from inference import History, counts_groups
from inference.noise_law import law_of_noise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Counts of disjoint groups of cells, with independent noise of one scale.

    Parameters
    ----------
    values : (n_groups,) ndarray of float64
    scale : float
        Of Laplace noise; for Gaussian noise, of Laplace noise with the same variance.
    widening : float
        A certain bound on how far the noise of a count is from continuous noise.
    """

    partition: Partition
    values: Floats
    scale: float
    is_gaussian: bool = False
    widening: float = 0.0

    def __post_init__(self) -> None:
        if self.values.shape != (self.partition.n_groups,) or not np.isfinite(self.values).all():
            raise ValueError(f"{self.values.shape} values for {self.partition.n_groups} groups")
        if not (0 < self.scale < np.inf and 0 <= self.widening < np.inf):
            raise ValueError("noise has a positive, finite scale")

    @property
    def scope(self) -> Scope:
        """The columns, sorted by name."""
        return self.partition.axes

    @property
    def deviation(self) -> float:
        """The standard deviation of a count's noise."""
        return float(np.sqrt(2) * self.scale)

    def counted(self, levels: Mapping[str, Integers]) -> Floats:
        """How many rows are in each group.

        Parameters
        ----------
        levels : mapping of str to (n_rows,) ndarray of int64
            The position of each row's level, at least in the table's columns.
        """
        return rows_in(self.partition, levels)

    @cached_property
    def grid(self) -> Integers | None:
        """The group of each combination of the axes' classes; None if it is no product of them."""
        labels = self.partition.labels
        if int(labels.min()) < 0:
            return None
        firsts = [_firsts(labels, axis) for axis in range(labels.ndim)]
        if np.prod([one.size for one in firsts]) != self.partition.n_groups:
            return None
        return np.asarray(labels[np.ix_(*firsts)], dtype=np.int64)

    def levels_in(self, groups: Integers) -> tuple[Integers, ...]:
        """The levels of each column that occur in some groups."""
        is_in = np.isin(self.partition.labels, groups)
        axes = range(is_in.ndim)
        return tuple(
            np.flatnonzero(is_in.any(axis=tuple(other for other in axes if other != axis)))
            for axis in axes
        )


def rows_in(partition: Partition, levels: Mapping[str, Integers]) -> Floats:
    """How many rows are in each group of a partition; rows in no group are not counted."""
    groups = partition.labels[tuple(levels[name] for name in partition.axes)]
    return np.bincount(groups[groups >= 0], minlength=partition.n_groups).astype(np.float64)


def _firsts(labels: Integers, axis: int) -> Integers:
    """The first level of each class of an axis' levels that have the same groups."""
    slices = np.moveaxis(labels, axis, 0).reshape(labels.shape[axis], -1)
    return np.sort(np.unique(slices, axis=0, return_index=True)[1])


def measured_tables(
    history: History, beside: Sequence[GaussianNoisyCounts], columns: Sequence[str]
) -> list[MeasuredTable]:
    """The most precise counts of each partition of some columns.

    Parameters
    ----------
    beside : sequence of GaussianNoisyCounts
        Counts that older ledgers have beside it.
    columns : sequence of str
        Those of the synthetic table; counts of others are left out.
    """
    names = frozenset(columns)
    found = []
    for scope in history.partition_scopes:
        for one in history.partitions_on(scope) if scope and names.issuperset(scope) else ():
            if one.block.partition is not None:
                noise = (one.noise_scale, one.is_gaussian, one.lattice_widening)
                found.append(MeasuredTable(one.block.partition, one.values, *noise))
    for other in beside:
        partition = other.block.partition
        if (
            partition is not None
            and counts_groups(other.block)
            and names.issuperset(partition.axes)
        ):
            scale = other.deviation / np.sqrt(2)
            found.append(MeasuredTable(partition, other.values, scale, is_gaussian=True))
    return sorted(found, key=lambda one: (len(one.scope), one.scope))


@dataclass(frozen=True, eq=False)
class MeasuredDistance:
    """A noisy ``sum |exact counts - reference|`` over the groups of a partition.

    Parameters
    ----------
    reference : (n_groups,) ndarray of float64
    scale : float
        As for a `MeasuredTable`.
    """

    partition: Partition
    reference: Floats
    value: float
    scale: float
    is_gaussian: bool

    @property
    def scope(self) -> Scope:
        """The columns, sorted by name."""
        return self.partition.axes


def measured_distances(
    released: Sequence[ReleasedStatistics], columns: Sequence[str]
) -> list[MeasuredDistance]:
    """The distances of some columns' counts from public numbers that were released."""
    names = frozenset(columns)
    return [
        one
        for statistics in released
        for one in _distances(statistics)
        if names.issuperset(one.scope)
    ]


def _distances(statistics: ReleasedStatistics) -> Iterator[MeasuredDistance]:
    place = 0
    for charged in statistics.statistics:
        value = float(statistics.values[place])
        place += charged.n_released
        if isinstance(charged, ChargedDistance):
            distance, scale, is_gaussian = charged.distance, charged.noise.noise_scale, False
        elif isinstance(charged, ChargedGaussian) and isinstance(charged.statistic, Distance):
            distance, is_gaussian = charged.statistic, True
            scale = charged.noise.noise_scale / np.sqrt(2)
        else:
            continue
        partition = distance.block.partition
        if partition is not None and counts_groups(distance.block):
            reference = np.array(distance.reference, dtype=np.float64)
            yield MeasuredDistance(partition, reference, value, float(scale), is_gaussian)


_TILTS = np.geomspace(1e-4, 30.0, 500)  # where the bound is tried; it holds at each of them


def total_limit(n_counts: int, scale: float, odds: float, *, is_gaussian: bool) -> float:
    """The limit of ``sum |noise|`` over some counts.

    Parameters
    ----------
    scale : float
        Of Laplace noise; for Gaussian noise, of Laplace noise with the same variance.
    odds : float
        Between 0 and 1.

    Notes
    -----
    ``|noise| / scale`` of Laplace noise is exponential, so its sum over `n` counts has the gamma
    law with shape `n`, exactly. For Gaussian noise it is Chernoff's bound [1]_: with
    ``E exp(s |Z|) = 2 exp(s**2 / 2) Phi(s)``, the sum exceeds
    ``(n (log 2 Phi(s) + s**2 / 2) - log odds) / s`` at most at these odds, for every ``s > 0``.

    References
    ----------
    .. [1] H. Chernoff, "A Measure of Asymptotic Efficiency for Tests of a Hypothesis Based on the
       Sum of Observations", Annals of Mathematical Statistics 23, 1952.

    Examples
    --------
    >>> round(total_limit(1, 1.0, 0.05, is_gaussian=False), 3)
    2.996
    """
    if n_counts == 0:
        return 0.0
    if not is_gaussian:
        return scale * float(gammainccinv(n_counts, odds))
    of_each = np.log(2) + log_ndtr(_TILTS) + _TILTS**2 / 2
    bounds = (n_counts * of_each - np.log(odds)) / _TILTS
    return float(np.sqrt(2) * scale * bounds.min())


def sum_limit(n_counts: int, scale: float, odds: float, *, is_gaussian: bool) -> float:
    """The limit of ``|sum of noises|`` of some counts; parameters as for `total_limit`.

    >>> round(sum_limit(1, 1.0, 0.05, is_gaussian=False), 3)
    2.996
    >>> round(sum_limit(4, 1.0, 0.05, is_gaussian=True), 2)
    5.54
    """
    if n_counts == 0:
        return 0.0
    if is_gaussian:
        law = law_of_noise(np.empty(0), gaussian=float(np.sqrt(2 * n_counts) * scale))
    else:
        law = law_of_noise(np.full(n_counts, scale))
    return law.half_width(1 - odds)


ODDS: Final = 0.001  # that noise alone takes any table of a report outside
LARGE_SDS: Final = 3.0  # standard deviations; a count below is one that noise hides
NEAR_SHARE: Final = 0.005  # of all rows: a table that misses its limit by less is near it
DRAW_SDS: Final = 4.0  # of a count of independent draws; beyond it is one in 16,000
N_WAYS: Final = 4
# Seen where noise is small, on the tables of the benchmark: the deviation of a pair's count from
# its model's, as a share of that of independent draws.
JOINT_RANDOMNESS: Final = 0.5


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
        """The deviation of a count, as a share of its deviation with independent draws."""
        if self.is_independent:
            return 1.0
        return JOINT_RANDOMNESS if n_columns > 1 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Residual:
    """A difference, and the most that noise and drawing explain.

    Parameters
    ----------
    rows : float
        Of one count or sum: synthetic rows less measured ones. Of several counts: rows in the wrong
        place, half the sum of their differences.
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
    synthetic : (n_groups,) ndarray of float64
        Scaled to the number of rows of the private table.
    n_rows : float
        That number.
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
    levels : mapping of str to (n_rows,) ndarray of int64
        The position of each synthetic row's level in each column.
    n_rows : float
        The approximate number of rows of the private table.
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
