"""What the history of a private table knows already: noisy tables of one or two columns.

Only counts of whole partitions are read, each from its most precise measurement. Queries on a part
of the table, and sums, are not used; counts by more columns give the tables of their pairs. Older
ledgers have counts with Gaussian noise beside the history; they are read in addition. Everything
read here is paid for already, so reading it is free.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from cube.query import N_FACTOR_CELLS_MAX, Partition, QueryBlock, Scope, counting
from cube.statistic import GaussianNoisyCounts
from inference import History, counts_groups
from synthesis.buckets import Buckets, GroupedEstimate
from synthesis.tables import (
    N_DIMENSIONS_MAX,
    Column,
    Floats,
    Integers,
    TableEstimate,
    combined,
    estimated_total,
)

Stratum: TypeAlias = tuple[tuple[str, int], ...]  # rows, by the levels of some columns


@dataclass(frozen=True, eq=False)
class KnownEstimates:
    """Independent estimates of one private table.

    Parameters
    ----------
    tables : tuple of TableEstimate
        The tables whose cells are levels.
    grouped : tuple of GroupedEstimate
        The tables whose cells are groups of levels.
    n_rows : float, optional
        The approximate number of rows; None if it is not known.
    """

    tables: tuple[TableEstimate, ...] = ()
    grouped: tuple[GroupedEstimate, ...] = ()
    n_rows: float | None = None

    def __len__(self) -> int:
        """The number of estimates."""
        return len(self.tables) + len(self.grouped)

    @property
    def pairs(self) -> dict[Scope, list[GroupedEstimate]]:
        """The tables of two columns, over groups of levels; a level may be a group."""
        found: dict[Scope, list[GroupedEstimate]] = {}
        for one in self.grouped:
            if len(one.scope) > 1:
                found.setdefault(one.scope, []).append(one)
        for table in self.tables:
            if len(table.scope) > 1:
                levels = tuple(Buckets(np.arange(size)) for size in table.values.shape)
                found.setdefault(table.scope, []).append(GroupedEstimate(levels, table))
        return found

    @classmethod
    def from_history(
        cls,
        history: History,
        columns: Sequence[Column],
        beside: Iterable[GaussianNoisyCounts] = (),
        stratum: Stratum = (),
    ) -> "KnownEstimates":
        """Everything that a history says about some columns, alone or in pairs.

        Parameters
        ----------
        history : History
        columns : sequence of Column
        beside : iterable of GaussianNoisyCounts
            Counts with Gaussian noise that are no rows of the history: of older ledgers.
        stratum : Stratum
            The rows that are meant; all by default. Its columns are none of `columns`.
        """
        names = {column.name for column in columns}
        looked_at = names | {name for name, _ in stratum}
        everything = [*_of_history(history, looked_at), *_of_gaussian(beside, looked_at)]
        if stratum:
            inside = (counts.within(stratum) for counts in everything)
            everything = [counts for counts in inside if counts is not None]
        found = [found for counts in everything for found in _estimates(counts, names)]
        tables = tuple(one for one in found if isinstance(one, TableEstimate))
        grouped = tuple(one for one in found if isinstance(one, GroupedEstimate))
        totals = (counts.total for counts in everything if counts.partition is None)
        counted = [*tables, *(one.table for one in grouped), *totals]
        return cls(tables, grouped, estimated_total(counted) if counted else None)

    def by_holder(
        self, held: Sequence[History], columns: Sequence[Column], holder: str
    ) -> "KnownEstimates":
        """The same with the holder as one more column, from what each holder has measured.

        Parameters
        ----------
        held : sequence of History
            Of each holder, in the order of the levels of `holder`.
        columns : sequence of Column
            Those of these estimates.
        holder : str
            The name of the column.

        Notes
        -----
        These estimates are sums over holders. A column's counts at each of them, side by side, are
        a table of the column and the holder with independent noise, and take the place of their
        sums. So does the number of rows of each holder, which is a table of the holder alone.
        """
        known = [KnownEstimates.from_history(one, columns) for one in held]
        split = {}
        for column in columns:
            own = [[one for one in each.tables if one.scope == (column.name,)] for each in known]
            if all(own):
                split[column.name] = _side_by_side([combined(one) for one in own], holder)
        tables = [
            one for one in self.tables if len(one.scope) > 1 or one.scope[0] not in split
        ] + list(split.values())
        places = [one.most_precise(QueryBlock(counting())) for one in held]
        sizes = [one[place] for one, place in zip(held, places, strict=True) if place is not None]
        if len(sizes) == len(held):
            values = np.concatenate([one.values for one in sizes])
            variances = np.array([2.0 * one.noise_scale**2 for one in sizes])
            tables.append(TableEstimate((holder,), values, variances))
        return KnownEstimates(tuple(tables), self.grouped, self.n_rows)


def _side_by_side(estimates: Sequence[TableEstimate], holder: str) -> TableEstimate:
    """The table of a column and the holder, from the column's counts at each holder."""
    ((name,),) = {one.scope for one in estimates}
    axis = int(holder > name)
    values = np.stack([one.values for one in estimates], axis)
    variances = np.stack([one.variance for one in estimates], axis)
    scope = (name, holder) if axis else (holder, name)
    return TableEstimate(scope, values, variances)


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """The groups of a partition, or all records, counted with noise of one variance."""

    partition: Partition | None
    values: Floats
    variance: float

    @property
    def total(self) -> TableEstimate:
        """The count of all records, as a table of one cell."""
        return TableEstimate(("count",), self.values, np.array(self.variance))

    def within(self, stratum: Stratum) -> "_Counts | None":
        """The counts of the groups that lie in a stratum; None if some lie across its border."""
        partition, levels = self.partition, dict(stratum)
        if partition is None or not levels.keys() <= set(partition.axes):
            return None
        place = tuple(levels.get(name, slice(None)) for name in partition.axes)
        inside = partition.labels[place]
        groups = np.unique(inside)
        n_inside = np.isin(partition.labels, groups).sum()
        if groups[0] < 0 or n_inside != inside.size:
            return None
        axes = tuple(name for name in partition.axes if name not in levels)
        values = self.values[groups]
        if not axes:
            return _Counts(None, values, self.variance)
        labels = np.searchsorted(groups, inside)
        return _Counts(Partition(axes, labels), values, self.variance)


