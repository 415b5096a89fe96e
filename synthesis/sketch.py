"""What is known before pairs are bought: each column's buckets, over nested groups.

The best estimate of one column's counts from estimates over nested groups of them.

Levels of a column are counted once by themselves, and again, in groups, by every table of it and
another column. Groups of groups form a tree, on which two passes give the least-squares estimate.

The groups of a column's buckets over which tables of pairs are counted.

Every cell of a table has the same noise, so a table of two columns with hundreds of buckets is all
noise. Its columns are counted in fewer groups: neighbours together where levels are in order, each
group about as large as any other; the most frequent alone, and the rest together, where they are
not. Which levels go together follows from noisy counts, so it costs nothing.

Post-processing of noisy tables. The model that rows are drawn from is fitted to a sketch in
`synthesis.model`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from cube.query import N_FACTOR_CELLS_MAX, N_GROUPS_MAX, Scope
from cube.runtime import cached_property
from synthesis.buckets import Buckets, GroupedEstimate, merged, refined, visible_buckets
from synthesis.fitting import fitted_margin
from synthesis.tables import (
    Column,
    Floats,
    Integers,
    TableEstimate,
    all_pairs,
    combined,
    estimated_total,
    expected_l1,
)


def nested_estimate(
    finest: TableEstimate, coarser: Sequence[tuple[Buckets, TableEstimate]]
) -> TableEstimate:
    """Combine independent estimates of a column over parts, and over groups of these.

    Parameters
    ----------
    finest : TableEstimate
        The estimates of one column, over its parts.
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
    estimate is combined with the sum of the estimates below it; downwards, the difference between a
    group's estimate and that sum is shared out in proportion to the variances. Estimates over a
    partition that is not one of the groups of the finer ones are not used.

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


FINE: Final = 64
COARSE: Final = 16
UNORDERED_SHARE: Final = 0.25  # of a column's groups, for its levels without order, if it has both


