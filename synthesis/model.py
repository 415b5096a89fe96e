"""The model that rows are drawn from, as JSON values and back, and how well rows agree with it.

The whole model is post-processing of noisy tables: drawing from it again costs nothing, and any
number of rows may be drawn.

How well rows agree with the tables that they were drawn from.

Tables of pairs may contradict each other, because each has its own noise; then no rows agree with
all of them. What is missed is compared with the noise of the table itself.

A pairwise model as plain JSON values, and back, so that rows can be drawn from it again.

Released numbers and public names only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cube.query import Scope
from synthesis.buckets import Buckets, merged
from synthesis.fitting import fitted_pair, projected
from synthesis.sketch import Sketch
from synthesis.tables import Column, Floats, Integers, TableEstimate, combined, expected_l1

LEAST_SPREAD = 1e-9  # of a column: with less it has one value, and depends on nothing


@dataclass(frozen=True, eq=False)
class PairTable:
    """The counts of a pair of columns.

    Parameters
    ----------
    groups : tuple of Buckets
        The groups of each column's buckets that are counted.
    counts : (n_groups, n_groups) ndarray of float64
    noise : float
        The expected L1 noise of the estimate that they were fitted to; 0 if it is not known.
    """

    groups: tuple[Buckets, Buckets]
    counts: Floats
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.counts.shape != tuple(one.n_buckets for one in self.groups):
            raise ValueError(
                f"the shape {self.counts.shape} of the counts does not match the groups of the pair"
            )

    @property
    def transposed(self) -> "PairTable":
        """The same with the second column first."""
        return PairTable((self.groups[1], self.groups[0]), self.counts.T, self.noise)


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
    pairs : mapping of sorted scope to PairTable
        The pairs with an estimate.
    parts : mapping of str to (n_levels,) ndarray of float64
        The share of each level in its bucket; sum 1 in every bucket.
    """

    columns: tuple[Column, ...]
    buckets: Mapping[str, Buckets]
    total: float
    shares: Mapping[str, Floats]
    pairs: Mapping[Scope, PairTable]
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
                raise ValueError(
                    f"the column {name} has {column.size} levels, but its buckets or its "
                    "parts have another number"
                )
            sums = self.buckets[name].summed(self.parts[name], 0)
            if self.shares[name].size != n_buckets or not np.allclose(
                [self.shares[name].sum(), *sums], 1
            ):
                raise ValueError(f"the shares of {name} must be one for each bucket and sum to 1")
        for pair, table in self.pairs.items():
            for name, groups in zip(pair, table.groups, strict=True):
                if groups.labels.size != self.buckets[name].n_buckets:
                    raise ValueError(
                        f"the groups of the pair {pair} have {groups.labels.size} buckets "
                        f"of {name}, not the column's number"
                    )

    def given(self, partner: str, column: str) -> PairTable:
        """The pair's table, with the partner as the first dimension."""
        if partner < column:
            return self.pairs[partner, column]
        return self.pairs[column, partner].transposed

    def dependence(self, pair: Scope) -> float:
        """The L1 distance of a pair's table from independence, as a share of the rows; 0 to 2."""
        if pair not in self.pairs or not self.total > 0:
            return 0.0
        first, second = self._grouped_shares(pair)
        independent = np.outer(first, second)
        return float(np.abs(self.pairs[pair].counts / self.total - independent).sum())

    def relative_dependence(self, pair: Scope) -> float:
        """The same, as a share of the most that two columns with these counts can have."""
        first, second = self._grouped_shares(pair)
        most = 2 * min(1 - float((shares**2).sum()) for shares in (first, second))
        return self.dependence(pair) / most if most > LEAST_SPREAD else 0.0

    def _grouped_shares(self, pair: Scope) -> list[Floats]:
        named = zip(pair, self.pairs[pair].groups, strict=True)
        return [groups.summed(self.shares[name], 0) for name, groups in named]


def fit_model(sketch: Sketch) -> PairwiseModel:
    """Fit consistent tables to all estimates of a sketch."""
    parts = {c.name: _even(sketch.buckets[c.name]) for c in sketch.columns}
    for name, one_way in sketch.one_ways.items():
        parts[name] = _parts(one_way, sketch.buckets[name], sketch.margins[name])
    return PairwiseModel(
        columns=sketch.columns,
        buckets=sketch.buckets,
        total=sketch.total,
        shares={name: _shares(counts) for name, counts in sketch.margins.items()},
        pairs=_fitted_pairs(sketch),
        parts=parts,
    )


@dataclass(frozen=True, eq=False)
class _Reading:
    """An estimate of a pair over some groups of its columns' buckets."""

    groups: tuple[Buckets, Buckets]
    table: TableEstimate

    def fitted(self, sketch: Sketch) -> PairTable:
        """The table with the columns' margins, not negative."""
        counts = fitted_pair(self.table, *self._margins(sketch))
        return PairTable(self.groups, counts, expected_l1(self.table))

    def gain(self, sketch: Sketch) -> float:
        """How much dependence it shows, less twice its noise: once for what it seems to show."""
        rows, columns = self._margins(sketch)
        independent = np.outer(rows, columns) / max(sketch.total, 1.0)
        shown = float(np.abs(self.table.values - independent).sum())
        return shown - 2 * expected_l1(self.table)

    def _margins(self, sketch: Sketch) -> list[Floats]:
        named = zip(self.table.scope, self.groups, strict=True)
        return [groups.summed(sketch.margins[name], 0) for name, groups in named]


