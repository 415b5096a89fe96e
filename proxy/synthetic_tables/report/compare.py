"""A synthetic table compared with the history's estimates of the private table, count by count.

Both sides are public: the rows are post-processing, and the history holds only noisy values. A
count that the history does not determine is not compared.

The history's estimates of a private table's counts, of single columns and of pairs.

The posteriors are those that any query gets; nothing is bought, and nothing private is read. Counts
use the finest groups of levels that are known: a pair that was bought over merged levels has no
finer counts. Counts with Gaussian noise are not used by queries; they are added here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cube.axis import Axis
from cube.query import Partition, QueryBlock, Scope, check_scope, counting
from cube.runtime import cached_property
from cube.statistic import GaussianNoisyCounts
from cube.target import AccuracyTarget
from inference import History, Posterior, RowEstimate, RowEstimates, counts_groups
from planner.workload import Wanted
from proxy.synthetic_tables.make import columns_of
from proxy.tables import ServedTable
from synthesis import KnownEstimates

ROWS_AGREE = 0.01  # tables whose row numbers differ by less are compared without scaling

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Total:
    """The private table's number of rows.

    Parameters
    ----------
    about : float
        The history's best estimate, as synthetic tables use it.
    low, high : float
        The interval of the answer to a count of all rows.
    """

    about: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class KnownTable:
    """Intervals for the counts of groups of levels, of one or two columns.

    Parameters
    ----------
    scope : tuple of str
        The columns, sorted by name.
    groups : tuple of (n_levels,) ndarray of int64
        The group of each level of each column: ``0 .. n_groups - 1``, each of them used.
    values, low, high : (n_groups of scope[0], ...) ndarray of float64
        The estimate and its interval; the interval is infinite where the count is not determined.
    """

    scope: Scope
    groups: tuple[Integers, ...]
    values: Floats
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        check_scope(self.scope)
        if len(self.scope) not in {1, 2} or len(self.groups) != len(self.scope):
            raise ValueError(f"{len(self.groups)} groupings for the columns {self.scope}")
        shape = tuple(int(groups.max()) + 1 for groups in self.groups)
        for array in (self.values, self.low, self.high):
            if array.shape != shape:
                raise ValueError(f"{array.shape} numbers for {shape} groups")
        if not np.isfinite(self.values).all() or not (self.low <= self.high).all():
            raise ValueError("an estimate must be finite, and its interval not empty")

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which counts the history determines."""
        return np.isfinite(self.low) & np.isfinite(self.high)


@dataclass(frozen=True, eq=False)
class ComparedTable:
    """Synthetic counts of the groups of a known table.

    Parameters
    ----------
    synthetic : (n_groups of scope[0], ...) ndarray of float64
        Scaled to the private table's number of rows, if the synthetic table has another.
    """

    known: KnownTable
    synthetic: Floats

    @property
    def n_known(self) -> int:
        """How many counts are compared."""
        return int(self.known.is_known.sum())

    @cached_property
    def is_inside(self) -> NDArray[np.bool_]:
        """Which synthetic counts lie in the interval of the history.

        Where the estimate is below 0 by more than its interval reaches, 0 is as near as it can be.
        """
        high = np.maximum(self.known.high, 0.0)
        is_in = (self.known.low <= self.synthetic) & (self.synthetic <= high)
        return self.known.is_known & is_in

    @property
    def n_inside(self) -> int:
        """How many of them lie in the interval."""
        return int(self.is_inside.sum())

    @property
    def weighed_inside(self) -> float:
        """The share of the rows that are in the counts inside; 1 if none is compared.

        Each count has the weight that the history's estimate gives it, so that near-empty ones,
        which are inside whatever happens, do not hide large ones that are not.
        """
        weights = np.where(self.known.is_known, np.maximum(self.known.values, 0.0), 0.0)
        everything = float(weights.sum())
        if not everything > 0:
            return self.n_inside / self.n_known if self.n_known else 1.0
        return min(1.0, float(weights[self.is_inside].sum()) / everything)

    @cached_property
    def half_widths(self) -> Floats:
        """The half-width of each interval before clipping at a public bound."""
        reach = np.maximum(self.known.high - self.known.values, self.known.values - self.known.low)
        return np.where(self.known.is_known, reach, np.inf)

    @cached_property
    def differences(self) -> Floats:
        """Synthetic count minus estimate; 0 where nothing is known."""
        return np.where(self.known.is_known, self.synthetic - self.known.values, 0.0)

    @cached_property
    def relative(self) -> Floats:
        """Differences in half-widths: above 1 or below -1 is outside the interval."""
        # A count that is known exactly has an interval without width.
        width = np.maximum(self.half_widths, np.finfo(float).tiny)
        return np.clip(self.differences / width, -1e6, 1e6)

    def largest(self, n_max: int) -> list[tuple[int, ...]]:
        """The positions of the largest differences in half-widths, the largest first."""
        order = np.argsort(-np.abs(self.relative), axis=None, kind="stable")
        known = order[self.known.is_known.ravel()[order]][:n_max]
        places = np.unravel_index(known, self.synthetic.shape)
        return [tuple(int(one) for one in place) for place in zip(*places, strict=True)]


