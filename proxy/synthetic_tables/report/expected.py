"""The expected distance of every pair of columns from the private one, from public values alone.

Of a measured pair it is what its noise does to a fitted table, tried out on the synthetic counts.
Of any other pair it is known only if its distance from public numbers was released, and may not be
known at all. A distance is a total variation distance: the share of rows in the wrong place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from cube.query import Scope
from inference.noise_law.law import law_of_noises
from proxy.synthetic_tables.report.measured import (
    Floats,
    Integers,
    MeasuredDistance,
    MeasuredTable,
    rows_in,
)
from proxy.synthetic_tables.report.residuals import CheckedTable
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
    scale: float,
    rng: np.random.Generator,
) -> dict[Scope, PairDistance]:
    """The expected distance of each pair of columns, in the order of the sorted names.

    Parameters
    ----------
    checked : sequence of CheckedTable
    distances : sequence of MeasuredDistance
    levels : mapping of str to (n_rows,) ndarray of int64
        The position of each synthetic row's level in each column.
    scale : float
        By what synthetic counts are multiplied. If there are fewer rows than private ones, they
        cannot be closer to them than as many drawn rows are.
    rng : numpy.random.Generator
        For trying out the noise of measured pairs; it sees no data.
    """
    found = {scope: PairDistance(scope, False) for scope in combinations(sorted(levels), 2)}
    for one in sorted(distances, key=lambda one: -one.scale):
        if one.scope in found:
            found[one.scope] = _told(one, scale * rows_in(one.partition, levels))
    measured: dict[Scope, float] = {}
    for table in checked:
        for pair in combinations(table.scope, 2):
            share = _after_noise(table, pair, scale, rng)
            measured[pair] = min(share, measured.get(pair, share))
    return found | {pair: PairDistance(pair, True, share) for pair, share in measured.items()}


def mean_distance(pairs: Mapping[Scope, PairDistance]) -> float | None:
    """The mean over all pairs whose distance is told; None if none is."""
    shares = [one.share for one in pairs.values() if one.share is not None]
    return float(np.mean(shares)) if shares else None


def _told(one: MeasuredDistance, synthetic: Floats) -> PairDistance:
    """The larger of the two tables' distances from the same public numbers.

    What the private table has beyond these numbers the synthetic one may lack, and the other way
    round. The two distances are apart by at most the sought one, and it is at most their sum.
    """
    n_rows = max(1.0, float(synthetic.sum()))
    own = float(np.abs(synthetic - one.reference).sum())
    law = law_of_noises(np.array([one.scale]), np.array([one.is_gaussian]))
    share, half_width = max(one.value, own) / (2 * n_rows), law.half_width(CONFIDENCE)
    return PairDistance(one.scope, False, min(1.0, share), half_width / (2 * n_rows))


def _after_noise(table: CheckedTable, pair: Scope, scale: float, rng: np.random.Generator) -> float:
    """What the same noise would do to the synthetic counts, and by what these miss its limit."""
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
    drawn = float(np.sqrt(2 / np.pi * scale * counts).sum() / (2 * total)) if scale > 1 else 0.0
    return min(1.0, float(np.hypot(np.mean(far), drawn)) + table.excess_share)


def _of_pair(measured: MeasuredTable, counts: Floats, pair: Scope) -> tuple[Floats, int]:
    """The counts of a pair's cells, and how many measured ones are added up for each."""
    grid = measured.grid
    if len(measured.scope) == len(pair) or grid is None:
        return counts, 1
    others = tuple(axis for axis, name in enumerate(measured.scope) if name not in pair)
    sums = counts[grid].sum(axis=others)
    return sums.ravel(), grid.size // sums.size
