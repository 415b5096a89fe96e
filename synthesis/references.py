"""What the table of two columns would be at each holder if they were independent there.

Each holder tells the noisy distance of its own counts from such a table. The sum of these distances
stands for the distance of all rows from independence, with what holders differ by added, which is
known from their counts of single columns, for nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synthesis.buckets import Buckets
from synthesis.sketch import Candidate, Sketch
from synthesis.tables import Floats, TableEstimate


@dataclass(frozen=True, eq=False)
class HolderMargins:
    """What is known of one holder's columns.

    Parameters
    ----------
    n_rows : float, optional
        The approximate number of its rows; None if it is not known.
    columns : mapping of str to TableEstimate
        Its own counts of the levels of columns, as far as they are known.
    """

    n_rows: float | None
    columns: Mapping[str, TableEstimate]


def tables_if_independent(
    sketch: Sketch, candidate: Candidate, holders: Sequence[HolderMargins]
) -> tuple[Floats, float]:
    """A table of a candidate's cells for each holder, and how far their sum is from the sketch's.

    Parameters
    ----------
    sketch : Sketch
        Of the rows of all holders.
    candidate : Candidate
    holders : sequence of HolderMargins
        At least one.

    Returns
    -------
    references : (n_holders, n_groups, n_groups) ndarray of float64
        Not negative.
    between : float
        The L1 distance of their sum from `Sketch.reference`: what columns depend on each other
        because holders differ.

    Notes
    -----
    A holder's table is the product of its columns' counts. These are noisy, so they are drawn
    towards the holder's share of the counts of all, by the positive-part estimate of James and
    Stein [1]_: all the way where holders show no difference beyond noise. With the triangle
    inequality, the sum of the distances and `between` is at least the distance of all rows.

    References
    ----------
    .. [1] W. James, C. Stein, "Estimation with Quadratic Loss", Proceedings of the Fourth Berkeley
       Symposium 1, 1961.
    """
    sizes = np.array([max(0.0, one.n_rows or 0.0) for one in holders])
    shares = sizes / sizes.sum() if sizes.sum() > 0 else np.full(sizes.size, 1 / sizes.size)
    first, second = (
        _columns(sketch, name, groups, holders, shares)
        for name, groups in zip(candidate.scope, candidate.groups, strict=True)
    )
    rows = np.maximum(shares * sketch.total, 1.0)
    found: Floats = np.einsum("hi,hj,h->hij", first, second, 1 / rows)
    between = np.abs(found.sum(axis=0) - sketch.reference(candidate)).sum()
    return found, float(between)


def _columns(
    sketch: Sketch,
    name: str,
    groups: Buckets,
    holders: Sequence[HolderMargins],
    shares: Floats,
) -> Floats:
    """Each holder's counts of a column's groups, (n_holders, n_groups)."""
    whole = groups.within(sketch.buckets[name]).summed(sketch.margins[name], 0)
    return np.stack(
        [
            _drawn_towards(share * whole, one.columns.get(name), groups)
            for share, one in zip(shares.tolist(), holders, strict=True)
        ]
    )


def _drawn_towards(expected: Floats, own: TableEstimate | None, groups: Buckets) -> Floats:
    """A holder's counts of groups, no nearer to those expected of it than noise allows."""
    total = float(expected.sum())
    if own is None or total <= 0:
        return expected
    apart = groups.summed(own.values, 0) - expected
    square, noise = float(np.square(apart).sum()), float(own.variance.sum())
    kept = max(0.0, 1 - noise / square) if square > 0 else 0.0
    drawn = np.maximum(expected + kept * apart, 0.0)
    return np.asarray(drawn * (total / max(float(drawn.sum()), 1.0)), dtype=np.float64)
