"""Buckets: levels too rare to tell from noise, counted together and taken apart again.

A pair table has a cell for every two levels, each as noisy as the next; levels that hold nothing
that one can see would only add noise to it. Which levels go together follows from noisy counts, so
it is free. The way back is by the one-way estimates, which know every level.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synthesis.tables import Column, Floats, Integers, TableEstimate

VISIBLE_SDS = 3.0  # standard deviations; noise alone is above it less than once in a hundred


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
            raise ValueError("labels are one for each level, of which there is one at least")
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
        in_order = np.take(cells, self._by_bucket, axis=axis)
        return np.asarray(np.add.reduceat(in_order, self._starts, axis=axis), dtype=np.float64)


def merged(table: TableEstimate, buckets: Mapping[str, Buckets]) -> TableEstimate:
    """A table over levels as one over buckets."""
    values, variance = table.values, table.variance
    for axis, name in enumerate(table.scope):
        if values.shape[axis] != buckets[name].labels.size:
            raise ValueError(f"{values.shape[axis]} levels of {name}, which has others")
        values = buckets[name].summed(values, axis)
        variance = buckets[name].summed(variance, axis)
    return TableEstimate(table.scope, values, variance)


def visible_buckets(column: Column, counts: TableEstimate) -> Buckets:
    """Merge the levels of which noise hides whether they hold anything.

    Parameters
    ----------
    column : Column
    counts : TableEstimate
        Its one-way estimate, over levels.

    Notes
    -----
    A level without order that is below `VISIBLE_SDS` standard deviations goes into one bucket of
    all such levels, as in MST [1]_. Levels in order are merged with their neighbours, until a
    bucket as a whole is above that; the last bucket takes what is left over.

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
    # The rare bucket comes last; a single rare level is merged with nothing.
    unordered = np.where(visible, np.cumsum(visible) - 1, visible.sum())
    n_ordered_buckets = int(ordered.max(initial=-1)) + 1
    return Buckets(np.concatenate([ordered, n_ordered_buckets + unordered]))


def _runs(values: Floats, variance: Floats) -> Integers:
    """Labels of neighbours taken together until their sum is visible."""
    starts = np.zeros(values.size, dtype=np.int64)
    total, noise, open_since = 0.0, 0.0, 0
    for level, (value, spread) in enumerate(zip(values.tolist(), variance.tolist(), strict=True)):
        total, noise = total + value, noise + spread
        if total >= VISIBLE_SDS * noise**0.5:
            starts[open_since] = 1
            total, noise, open_since = 0.0, 0.0, level + 1
    starts[:1] = 1
    return np.cumsum(starts) - 1