def _fitted_pairs(sketch: Sketch) -> dict[Scope, PairTable]:
    """For each pair with an estimate, the one that shows most; equal partitions are combined.

    A table over all buckets may be more noise than counts, and is also read over fewer groups.
    """
    readings: dict[Scope, list[_Reading]] = {}
    for scope, groups, table in sketch.known_pairs:
        readings.setdefault(scope, []).append(_Reading((groups[0], groups[1]), table))
        for place in range(max(len(sketch.rungs[name]) for name in scope)):
            rungs = [sketch.rungs[n][min(place, len(sketch.rungs[n]) - 1)] for n in scope]
            if all(one.is_plain for one in groups) and not all(one.is_plain for one in rungs):
                coarser = merged(table, dict(zip(scope, rungs, strict=True)))
                readings[scope].append(_Reading((rungs[0], rungs[1]), coarser))
    return {
        scope: max(_of_one_partition(found), key=lambda one: one.gain(sketch)).fitted(sketch)
        for scope, found in sorted(readings.items())
    }


def _of_one_partition(readings: list[_Reading]) -> list[_Reading]:
    """Readings over equal groups as one."""
    of_labels: dict[tuple[bytes, ...], list[_Reading]] = {}
    for one in readings:
        key = tuple(groups.labels.tobytes() for groups in one.groups)
        of_labels.setdefault(key, []).append(one)
    return [
        _Reading(found[0].groups, combined([one.table for one in found]))
        for found in of_labels.values()
    ]


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


def missed(model: PairwiseModel, drawn: Mapping[str, Integers]) -> dict[Scope, float]:
    """The L1 distance of each pair's counts in rows from its table, as a share of the rows.

    Parameters
    ----------
    model : PairwiseModel
    drawn : mapping of str to (n_rows,) ndarray of int64
        The bucket of each row in each column.
    """
    found = {}
    for scope, table in model.pairs.items():
        first, second = (
            groups.labels[drawn[name]] for name, groups in zip(scope, table.groups, strict=True)
        )
        n_first, n_second = table.counts.shape
        counts = np.bincount(first * n_second + second, minlength=n_first * n_second)
        total = max(float(table.counts.sum()), 1.0)
        shares = counts.reshape(table.counts.shape) / max(first.size, 1)
        found[scope] = float(np.abs(shares - table.counts / total).sum())
    return found


def excess(model: PairwiseModel, drawn: Mapping[str, Integers]) -> float:
    """By how much the worst table is missed beyond its own noise, as a share of the rows."""
    beyond = (
        distance - model.pairs[scope].noise / max(model.total, 1.0)
        for scope, distance in missed(model, drawn).items()
    )
    return max(beyond, default=0.0)


KIND: Final = "pairwise"


def model_json(model: PairwiseModel) -> dict[str, Any]:
    """A model as JSON values."""
    return {
        "kind": KIND,
        "total": model.total,
        "columns": [
            {
                "name": column.name,
                "size": column.size,
                "n_ordered": column.n_ordered,
                "buckets": model.buckets[column.name].labels.tolist(),
                "shares": model.shares[column.name].tolist(),
                "parts": model.parts[column.name].tolist(),
            }
            for column in model.columns
        ],
        "pairs": [
            {
                "columns": list(pair),
                "groups": [groups.labels.tolist() for groups in table.groups],
                "counts": table.counts.tolist(),
                "noise": table.noise,
            }
            for pair, table in model.pairs.items()
        ],
    }


def model_of(encoded: dict[str, Any]) -> PairwiseModel:
    """The model that `model_json` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such a model.
    """
    if encoded["kind"] != KIND:
        raise ValueError(f"the kind of model {encoded['kind']!r} is unknown here")
    columns = encoded["columns"]
    buckets = {one["name"]: Buckets(np.array(one["buckets"], dtype=np.int64)) for one in columns}
    return PairwiseModel(
        columns=tuple(Column(one["name"], one["size"], one["n_ordered"]) for one in columns),
        buckets=buckets,
        total=encoded["total"],
        shares={one["name"]: np.array(one["shares"], dtype=np.float64) for one in columns},
        pairs={
            (one["columns"][0], one["columns"][1]): _pair_of(one, buckets)
            for one in encoded["pairs"]
        },
        parts={one["name"]: np.array(one["parts"], dtype=np.float64) for one in columns},
    )


def _pair_of(encoded: dict[str, Any], buckets: dict[str, Buckets]) -> PairTable:
    """A pair's table; models of earlier versions count every bucket, and say nothing of noise."""
    counts = np.array(encoded["counts"], dtype=np.float64)
    labels = encoded.get("groups") or [range(buckets[n].n_buckets) for n in encoded["columns"]]
    first, second = (Buckets(np.array(one, dtype=np.int64)) for one in labels)
    return PairTable((first, second), counts, float(encoded.get("noise", 0.0)))