def rungs(column: Column, buckets: Buckets, counts: Floats) -> tuple[Buckets, ...]:
    """The partitions of a column's buckets to count pairs over: the finest first, each of the last.

    Parameters
    ----------
    column : Column
    buckets : Buckets
        The buckets of the column's levels.
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


VAGUE = 1e12  # the variance of a level that was never counted: whatever was counted is believed
KNOWN_WELL = 0.5  # a known table with this share of a candidate's cells is added to instead


@dataclass(frozen=True, eq=False)
class Candidate:
    """A table of a pair that can be measured.

    Parameters
    ----------
    scope : tuple of str
        The columns, sorted by name.
    groups : tuple of Buckets
        The groups of each column's levels that are counted.
    """

    scope: Scope
    groups: tuple[Buckets, ...]

    @property
    def n_cells(self) -> int:
        """The number of cells of the table."""
        return prod(one.n_buckets for one in self.groups)


@dataclass(frozen=True, eq=False)
class Sketch:
    """What is known of the columns and pairs of a table.

    Parameters
    ----------
    columns : tuple of Column
    one_ways : mapping of str to TableEstimate
        The estimate of each column over levels; without the columns that have no such estimate.
    buckets : mapping of str to Buckets
        Of every column: the parts of it that are told apart. A column without an estimate is one
        bucket.
    tables : tuple of TableEstimate
        Earlier estimates of pairs over levels. Their margins are included in `one_ways`.
    grouped : tuple of GroupedEstimate
        Earlier estimates over groups of levels, which are groups of buckets. Their margins are not
        included in `one_ways`.
    n_cells_max : int
        The most combinations of levels that two columns may have to be counted together.
    """

    columns: tuple[Column, ...]
    one_ways: Mapping[str, TableEstimate]
    buckets: Mapping[str, Buckets]
    tables: tuple[TableEstimate, ...]
    grouped: tuple[GroupedEstimate, ...] = ()
    n_cells_max: int = N_FACTOR_CELLS_MAX

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        tables: Sequence[TableEstimate],
        grouped: Sequence[GroupedEstimate] = (),
        *,
        n_cells_max: int = N_FACTOR_CELLS_MAX,
    ) -> "Sketch":
        """Sketch a table from independent estimates of one or two columns each.

        Parameters
        ----------
        columns : sequence of Column
        tables : sequence of TableEstimate
            The tables whose cells are levels.
        grouped : sequence of GroupedEstimate
            The tables whose cells are groups of levels.
        n_cells_max : int
            See the class.
        """
        by_name = {column.name: column for column in columns}
        if len(by_name) != len(columns):
            raise ValueError("two columns have the same name")
        estimates: dict[str, list[TableEstimate]] = {}
        for table in tables:
            if not by_name.keys() >= set(table.scope):
                raise ValueError(f"a table of {table.scope} names a column that does not exist")
            if table.values.shape != tuple(by_name[name].size for name in table.scope):
                raise ValueError(
                    f"the table's shape {table.values.shape} does not match the levels of "
                    f"{table.scope}"
                )
            for name in table.scope:
                estimates.setdefault(name, []).append(table.margin(name))
        one_ways = {name: combined(estimates[name]) for name in by_name if name in estimates}
        return cls(
            tuple(columns),
            one_ways,
            _buckets(columns, one_ways, grouped),
            tuple(table for table in tables if len(table.scope) > 1),
            tuple(grouped),
            n_cells_max,
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns without an estimate: they would be drawn uniformly."""
        known = {*self.one_ways, *(name for one in self.grouped for name in one.scope)}
        return tuple(c.name for c in self.columns if c.name not in known)

    @cached_property
    def total(self) -> float:
        """The approximate number of rows."""
        merged_ones = [merged(one, self.buckets) for one in self.one_ways.values()]
        return estimated_total([*merged_ones, *(one.table for one in self.grouped)])

    @cached_property
    def margins(self) -> Mapping[str, Floats]:
        """Each column's counts over buckets, from all of its estimates."""
        return {column.name: self._margin(column) for column in self.columns}

    @cached_property
    def rungs(self) -> Mapping[str, tuple[Buckets, ...]]:
        """The partitions of each column's buckets over which its pairs can be counted."""
        return {
            column.name: rungs(column, self.buckets[column.name], self.margins[column.name])
            for column in self.columns
        }

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The tables that can be measured: of columns that can depend on each other.

        Both have two buckets or more, and their levels and groups are few enough for one block.
        """
        several = (name for name, buckets in self.buckets.items() if buckets.n_buckets > 1)
        return tuple(one for pair in all_pairs(several) for one in self._candidates_of(pair))

    def known_error(self, scope: Scope) -> float:
        """The approximate expected L1 noise of a pair's best estimate; infinite without one."""
        known = (table for of_pair, _, table in self.known_pairs if of_pair == scope)
        return min((expected_l1(table) for table in known), default=float("inf"))

    @cached_property
    def known_pairs(self) -> tuple[tuple[Scope, tuple[Buckets, ...], TableEstimate], ...]:
        """Every estimate of a pair: its columns, the groups of buckets, and the table over them."""
        found = []
        for table in self.tables:
            plain = tuple(Buckets(np.arange(self.buckets[n].n_buckets)) for n in table.scope)
            found.append((table.scope, plain, merged(table, self.buckets)))
        found.extend(
            (one.scope, self._of_buckets(one.scope, one.groups), one.table)
            for one in self.grouped
            if len(one.scope) > 1
        )
        return tuple(found)

    def reference(self, candidate: Candidate) -> Floats:
        """A candidate's table if its columns were independent: the reference of its score.

        A score is ``sum |exact table - reference|`` plus noise. With the reference fixed, adding or
        removing one row changes it by at most 1.
        """
        first, second = (
            groups.summed(self.margins[name], 0)
            for name, groups in zip(
                candidate.scope, self._of_buckets(candidate.scope, candidate.groups), strict=True
            )
        )
        return np.outer(first, second) / self.total if self.total > 0 else np.outer(first, second)

    def _of_buckets(self, scope: Scope, groups: Iterable[Buckets]) -> tuple[Buckets, ...]:
        """Groups of levels as groups of buckets."""
        return tuple(one.within(self.buckets[n]) for n, one in zip(scope, groups, strict=True))

    def _margin(self, column: Column) -> Floats:
        name, buckets = column.name, self.buckets[column.name]
        coarser = [
            (groups.within(buckets), one.table.margin(name))
            for one in self.grouped
            for of_column, groups in zip(one.scope, one.groups, strict=True)
            if of_column == name
        ]
        if name in self.one_ways:
            finest = merged(self.one_ways[name], self.buckets)
        elif coarser:
            sizes = np.bincount(buckets.labels).astype(np.float64)
            finest = TableEstimate((name,), np.zeros(sizes.size), VAGUE * sizes)
        else:
            return np.array([self.total])
        return fitted_margin([nested_estimate(finest, coarser)], self.total)

    def _candidates_of(self, pair: Scope) -> list[Candidate]:
        if prod(self.buckets[name].labels.size for name in pair) > self.n_cells_max:
            return []
        n_rungs = max(len(self.rungs[name]) for name in pair)
        tried = []
        for place in range(n_rungs):
            of_buckets = [self.rungs[name][min(place, len(self.rungs[name]) - 1)] for name in pair]
            of_levels = (
                Buckets(groups.labels[self.buckets[name].labels])
                for name, groups in zip(pair, of_buckets, strict=True)
            )
            tried.append(Candidate(pair, tuple(of_levels)))
        earlier = [Candidate(pair, one.groups) for one in self.grouped if one.scope == pair]
        finest = max(earlier, key=lambda one: one.n_cells, default=None)
        if finest is not None and finest.n_cells >= KNOWN_WELL * tried[-1].n_cells:
            tried = [finest]
        return [one for one in tried if one.n_cells <= N_GROUPS_MAX]


def _buckets(
    columns: Sequence[Column],
    one_ways: Mapping[str, TableEstimate],
    grouped: Sequence[GroupedEstimate],
) -> dict[str, Buckets]:
    """The parts of each column: levels that are visible, or that an earlier table tells apart."""
    buckets = {
        c.name: visible_buckets(c, one_ways[c.name])
        if c.name in one_ways
        else Buckets(np.zeros(c.size, dtype=np.int64))
        for c in columns
    }
    for one in grouped:
        for name, groups in zip(one.scope, one.groups, strict=True):
            buckets[name] = refined(buckets[name], groups)
    return buckets
