"""The model that rows are drawn from: consistent tables over buckets, and the split of buckets.

The whole model is post-processing of noisy tables: drawing from it again costs nothing, and any
number of rows may be drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cube.block import N_GROUPS_MAX
from cube.query import N_FACTOR_CELLS_MAX, Scope
from synthesis.agreement import agreed_buckets
from synthesis.buckets import Buckets, GroupedEstimate, merged, visible_buckets
from synthesis.fitting import fitted_margin, fitted_pairs, projected
from synthesis.tables import (
    Column,
    Floats,
    TableEstimate,
    all_pairs,
    combined,
    estimated_total,
    expected_l1,
)


@dataclass(frozen=True, eq=False)
class Sketch:
    """What is known before pairs are bought: the buckets, and the references for pairs' scores.

    Parameters
    ----------
    columns : tuple of Column
    one_ways : mapping of str to TableEstimate
        The estimate of each column over levels; without the columns that have no estimate.
    buckets : mapping of str to Buckets
        Of every column; a column without an estimate is one bucket.
    known_pairs : tuple of TableEstimate
        Earlier estimates of pairs, over buckets. Their margins are included in `one_ways`.
    grouped : tuple of TableEstimate
        Earlier estimates over groups of levels, now over buckets. Not included in `one_ways`.
    """

    columns: tuple[Column, ...]
    one_ways: Mapping[str, TableEstimate]
    buckets: Mapping[str, Buckets]
    known_pairs: tuple[TableEstimate, ...]
    grouped: tuple[TableEstimate, ...] = ()

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        tables: Sequence[TableEstimate],
        grouped: Sequence[GroupedEstimate] = (),
    ) -> "Sketch":
        """Sketch a table from independent estimates of one or two columns each.

        Parameters
        ----------
        columns : sequence of Column
        tables : sequence of TableEstimate
            Over levels.
        grouped : sequence of GroupedEstimate
            Over groups of levels; those too coarse compared with the other estimates are not used.
        """
        by_name = {column.name: column for column in columns}
        if len(by_name) != len(columns):
            raise ValueError("two columns have the same name")
        estimates: dict[str, list[TableEstimate]] = {}
        for table in tables:
            if not by_name.keys() >= set(table.scope):
                raise ValueError(f"no column for a table of {table.scope}")
            if table.values.shape != tuple(by_name[name].size for name in table.scope):
                raise ValueError(f"{table.values.shape} cells for the levels of {table.scope}")
            for name in table.scope:
                estimates.setdefault(name, []).append(table.margin(name))
        one_ways = {name: combined(estimates[name]) for name in by_name if name in estimates}
        visible = {name: visible_buckets(by_name[name], one) for name, one in one_ways.items()}
        found, kept = agreed_buckets(visible, grouped)
        buckets = {
            name: found.get(name, Buckets(np.zeros(column.size, dtype=np.int64)))
            for name, column in by_name.items()
        }
        pairs = tuple(merged(table, buckets) for table in tables if len(table.scope) > 1)
        return cls(
            tuple(columns), one_ways, buckets, pairs, tuple(one.over(buckets) for one in kept)
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns without an estimate: they would be drawn uniformly."""
        known = {*self.one_ways, *(name for table in self.grouped for name in table.scope)}
        return tuple(c.name for c in self.columns if c.name not in known)

    @property
    def total(self) -> float:
        """The approximate number of rows."""
        return estimated_total([*self.one_ways.values(), *self.grouped])

    @property
    def pairs(self) -> list[Scope]:
        """The pairs of columns that can depend on each other, and whose table can be measured.

        Both have two buckets or more, and their levels and buckets are few enough for one block.
        """
        several = (name for name, buckets in self.buckets.items() if buckets.n_buckets > 1)
        return [pair for pair in all_pairs(several) if self._is_countable(pair)]

    def _is_countable(self, pair: Scope) -> bool:
        first, second = (self.buckets[name].labels.size for name in pair)
        return first * second <= N_FACTOR_CELLS_MAX and self.n_cells(pair) <= N_GROUPS_MAX

    def n_cells(self, pair: Scope) -> int:
        """The number of cells of a pair's table over buckets."""
        return self.buckets[pair[0]].n_buckets * self.buckets[pair[1]].n_buckets

    def known_error(self, pair: Scope) -> float:
        """The approximate expected L1 noise of a pair's estimates; infinite if there are none."""
        known = [table for table in self.pairs_known if table.scope == pair]
        return expected_l1(combined(known)) if known else float("inf")

    @property
    def pairs_known(self) -> list[TableEstimate]:
        """Every estimate of a pair, over buckets."""
        return [table for table in (*self.known_pairs, *self.grouped) if len(table.scope) > 1]

    def margin(self, name: str, total: float) -> Floats:
        """A column's counts over buckets, from all of its estimates."""
        estimates = [table.margin(name) for table in self.grouped if name in table.scope]
        if name in self.one_ways:
            estimates.append(merged(self.one_ways[name], self.buckets))
        return fitted_margin(estimates, total) if estimates else np.array([total])

    def reference(self, pair: Scope) -> Floats:
        """The pair's table over buckets if its columns were independent: the reference of scores.

        A score is ``sum |exact table - reference|`` plus noise. With the reference fixed, adding or
        removing one row changes it by at most 1.
        """
        total = self.total
        first, second = (self.margin(name, total) for name in pair)
        return np.outer(first, second) / total if total > 0 else np.outer(first, second)