def _of_history(history: History, names: Collection[str]) -> Iterator[_Counts]:
    """The most precise counts of each partition of some columns, and of all records."""
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
    """The same from counts with Gaussian noise; these are independent of each other."""
    for one in beside:
        scope = one.block.scope
        if counts_groups(one.block) and (not scope or any(name in names for name in scope)):
            yield _Counts(one.block.partition, one.values, one.deviation**2)


def _estimates(
    counted: _Counts, names: AbstractSet[str]
) -> Iterator[TableEstimate | GroupedEstimate]:
    """The estimates that the counts of a partition give, if it is a product of columns' partitions.

    Notes
    -----
    With more than two columns, the tables of all pairs share their noise, and so do the `m` tables
    that contain one column. Their variances are multiplied by `m`, so that together they have the
    precision of one of them for the margin of that column: they all have the same margin, and the
    mean of equal values is that value.
    """
    partition = counted.partition
    if partition is None or not names & set(partition.axes):
        return  # of a stratum, counts by columns that are not asked for
    groups = _grouping(partition)
    if groups is None:
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
    """The partition of each axis whose product it is; None if it is not a product."""
    if partition.n_cells > N_FACTOR_CELLS_MAX:
        return None
    labels = partition.labels
    if int(labels.min()) < 0:
        return None
    groups = tuple(Buckets(_classes(labels, axis)) for axis in range(labels.ndim))
    n_products = int(np.prod([one.n_buckets for one in groups]))
    return groups if n_products == partition.n_groups else None


def _classes(labels: Integers, axis: int) -> Integers:
    """The class of each level of an axis, numbered in the order of first occurrence."""
    if labels.ndim == 1:
        slices = labels[:, np.newaxis]
    else:
        slices = np.moveaxis(labels, axis, 0).reshape(labels.shape[axis], -1)
    _, first, of_level = np.unique(slices, axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[of_level.ravel()]
