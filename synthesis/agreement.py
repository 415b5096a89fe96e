"""Buckets that earlier estimates over groups of levels can be merged to.

A pair table that was bought for an earlier synthetic table is over the buckets of that time. It
can be used again over any buckets that its groups make up. What it would cost in detail decides
whether it is: an estimate so crude that a column would lose much of what is visible of it now is
left aside.
"""

from collections.abc import Mapping, Sequence

from synthesis.buckets import Buckets, GroupedEstimate, joined

BUCKETS_KEPT_LEAST = 0.8  # of those that are visible: fewer, and what was known is lost by it


def agreed_buckets(
    visible: Mapping[str, Buckets], grouped: Sequence[GroupedEstimate]
) -> tuple[dict[str, Buckets], tuple[GroupedEstimate, ...]]:
    """Buckets for each column of which something is known, and the estimates that fit them.

    Parameters
    ----------
    visible : mapping of str to Buckets
        What one would choose without the estimates.
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