@dataclass(frozen=True, eq=False)
class PairwiseModel:
    """The tables that drawn rows agree with.

    Parameters
    ----------
    columns : tuple of Column
    buckets : mapping of str to Buckets
    total : float
        The estimated number of rows.
    shares : mapping of str to (n_buckets,) ndarray of float64
        The shares of each column's buckets; sum 1.
    pairs : mapping of sorted scope to (n_buckets, n_buckets) ndarray of float64
        Counts of the pairs with an estimate.
    parts : mapping of str to (n_levels,) ndarray of float64
        The share of each level in its bucket; sum 1 in every bucket.
    """

    columns: tuple[Column, ...]
    buckets: Mapping[str, Buckets]
    total: float
    shares: Mapping[str, Floats]
    pairs: Mapping[Scope, Floats]
    parts: Mapping[str, Floats]

    def __post_init__(self) -> None:
        if not 0 <= self.total < float("inf"):
            raise ValueError(f"a table cannot have {self.total} rows")
        for column in self.columns:
            name, n_buckets = column.name, self.buckets[column.name].n_buckets
            if (
                self.buckets[name].labels.size != column.size
                or self.parts[name].size != column.size
            ):
                raise ValueError(f"{name} has {column.size} levels")
            sums = self.buckets[name].summed(self.parts[name], 0)
            if self.shares[name].size != n_buckets or not np.allclose(
                [self.shares[name].sum(), *sums], 1
            ):
                raise ValueError(f"shares of {name} do not sum to 1")
        for pair, counts in self.pairs.items():
            if counts.shape != tuple(self.buckets[name].n_buckets for name in pair):
                raise ValueError(f"{counts.shape} cells for the buckets of {pair}")

    def given(self, partner: str, column: str) -> Floats:
        """The pair's counts, with the partner's buckets as the first dimension."""
        if partner < column:
            return self.pairs[partner, column]
        return self.pairs[column, partner].T

    def dependence(self, pair: Scope) -> float:
        """The L1 distance of a pair's table from independence, as a share of the rows; 0 to 2."""
        if pair not in self.pairs or not self.total > 0:
            return 0.0
        independent = np.outer(self.shares[pair[0]], self.shares[pair[1]])
        return float(np.abs(self.pairs[pair] / self.total - independent).sum())


def fit_model(sketch: Sketch) -> PairwiseModel:
    """Fit consistent tables to all estimates of a sketch."""
    one_ways = [merged(one, sketch.buckets) for one in sketch.one_ways.values()]
    total = estimated_total([*one_ways, *sketch.grouped])
    margins = {name: sketch.margin(name, total) for name in sketch.buckets}
    parts = {c.name: _even(sketch.buckets[c.name]) for c in sketch.columns}
    for name, one_way in sketch.one_ways.items():
        parts[name] = _parts(one_way, sketch.buckets[name], margins[name])
    return PairwiseModel(
        columns=sketch.columns,
        buckets=sketch.buckets,
        total=total,
        shares={name: _shares(counts) for name, counts in margins.items()},
        pairs=fitted_pairs(sketch.pairs_known, margins),
        parts=parts,
    )


def _even(buckets: Buckets) -> Floats:
    """The share of each level in its bucket, if all levels of a bucket have equal shares."""
    sizes = np.bincount(buckets.labels)
    return np.asarray(1 / sizes[buckets.labels], dtype=np.float64)


def _parts(levels: TableEstimate, buckets: Buckets, counts: Floats) -> Floats:
    """Shares of levels in their buckets: the nearest to the estimates that add up to each count."""
    parts = np.ones(levels.values.size)
    for members, count in zip(buckets.members, counts, strict=True):
        if members.size > 1:
            values, variance = levels.values[members], levels.variance[members]
            nearest = projected(values[np.newaxis], np.array([count]), variance[np.newaxis])[0]
            parts[members] = _shares(nearest)
    return parts


def _shares(counts: Floats) -> Floats:
    """Counts as shares; equal shares if all counts are 0."""
    total = counts.sum()
    return counts / total if total > 0 else np.full(counts.size, 1 / counts.size)