@dataclass(frozen=True, eq=False)
class TableComparison:
    """Everything that can be compared.

    Parameters
    ----------
    n_rows : int
        The number of rows of the synthetic table.
    total : Total, optional
        The history's estimate of the private table's number of rows; None if it has none.
    scale : float
        The factor that synthetic counts were multiplied by.
    confidence : float
        The confidence of every interval.
    one_ways : mapping of str to ComparedTable
        In the order of the columns; columns without a known count are left out.
    """

    n_rows: int
    total: Total | None
    scale: float
    confidence: float
    one_ways: Mapping[str, ComparedTable]
    pairs: Mapping[Scope, ComparedTable]


def compare(
    levels: Mapping[str, Integers],
    known: Sequence[KnownTable],
    *,
    total: Total | None,
    confidence: float,
) -> TableComparison:
    """Count the synthetic rows in the groups of each known table.

    Parameters
    ----------
    levels : mapping of str to (n_rows,) ndarray of int64
        The position of each row's level in each column, in the columns' order.
    known : sequence of KnownTable
        At most one per scope; tables on other columns are ignored.
    total : Total, optional
        The history's estimate of the private table's number of rows. A synthetic table with another
        number of rows is scaled to it.
    confidence : float
        The confidence of every interval.
    """
    n_rows = len(next(iter(levels.values())))
    scale = 1.0
    if total is not None and abs(n_rows - total.about) > ROWS_AGREE * total.about > 0:
        scale = total.about / n_rows
    compared = {
        table.scope: ComparedTable(table, scale * _counted(levels, table))
        for table in known
        if levels.keys() >= set(table.scope) and table.is_known.any()
    }
    return TableComparison(
        n_rows=n_rows,
        total=total,
        scale=scale,
        confidence=confidence,
        one_ways={name: compared[name,] for name in levels if (name,) in compared},
        pairs={scope: table for scope, table in sorted(compared.items()) if len(scope) > 1},
    )


def _counted(levels: Mapping[str, Integers], table: KnownTable) -> Floats:
    places = tuple(
        groups[levels[name]] for name, groups in zip(table.scope, table.groups, strict=True)
    )
    cells = np.ravel_multi_index(places, table.values.shape)
    counts = np.bincount(cells, minlength=table.values.size)
    return counts.reshape(table.values.shape).astype(np.float64)


N_CELLS_MAX = 10_000  # of a table in a report: each cell has a law of its own to compute
ANY_WIDTH = 1e15  # any width is enough: slow ways to narrow an estimate are skipped

Grouping: TypeAlias = tuple[Scope, tuple[Integers, ...]]


def known_tables(
    table: ServedTable, axes: Sequence[Axis], confidence: float
) -> tuple[list[KnownTable], Total | None]:
    """Intervals for the known counts of some columns, of their pairs, and of all rows."""
    target = AccuracyTarget(half_width=ANY_WIDTH, confidence=confidence)
    snapshot = table.snapshot()
    [[everything]] = snapshot.estimates([Wanted(QueryBlock(counting()), target)])
    beside = [one for told in snapshot.charges.released for one in told.counts]
    counted = KnownEstimates.from_history(snapshot.pooled, columns_of(axes), beside)
    groupings = _groupings(counted, snapshot.pooled.partition_scopes, axes)
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
