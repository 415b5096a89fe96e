"""The history's estimates of a private table's counts, of single columns and of pairs.

The posteriors are those that any query gets; nothing is bought, and nothing private is read. Counts
use the finest groups of levels that are known: a pair that was bought over merged levels has no
finer counts. Counts with Gaussian noise are not used by queries; they are added here.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from scipy.special import ndtri

from cube.axis import Axis
from cube.query import Partition, QueryBlock, Scope, counting
from cube.statistic import GaussianNoisyCounts
from cube.target import AccuracyTarget
from inference.block_estimates import RowEstimates
from inference.history import History, counts_groups
from inference.posterior import Posterior, RowEstimate
from planner.workload import Wanted
from proxy.synthetic_tables.make import columns_of
from proxy.synthetic_tables.report.compare import Integers, KnownTable, Total
from proxy.tables.private_table import ServedTable
from synthesis.known import KnownEstimates

N_CELLS_MAX = 10_000  # of a table in a report: each cell has a law of its own to compute
ANY_WIDTH = 1e15  # any width is enough: slow ways to narrow an estimate are skipped

Grouping: TypeAlias = tuple[Scope, tuple[Integers, ...]]


def known_tables(
    table: ServedTable, axes: Sequence[Axis], confidence: float
) -> tuple[list[KnownTable], Total | None]:
    """Intervals for the known counts of some columns and their pairs, and for the number of rows.

    Parameters
    ----------
    table : ServedTable
    axes : sequence of Axis
    confidence : float
    """
    target = AccuracyTarget(half_width=ANY_WIDTH, confidence=confidence)
    snapshot = table.snapshot()
    [[everything]] = snapshot.estimates([Wanted(QueryBlock(counting()), target)])
    beside = [one for told in snapshot.charges.released for one in told.counts]
    counted = KnownEstimates.from_history(snapshot.history, columns_of(axes), beside)
    groupings = _groupings(counted, snapshot.history.partition_scopes, axes)
    known: dict[Scope, KnownTable] = {}
    for scope, groups in groupings:
        block = QueryBlock(counting(), _product(scope, groups))
        [rows] = snapshot.estimates([Wanted(block, target)])
        found = _known_table(scope, groups, rows, confidence)
        best = known.get(scope)
        if best is None or _knows_more(found, best):
            known[scope] = found
    for found in _gaussian_noisy_counts(beside, axes, confidence):
        best = known.get(found.scope)
        if best is None or _knows_more(found, best):
            known[found.scope] = found
    return list(known.values()), _total(everything, beside, counted, confidence)


def _total(
    everything: RowEstimate,
    beside: Sequence[GaussianNoisyCounts],
    counted: KnownEstimates,
    confidence: float,
) -> Total | None:
    """The estimated number of rows, with the interval of a count of them."""
    if isinstance(everything, Posterior):
        about = everything.value if counted.n_rows is None else counted.n_rows
        return Total(about, *everything.interval(confidence))
    of_all = [one for one in beside if counts_groups(one.block) and one.block.partition is None]
    if not of_all:
        return None
    best = min(of_all, key=lambda one: one.deviation)
    value, reach = float(best.values[0]), _reach(confidence) * best.deviation
    return Total(value if counted.n_rows is None else counted.n_rows, value - reach, value + reach)


def _gaussian_noisy_counts(
    beside: Sequence[GaussianNoisyCounts], axes: Sequence[Axis], confidence: float
) -> Iterator[KnownTable]:
    """Counts with Gaussian noise; their sums have Gaussian noise, too."""
    found = KnownEstimates.from_history(History(), columns_of(axes), beside)
    levels = {axis.name: np.arange(axis.size) for axis in axes}
    tables = [(one, tuple(levels[name] for name in one.scope)) for one in found.tables]
    tables += [(one.table, tuple(each.labels for each in one.groups)) for one in found.grouped]
    for one, groups in tables:
        if one.values.size <= N_CELLS_MAX:
            reach = _reach(confidence) * np.sqrt(one.variance)
            yield KnownTable(one.scope, groups, one.values, one.values - reach, one.values + reach)


def _reach(confidence: float) -> float:
    """The half-width of a Gaussian interval, in standard deviations."""
    return float(ndtri((1 + confidence) / 2))


def _knows_more(one: KnownTable, other: KnownTable) -> bool:
    """Whether `one` leaves fewer counts unknown, or is finer if both leave none unknown."""
    return (one.is_known.all(), one.is_known.sum()) > (other.is_known.all(), other.is_known.sum())


def _groupings(
    counted: KnownEstimates, scopes: Iterable[Scope], axes: Sequence[Axis]
) -> list[Grouping]:
    """Groupings of levels to try: single levels where these may be known, and measured groups."""
    levels = {axis.name: np.arange(axis.size) for axis in axes}
    within = [scope for scope in scopes if levels.keys() >= set(scope)]
    pairs = {pair for scope in within for pair in combinations(scope, 2)}
    found: list[Grouping] = [
        (scope, tuple(levels[name] for name in scope))
        for scope in [*((name,) for name in levels), *sorted(pairs)]
    ]
    found += [
        (one.table.scope, tuple(buckets.labels for buckets in one.groups))
        for one in counted.grouped
    ]
    return [one for one in found if np.prod(_shape(one[1])) <= N_CELLS_MAX]


def _shape(groups: tuple[Integers, ...]) -> tuple[int, ...]:
    return tuple(int(one.max()) + 1 for one in groups)


def _product(scope: Scope, groups: tuple[Integers, ...]) -> Partition:
    """All combinations of the groups of each axis, in the order of an array's cells."""
    cells = np.ravel_multi_index(np.ix_(*groups), _shape(groups))
    return Partition(scope, np.asarray(cells, dtype=np.int64))


def _known_table(
    scope: Scope, groups: tuple[Integers, ...], rows: RowEstimates, confidence: float
) -> KnownTable:
    values = np.zeros(len(rows))
    ends = np.tile(np.array([-np.inf, np.inf]), (len(rows), 1))
    for place, row in enumerate(rows):
        if isinstance(row, Posterior):
            values[place], ends[place] = row.value, row.interval(confidence)
    low, high = (ends[:, side].reshape(_shape(groups)) for side in (0, 1))
    return KnownTable(scope, groups, values.reshape(_shape(groups)), low, high)
