"""What the table of two columns would be at each holder if they were independent there.

Each holder tells the noisy distance of its own counts from such a table. The sum of these distances
stands for the distance of all rows from independence, with what holders differ by added, which is
known from their counts of single columns, for nothing. From the same counts follows which share of
a given table each holder is likely to have, so that it can tell its distance from that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cube.query import Scope
from synthesis.buckets import Buckets, GroupedEstimate
from synthesis.fitting import ratio_or_zero
from synthesis.sketch import Candidate, Sketch
from synthesis.tables import Floats, Integers, TableEstimate


@dataclass(frozen=True, eq=False)
class HolderMargins:
    """What is known of one holder's columns.

    Parameters
    ----------
    n_rows : float, optional
        The approximate number of its rows; None if it is not known.
    columns : mapping of str to TableEstimate
        Its own counts of the levels of columns, as far as they are known.
    pairs : mapping of sorted scope to sequence of GroupedEstimate
        Its own counts of two columns, of levels or of groups of them, as far as they are known.
    """

    n_rows: float | None
    columns: Mapping[str, TableEstimate]
    pairs: Mapping[Scope, Sequence[GroupedEstimate]] = field(default_factory=dict)


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
    shares = _shares_of_rows(holders)
    first, second = (
        _columns(sketch, name, groups, holders, shares)
        for name, groups in zip(candidate.scope, candidate.groups, strict=True)
    )
    rows = np.maximum(shares * sketch.total, 1.0)
    found: Floats = np.einsum("hi,hj,h->hij", first, second, 1 / rows)
    between = np.abs(found.sum(axis=0) - sketch.reference(candidate)).sum()
    return found, float(between)


def shares_of_holders(
    counts: Integers, scope: Scope, groups: Sequence[Buckets], holders: Sequence[HolderMargins]
) -> Floats:
    """Each holder's share of the cells of a table of one or two columns, as far as is known.

    Parameters
    ----------
    counts : (n_groups, ..) ndarray of int64
        Of all rows, in groups of the levels of each column.
    scope : tuple of str
        The columns.
    groups : sequence of Buckets
        The groups of their levels.
    holders : sequence of HolderMargins
        At least one.

    Returns
    -------
    (n_groups, .., n_holders) ndarray of float64
        Not negative; the shares of a cell have the sum 1.

    Notes
    -----
    In proportion to the tables that holders would have if their columns were independent there,
    with the counts of columns drawn towards the holder's share as in `tables_if_independent`. Where
    a holder's counts of both columns are known, its share of the given counts is drawn to them, as
    far as they differ by more than noise: the nearer the shares are to what holders have, the
    nearer is the sum of their distances to the distance of all rows.
    """
    sizes = _shares_of_rows(holders)
    tables = [np.full((1,) * counts.ndim, share) for share in sizes.tolist()]
    for axis, (name, buckets) in enumerate(zip(scope, groups, strict=True)):
        others = tuple(place for place in range(counts.ndim) if place != axis)
        whole = counts.sum(axis=others).astype(np.float64)
        shape = [-1 if place == axis else 1 for place in range(counts.ndim)]
        for place, (share, one) in enumerate(zip(sizes.tolist(), holders, strict=True)):
            own = _drawn_towards(share * whole, one.columns.get(name), buckets)
            per_row = own / (share * max(float(whole.sum()), 1.0)) if share > 0 else 0.0 * own
            tables[place] = tables[place] * per_row.reshape(shape)
    shares = _of_sums(
        np.stack(tables, axis=-1), np.broadcast_to(sizes, (*counts.shape, sizes.size))
    )
    own_counts = [counts * shares[..., place] for place in range(len(holders))]
    for place, one in enumerate(holders):
        for pair in one.pairs.get(tuple(scope), ()):
            own_counts[place] = _drawn_to(own_counts[place], groups, pair)
    return _of_sums(np.stack(own_counts, axis=-1), shares)


def _of_sums(parts: Floats, otherwise: Floats) -> Floats:
    """Each part's share of the sum over the last axis; another one where the sum is 0."""
    sums = parts.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(parts, sums, out=otherwise.copy(), where=sums > 0))


def _drawn_to(table: Floats, groups: Sequence[Buckets], pair: GroupedEstimate) -> Floats:
    """A table of two columns, as near to a holder's own counts of them as noise allows.

    These may be of finer groups along one column, and of coarser ones along another: within a
    coarser group the table keeps its shares. Where groups cross, the table stays as it is.
    """
    values, variance = pair.table.values, pair.table.variance
    places = []
    for axis, (own, asked) in enumerate(zip(pair.groups, groups, strict=True)):
        try:
            finer = asked.within(own)
        except ValueError:
            try:
                places.append(own.within(asked).labels)
            except ValueError:
                return table
        else:
            values, variance = finer.summed(values, axis), finer.summed(variance, axis)
            places.append(np.arange(asked.n_buckets))
    cells = np.arange(values.size).reshape(values.shape)[np.ix_(*places)]
    summed = np.bincount(cells.ravel(), table.ravel(), minlength=values.size)
    expected: Floats = summed.reshape(values.shape).astype(np.float64)
    drawn = np.maximum(expected + _kept(values - expected, variance) * (values - expected), 0.0)
    ratios: Floats = ratio_or_zero(drawn, expected).ravel()[cells]
    return np.asarray(table * ratios, dtype=np.float64)


def _shares_of_rows(holders: Sequence[HolderMargins]) -> Floats:
    """The share of each holder in all rows; equal ones if nothing is known."""
    sizes = np.array([max(0.0, one.n_rows or 0.0) for one in holders])
    shares = sizes / sizes.sum() if sizes.sum() > 0 else np.full(sizes.size, 1 / sizes.size)
    return np.asarray(shares, dtype=np.float64)


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
    drawn = np.maximum(expected + _kept(apart, own.variance) * apart, 0.0)
    return np.asarray(drawn * (total / max(float(drawn.sum()), 1.0)), dtype=np.float64)


def _kept(apart: Floats, variance: Floats) -> float:
    """The part of a difference that is more than noise; see `tables_if_independent`."""
    square, noise = float(np.square(apart).sum()), float(variance.sum())
    return max(0.0, 1 - noise / square) if square > 0 else 0.0
