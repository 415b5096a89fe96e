"""The tables of counts that were measured, each as it was measured, with the law of its noise.

Unlike the intervals of `from_history`, nothing is combined here: the cells of one table have
independent noise of one scale, so that all of them together can be tested. Distances that were
released beside the history are read, too: they say how far a pair is from public numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.charged import ChargedDistance, ChargedGaussian
from accountant.ledger.history.payments import ReleasedStatistics
from cube.query import Partition, Scope
from cube.runtime import cached_property
from cube.statistic import Distance, GaussianNoisyCounts
from inference.history import History, counts_groups

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Counts of disjoint groups of cells, with independent noise of one scale.

    Parameters
    ----------
    partition : Partition
    values : (n_groups,) ndarray of float64
    scale : float
        Of Laplace noise; for Gaussian noise, of Laplace noise with the same variance.
    is_gaussian : bool
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
    history : History
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
    partition : Partition
    reference : (n_groups,) ndarray of float64
    value : float
    scale : float
        As for a `MeasuredTable`.
    is_gaussian : bool
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
