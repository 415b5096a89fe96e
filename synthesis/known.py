"""What the history of a private table knows already: noisy tables of one or two columns.

Only counts of whole partitions are read, each in its most precise measurement. What was asked of
part of the table, or summed, is left aside; counts by more columns give the tables of their pairs.
Counts that were released with Gaussian noise, which are no rows of the history, are read beside it.
Values that were paid for, and nothing else: reading them is free.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cube.block import Partition, QueryBlock
from cube.gaussian import GaussianNoisyCounts
from cube.query import counting
from inference.history import History, counts_groups
from synthesis.buckets import Buckets, GroupedEstimate
from synthesis.tables import (
    N_DIMENSIONS_MAX,
    Column,
    Floats,
    Integers,
    TableEstimate,
    estimated_total,
)


@dataclass(frozen=True, eq=False)
class KnownEstimates:
    """Independent estimates of one private table.

    Parameters
    ----------
    tables : tuple of TableEstimate
        Over levels.
    grouped : tuple of GroupedEstimate
        Over groups of levels.
    n_rows : float, optional
        About how many rows there are; None if nothing says so.
    """

    tables: tuple[TableEstimate, ...] = ()
    grouped: tuple[GroupedEstimate, ...] = ()
    n_rows: float | None = None

    def __len__(self) -> int:
        """The number of estimates."""
        return len(self.tables) + len(self.grouped)

    @classmethod
    def from_history(
        cls, history: History, columns: Sequence[Column], beside: Iterable[GaussianNoisyCounts] = ()
    ) -> "KnownEstimates":
        """Everything that a history says of some columns, alone or in pairs.

        Parameters
        ----------
        history : History
        columns : sequence of Column
        beside : iterable of GaussianNoisyCounts
            What was counted with Gaussian noise.
        """
        names = {column.name for column in columns}
        everything = [*_of_history(history, names), *_of_gaussian(beside, names)]
        found = [found for counts in everything for found in _estimates(counts, names)]
        tables = tuple(one for one in found if isinstance(one, TableEstimate))
        grouped = tuple(one for one in found if isinstance(one, GroupedEstimate))
        totals = (counts.total for counts in everything if counts.partition is None)
        counted = [*tables, *(one.table for one in grouped), *totals]
        return cls(tables, grouped, estimated_total(counted) if counted else None)


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """The groups of a partition, or everything, counted with noise of one variance."""

    partition: Partition | None
    values: Floats
    variance: float

    @property
    def total(self) -> TableEstimate:
        """The count of everything, as a table of one cell."""
        return TableEstimate(("count",), self.values, np.array(self.variance))


def _of_history(history: History, names: Collection[str]) -> Iterator[_Counts]:
    """The most precise counts of each partition of some columns, and of everything."""
    place = history.most_precise(QueryBlock(counting()))
    found = [] if place is None else [history[place]]
    for scope in history.partition_scopes:
        if any(name in names for name in scope):
            found.extend(history.partitions_on(scope))
    for one in found:
        yield _Counts(one.block.partition, one.values, 2.0 * one.noise_scale**2)


def _of_gaussian(
    beside: Iterable[GaussianNoisyCounts], names: Collection[str]
) -> Iterator[_Counts]:
    """The same of what has Gaussian noise; its estimates are independent of each other."""
    for one in beside:
        scope = one.block.scope
        if counts_groups(one.block) and (not scope or any(name in names for name in scope)):
            yield _Counts(one.block.partition, one.values, one.deviation**2)


def _estimates(
    counted: _Counts, names: Collection[str]
) -> Iterator[TableEstimate | GroupedEstimate]:
    """What the counts of a partition say of some columns, if it is one of each column's levels.

    Notes
    -----
    Of more than two columns, the tables of all pairs share their noise, and so do the `m` of them
    that a column is in. Said to be `m` times as noisy as they are, they count together for what one
    of them says of the column; the mean of equal things is what each is.
    """
    partition = counted.partition
    groups = None if partition is None else _grouping(partition)
    if partition is None or groups is None:
        return
    firsts = [np.unique(one.labels, return_index=True)[1] for one in groups]
    counts = counted.values[partition.labels[np.ix_(*firsts)]]
    places = [place for place, name in enumerate(partition.axes) if name in names]
    n_sharing = max(1, len(places) - 1)
    for kept in combinations(places, min(len(places), N_DIMENSIONS_MAX)):
        others = tuple(place for place in range(counts.ndim) if place not in kept)
        n_summed = math.prod(counts.shape[place] for place in others)
        table = TableEstimate(
            tuple(partition.axes[place] for place in kept),
            counts.sum(axis=others),
            np.array(n_sharing * n_summed * counted.variance),
        )
        of_kept = tuple(groups[place] for place in kept)
        is_plain = all(one.n_buckets == one.labels.size for one in of_kept)
        yield table if is_plain else GroupedEstimate(of_kept, table)


def _grouping(partition: Partition) -> tuple[Buckets, ...] | None:
    """The partition of each axis of which it is the product; None if it is none."""
    labels = partition.labels
    if int(labels.min()) < 0:
        return None
    groups = tuple(Buckets(_classes(labels, axis)) for axis in range(labels.ndim))
    n_products = int(np.prod([one.n_buckets for one in groups]))
    return groups if n_products == partition.n_groups else None


def _classes(labels: Integers, axis: int) -> Integers:
    """A number for each level of an axis, in the order in which they first occur."""
    if labels.ndim == 1:
        slices = labels[:, np.newaxis]
    else:
        slices = np.moveaxis(labels, axis, 0).reshape(labels.shape[axis], -1)
    _, first, of_level = np.unique(slices, axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[of_level.ravel()]
