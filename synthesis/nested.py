"""The best estimate of one column's counts from estimates over nested groups of them.

Levels of a column are counted once by themselves, and again, in groups, by every table of it and
another column. Groups of groups form a tree, on which two passes give the least-squares estimate.
"""

from collections.abc import Sequence

import numpy as np

from synthesis.buckets import Buckets, merged
from synthesis.tables import TableEstimate, combined


def nested_estimate(
    finest: TableEstimate, coarser: Sequence[tuple[Buckets, TableEstimate]]
) -> TableEstimate:
    """Combine independent estimates of a column over parts, and over groups of these.

    Parameters
    ----------
    finest : TableEstimate
        Of one column, over its parts.
    coarser : sequence of (Buckets, TableEstimate)
        Partitions of the parts, and an estimate over each.

    Returns
    -------
    TableEstimate
        Over the parts. Its variances are those of each part; errors of parts in a group are not
        independent of each other.

    Notes
    -----
    The weighted least-squares estimate [1]_, if the partitions are nested: upwards, each group's
    estimate is combined with the sum of what is below it; downwards, what a group's estimate
    differs from that sum is shared out in proportion to the variances. Estimates over a partition
    that is not one of the groups of the finer ones are not used.

    References
    ----------
    .. [1] M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the Accuracy of Differentially Private
       Histograms Through Consistency", VLDB 2010, theorem 3; here with unequal variances.
    """
    (column,) = finest.scope
    below = [finest]  # the estimate of each rung from what is on it and below it
    steps: list[Buckets] = []  # each rung's groups, of the groups of the rung below
    reached = Buckets(np.arange(finest.values.size))
    for groups, estimate in _of_one_partition(coarser):
        try:
            step = groups.within(reached)
        except ValueError:
            continue
        summed = merged(below[-1], {column: step})
        below.append(combined([summed, estimate]))
        steps.append(step)
        reached = groups
    found = below.pop()
    for step, part in zip(reversed(steps), reversed(below), strict=True):
        summed = merged(part, {column: step})
        share = part.variance / step.expanded(summed.variance)
        moved = step.expanded(found.values - summed.values)
        kept = part.variance * (1 - share) + share**2 * step.expanded(found.variance)
        # A part that is a group by itself keeps what the group has, down to rounding
        values, variance = part.values + share * moved, np.maximum(kept, 1e-12 * part.variance)
        found = TableEstimate(part.scope, values, variance)
    return found


def _of_one_partition(
    coarser: Sequence[tuple[Buckets, TableEstimate]],
) -> list[tuple[Buckets, TableEstimate]]:
    """One estimate for each partition, the finest partition first."""
    of_labels: dict[bytes, tuple[Buckets, list[TableEstimate]]] = {}
    for groups, estimate in coarser:
        # Groups are compared by which parts they hold, whatever their numbers
        _, first, labels = np.unique(groups.labels, return_index=True, return_inverse=True)
        in_order = np.argsort(np.argsort(first))
        same = Buckets(in_order[labels])
        renumbered = TableEstimate(
            estimate.scope,
            estimate.values[groups.labels[np.sort(first)]],
            estimate.variance[groups.labels[np.sort(first)]],
        )
        of_labels.setdefault(same.labels.tobytes(), (same, []))[1].append(renumbered)
    partitions = [(groups, combined(estimates)) for groups, estimates in of_labels.values()]
    return sorted(partitions, key=lambda one: -one[0].n_buckets)
