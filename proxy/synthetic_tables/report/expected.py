"""The expected distance of every pair of columns from the private one, from public values alone.

Of a measured pair it is what its noise does to a fitted table, tried out on the synthetic counts,
and what drawing rows does. Of any other pair it is known only if its distance from public numbers
was released, and may not be known at all. Where levels were counted together, what is off within
their groups is added, as if rows there were random in both tables. A distance is a total variation
distance over levels: the share of rows in the wrong place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from cube.query import Partition, Scope
from inference.noise_law.law import law_of_noises
from proxy.synthetic_tables.report.measured import (
    Floats,
    Integers,
    MeasuredDistance,
    MeasuredTable,
    rows_in,
)
from proxy.synthetic_tables.report.residuals import CheckedTable, Drawing
from synthesis.fitting import projected

N_TRIALS: Final = 3  # of the noise: each has thousands of counts, or is small
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class PairDistance:
    """What is expected of one pair.

    Parameters
    ----------
    scope : tuple of str
    is_measured : bool
        Whether its counts were measured, alone or with other columns.
    share : float, optional
        The expected distance, as a share of the rows; None if nothing tells it.
    half_width : float
        By how much the noise may have moved it, of a pair that was not measured.
    """

    scope: Scope
    is_measured: bool
    share: float | None = None
    half_width: float = 0.0

    @property
    def at_most(self) -> float:
        """The upper end of the interval; 1 if nothing tells it."""
        return 1.0 if self.share is None else min(1.0, self.share + self.half_width)


def pair_distances(
    checked: Sequence[CheckedTable],
    distances: Sequence[MeasuredDistance],
    levels: Mapping[str, Integers],
    *,
    drawing: Drawing,
    rng: np.random.Generator,
) -> dict[Scope, PairDistance]:
    """The expected distance of each pair of columns, in the order of the sorted names.

    Parameters
    ----------
    checked : sequence of CheckedTable
    distances : sequence of MeasuredDistance
    levels : mapping of str to (n_rows,) ndarray of int64
        The position of each synthetic row's level in each column.
    drawing : Drawing
    rng : numpy.random.Generator
        For trying out the noise of measured pairs; it sees no data.
    """
    found = {scope: PairDistance(scope, False) for scope in combinations(sorted(levels), 2)}
    for one in sorted(distances, key=lambda one: -one.scale):
        if one.scope in found:
            found[one.scope] = _told(one, drawing.scale * rows_in(one.partition, levels), levels)
    measured: dict[Scope, float] = {}
    for table in checked:
        for pair in combinations(table.scope, 2):
            share = _after_noise(table, pair, levels, drawing, rng)
            measured[pair] = min(share, measured.get(pair, share))
    return found | {pair: PairDistance(pair, True, share) for pair, share in measured.items()}


def mean_distance(pairs: Mapping[Scope, PairDistance]) -> float | None:
    """The mean over all pairs whose distance is told; None if none is."""
    shares = [one.share for one in pairs.values() if one.share is not None]
    return float(np.mean(shares)) if shares else None


def _told(one: MeasuredDistance, synthetic: Floats, levels: Mapping[str, Integers]) -> PairDistance:
    """The larger of the two tables' distances from the same public numbers.

    What the private table has beyond these numbers the synthetic one may lack, and the other way
    round. The two distances are apart by at most the sought one, and it is at most their sum.
    """
    n_rows = max(1.0, float(synthetic.sum()))
    own = float(np.abs(synthetic - one.reference).sum())
    law = law_of_noises(np.array([one.scale]), np.array([one.is_gaussian]))
    between = max(one.value, own) / (2 * n_rows)
    share = float(np.hypot(between, _within(one.partition, synthetic, levels)))
    return PairDistance(
        one.scope, False, min(1.0, share), law.half_width(CONFIDENCE) / (2 * n_rows)
    )


def _after_noise(
    table: CheckedTable,
    pair: Scope,
    levels: Mapping[str, Integers],
    drawing: Drawing,
    rng: np.random.Generator,
) -> float:
    """What the same noise and drawing would do to the synthetic counts, and what is beyond that."""
    counts, n_summed = _of_pair(table.measured, table.synthetic, pair)
    total = counts.sum()
    if not total > 0:
        return 1.0
    deviation = table.measured.deviation * n_summed**0.5
    variance = np.full((1, counts.size), deviation**2)
    far = []
    for _ in range(N_TRIALS):
        if table.measured.is_gaussian or n_summed > 1:
            noise = rng.normal(0.0, deviation, counts.size)
        else:
            noise = rng.laplace(0.0, table.measured.scale, counts.size)
        fitted = projected((counts + noise)[np.newaxis], np.array([total]), variance)[0]
        far.append(float(np.abs(fitted - counts).sum() / (2 * total)))
    drawn = drawing.expected(counts, len(pair)) / (2 * total)
    within = 0.0
    if table.scope == pair:
        within = _within(table.measured.partition, table.synthetic, levels)
    return min(1.0, float(np.sqrt(np.mean(far) ** 2 + drawn**2 + within**2)) + table.excess_share)


def _within(partition: Partition, counts: Floats, levels: Mapping[str, Integers]) -> float:
    """The share of rows that are off within the groups of a pair's levels.

    In a group of several cells, rows are as each column's levels are, independently; in the private
    table at best the same holds of the law that its rows come from. Two Poisson counts with mean
    ``e`` differ by about ``min(2 e, sqrt(4 e / pi))``.
    """
    labels = partition.labels
    shares = [
        np.bincount(levels[name], minlength=size)
        for name, size in zip(partition.axes, labels.shape, strict=True)
    ]
    weights = np.where(labels >= 0, np.multiply.outer(*shares).astype(np.float64), 0.0)
    groups = np.maximum(labels, 0)
    of_groups = np.bincount(groups.ravel(), weights.ravel(), counts.size)
    is_merged = np.bincount(groups.ravel(), minlength=counts.size) > 1
    scale = np.divide(counts, of_groups, out=np.zeros(counts.size), where=of_groups > 0)
    means = weights * (scale * is_merged)[groups]
    off = np.minimum(2 * means, np.sqrt(4 / np.pi * means)).sum()
    return float(off / (2 * max(1.0, counts.sum())))


def _of_pair(measured: MeasuredTable, counts: Floats, pair: Scope) -> tuple[Floats, int]:
    """The counts of a pair's cells, and how many measured ones are added up for each."""
    grid = measured.grid
    if len(measured.scope) == len(pair) or grid is None:
        return counts, 1
    others = tuple(axis for axis, name in enumerate(measured.scope) if name not in pair)
    sums = counts[grid].sum(axis=others)
    return sums.ravel(), grid.size // sums.size
