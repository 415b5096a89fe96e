"""Buckets into which earlier estimates over groups of levels can be merged.

A pair table that was bought for an earlier synthetic table is over that table's buckets. It can be
used again over any buckets that are unions of its groups. Whether it is used depends on the loss of
detail: an estimate so coarse that a column would lose much of what is visible now is not used.
"""

from collections.abc import Mapping, Sequence

from synthesis.buckets import Buckets, GroupedEstimate, joined

BUCKETS_KEPT_LEAST = 0.8  # of the visible buckets; an estimate that leaves fewer is not used


def agreed_buckets(
    visible: Mapping[str, Buckets], grouped: Sequence[GroupedEstimate]
) -> tuple[dict[str, Buckets], tuple[GroupedEstimate, ...]]:
    """Buckets for each column with an estimate, and the grouped estimates that fit the buckets.

    Parameters
    ----------
    visible : mapping of str to Buckets
        The choice without the grouped estimates.
    grouped : sequence of GroupedEstimate
        The most precise are considered first.
    """
    agreed = dict(visible)
    kept = []
    for estimate in sorted(grouped, key=lambda one: float(one.table.variance.mean())):
        tried = {
            name: joined(agreed[name], groups) if name in agreed else groups
            for name, groups in zip(estimate.scope, estimate.groups, strict=True)
        }
        if all(
            one.n_buckets >= BUCKETS_KEPT_LEAST * visible.get(name, one).n_buckets
            for name, one in tried.items()
        ):
            agreed |= tried
            kept.append(estimate)
    return agreed, tuple(kept)
