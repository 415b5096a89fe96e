"""Buckets: levels whose counts are hidden by noise, counted together and split again for rows.

A pair table has a cell for every two levels, each equally noisy; levels without a visible count
would only add noise. Which levels go together follows from noisy counts, so it costs nothing. A
bucket is split again by the one-way estimates, which have every level.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cube.query import Scope
from cube.runtime import cached_property
from synthesis.tables import Column, Floats, Integers, TableEstimate

VISIBLE_SDS = 3.0  # standard deviations; noise alone exceeds this less than once in a hundred


@dataclass(frozen=True, eq=False)
class Buckets:
    """A partition of a column's levels.

    Parameters
    ----------
    labels : (n_levels,) ndarray of int64
        The bucket of each level: ``0 .. n_buckets - 1``, each of them used.
    """

    labels: Integers

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.int64)
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        if labels.ndim != 1 or not labels.size:
            raise ValueError("each level needs one label, and there must be at least one level")
        if not np.array_equal(np.unique(labels), np.arange(self.n_buckets)):
            raise ValueError("labels must be 0 .. n_buckets - 1, each of them used")

    @cached_property
    def n_buckets(self) -> int:
        """The number of buckets."""
        return int(self.labels.max(initial=-1)) + 1

    @cached_property
    def members(self) -> list[Integers]:
        """The levels of each bucket, ascending."""
        return np.split(self._by_bucket, self._starts[1:])

    @cached_property
    def _by_bucket(self) -> Integers:
        return np.argsort(self.labels, kind="stable")

    @cached_property
    def _starts(self) -> Integers:
        return np.searchsorted(self.labels[self._by_bucket], np.arange(self.n_buckets))

    def summed(self, cells: Floats, axis: int) -> Floats:
        """Sums over each bucket's levels, which lie along `axis`."""
        if self.is_plain:
            return cells
        in_order = np.take(cells, self._by_bucket, axis=axis)
        return np.asarray(np.add.reduceat(in_order, self._starts, axis=axis), dtype=np.float64)

    def expanded(self, values: Floats) -> Floats:
        """The value of each level's bucket; buckets lie along the last dimension."""
        return values if self.is_plain else np.take(values, self.labels, axis=-1)

    @cached_property
    def is_plain(self) -> bool:
        """Whether each level is a bucket, in the same order."""
        return np.array_equal(self.labels, np.arange(self.labels.size))

    def within(self, finer: "Buckets") -> "Buckets":
        """The same partition as one of the buckets of a finer one.

        Raises
        ------
        ValueError
            If a finer bucket has levels of several of these.
        """
        first = np.unique(finer.labels, return_index=True)[1]
        labels = self.labels[first]
        if not np.array_equal(labels[finer.labels], self.labels):
            raise ValueError("a bucket of the finer partition is in several of the coarser one")
        return Buckets(labels)


@dataclass(frozen=True, eq=False)
class GroupedEstimate:
    """Unbiased estimates of counts over the product of one partition of levels for each column.

    Parameters
    ----------
    groups : tuple of Buckets
        The partition of each column of the table's scope.
    table : TableEstimate
        The estimates over these groups.
    """

    groups: tuple[Buckets, ...]
    table: TableEstimate

    def __post_init__(self) -> None:
        if self.table.values.shape != tuple(one.n_buckets for one in self.groups):
            raise ValueError(
                f"the table's shape {self.table.values.shape} does not match the groups of "
                f"{self.scope}"
            )

    @property
    def scope(self) -> Scope:
        """The columns, sorted by name."""
        return self.table.scope

    def over(self, buckets: Mapping[str, Buckets]) -> TableEstimate:
        """The same table over buckets that are unions of its groups."""
        named = zip(self.scope, self.groups, strict=True)
        return merged(self.table, {name: buckets[name].within(groups) for name, groups in named})


def refined(first: Buckets, second: Buckets) -> Buckets:
    """The coarsest buckets that both can be made of: levels together are together in both.

    >>> refined(Buckets(np.array([0, 0, 0, 1])), Buckets(np.array([0, 1, 1, 2]))).labels
    array([0, 1, 1, 2])
    """
    pairs = first.labels * second.n_buckets + second.labels
    return Buckets(np.unique(pairs, return_inverse=True)[1])


def merged(table: TableEstimate, buckets: Mapping[str, Buckets]) -> TableEstimate:
    """A table over levels, summed to a table over buckets."""
    values, variance = table.values, table.variance
    for axis, name in enumerate(table.scope):
        if values.shape[axis] != buckets[name].labels.size:
            raise ValueError(
                f"the table has {values.shape[axis]} levels of {name}, not the declared number"
            )
        values = buckets[name].summed(values, axis)
        variance = buckets[name].summed(variance, axis)
    return TableEstimate(table.scope, values, variance)


def visible_buckets(column: Column, counts: TableEstimate) -> Buckets:
    """Merge the levels whose counts are not visible above the noise.

    Parameters
    ----------
    column : Column
    counts : TableEstimate
        Its one-way estimate, over levels.

    Notes
    -----
    Unordered levels below `VISIBLE_SDS` standard deviations all go into one bucket, as in MST [1]_.
    Ordered levels are merged with their neighbours until a bucket as a whole is above that; the
    last bucket takes the remaining levels.

    References
    ----------
    .. [1] R. McKenna, G. Miklau, D. Sheldon, "Winning the NIST Contest: A scalable and general
       approach to differentially private synthetic data", Journal of Privacy and Confidentiality
       11, 2021.
    """
    values, variance = counts.values, counts.variance
    n_ordered = column.n_ordered
    ordered = _runs(values[:n_ordered], variance[:n_ordered])
    visible = values[n_ordered:] >= VISIBLE_SDS * np.sqrt(variance[n_ordered:])
    # The bucket of rare levels comes last; a single rare level is a bucket of its own.
    unordered = np.where(visible, np.cumsum(visible) - 1, visible.sum())
    n_ordered_buckets = int(ordered.max(initial=-1)) + 1
    return Buckets(np.concatenate([ordered, n_ordered_buckets + unordered]))


def _runs(values: Floats, variance: Floats) -> Integers:
    """Labels that merge neighbours until their sum is visible."""
    starts = np.zeros(values.size, dtype=np.int64)
    total, noise, open_since = 0.0, 0.0, 0
    for level, (value, spread) in enumerate(zip(values.tolist(), variance.tolist(), strict=True)):
        total, noise = total + value, noise + spread
        if total >= VISIBLE_SDS * noise**0.5:
            starts[open_since] = 1
            total, noise, open_since = 0.0, 0.0, level + 1
    starts[:1] = 1
    return np.cumsum(starts) - 1
