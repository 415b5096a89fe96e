"""The groups of a column's buckets over which tables of pairs are counted.

Every cell of a table has the same noise, so a table of two columns with hundreds of buckets is all
noise. Its columns are counted in fewer groups: neighbours together where levels are in order, each
group about as large as any other; the most frequent alone, and the rest together, where they are
not. Which levels go together follows from noisy counts, so it costs nothing.
"""

from typing import Final

import numpy as np

from synthesis.buckets import Buckets
from synthesis.tables import Column, Floats, Integers

FINE: Final = 64
COARSE: Final = 16
UNORDERED_SHARE: Final = 0.25  # of a column's groups, for its levels without order, if it has both


def rungs(column: Column, buckets: Buckets, counts: Floats) -> tuple[Buckets, ...]:
    """The partitions of a column's buckets to count pairs over: the finest first, each of the last.

    Parameters
    ----------
    column : Column
    buckets : Buckets
        Of its levels.
    counts : (n_buckets,) ndarray of float64
        Estimates of their counts, not negative.

    Returns
    -------
    tuple of Buckets
        Of the buckets: one with at most `FINE` groups, and one with at most `COARSE` if that is
        another.
    """
    fine = coarser(column, buckets, counts, FINE)
    of_levels = Buckets(fine.labels[buckets.labels])
    coarse = coarser(column, of_levels, fine.summed(counts, 0), COARSE)
    return (fine,) if coarse.is_plain else (fine, Buckets(coarse.labels[fine.labels]))


def coarser(column: Column, buckets: Buckets, counts: Floats, n_groups: int) -> Buckets:
    """At most `n_groups` groups of a column's buckets; each alone if they are no more than that."""
    if buckets.n_buckets <= n_groups:
        return Buckets(np.arange(buckets.n_buckets))
    first = np.array([members[0] for members in buckets.members])
    ordered = np.flatnonzero(first < column.n_ordered)
    ordered = ordered[np.argsort(first[ordered], kind="stable")]
    others = np.flatnonzero(first >= column.n_ordered)
    n_others = n_groups if not ordered.size else max(1, round(UNORDERED_SHARE * n_groups))
    n_others = min(n_others, others.size)
    labels = np.empty(buckets.n_buckets, dtype=np.int64)
    labels[ordered] = _equal_runs(counts[ordered], n_groups - n_others)
    labels[others] = n_groups + _most_frequent(counts[others], n_others)
    return Buckets(np.unique(labels, return_inverse=True)[1])


def _equal_runs(counts: Floats, n_runs: int) -> Integers:
    """Runs of neighbours with about equal counts: where the middle of each lies in the whole."""
    middles = np.cumsum(counts) - counts / 2
    total = max(float(counts.sum()), 1.0)
    return np.minimum((n_runs * middles / total).astype(np.int64), max(n_runs - 1, 0))


def _most_frequent(counts: Floats, n_groups: int) -> Integers:
    """The most frequent in groups of their own, and all others in the last group."""
    rank = np.empty(counts.size, dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
    return np.minimum(rank, max(n_groups - 1, 0))
