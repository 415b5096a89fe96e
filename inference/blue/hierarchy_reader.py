"""Answers from a hierarchy of counted groups: the best combination of all of its levels.

A hierarchy is a family of partitions of the cells of a few axes: along every axis a chain of
nested partitions, and the counts of all products of one partition for each axis. Where noise is
alike on all of them, or depends on the axes separately, the least-squares problem is a product of
one problem for each axis, and along one axis it is a tree. Two passes along each axis give the
coefficient of every noisy count, in a time that grows with the number of groups; see Hay, Rastogi,
Miklau and Suciu 2010, "Boosting the accuracy of differentially private histograms through
consistency". Where noise differs otherwise the combination is not the best, and still unbiased.

Nothing here knows budgets. Values play no part in the choice of coefficients.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.classes import AxisClasses
from cube.grid import Grid, slice_keys
from cube.measurement import Measurement
from cube.pieces import Pieces
from cube.query import Scope
from cube.tiles import Tiles
from inference.blue.atoms import row_signature
from inference.blue.nested_groups import NestedGroups, extends
from inference.blue.partition_reader import Reading
from inference.blue.remainders import Divided, divided_at

N_LEAVES_MAX = 2**16  # groups of the finest partition: read from in a few milliseconds
N_NUMBERS_MAX = 2**20  # leaves times rows that are read together

Floats = NDArray[np.float64]
Classes = tuple[AxisClasses, ...]
RestOf: TypeAlias = Callable[[QueryBlock], tuple[int, Measurement] | None]


class HierarchyReader:
    """One hierarchy of counted groups.

    Parameters
    ----------
    axes : tuple of str
    measured : mapping of int to Measurement
        Partitions with these axes, by their places in the history. See `history.counts_groups`.
    """

    def __init__(self, axes: Scope, measured: Mapping[int, Measurement]) -> None:
        self._measured = frozenset(measured)
        self._read: WeakKeyDictionary[QueryBlock, Reading | None] = WeakKeyDictionary()
        self._divided: WeakKeyDictionary[QueryBlock, Divided | None] = WeakKeyDictionary()
        found = {place: divided(one.block) for place, one in measured.items()}
        divisions = {place: one for place, one in found.items() if one is not None}
        self._tables: list[_Table] = []
        if not divisions:
            return
        family = _family(divisions, measured)
        self._leaves = Grid(axes, tuple(chain[0] for chain in family.chains))
        self._trees = [
            NestedGroups.of(chain, precision)
            for chain, precision in zip(family.chains, _precisions(family, measured), strict=True)
        ]
        self._tables = [
            _Table.of(measured[place], place, family.classes(levels))
            for levels, place in sorted(family.places.items())
        ]

    @property
    def n_tables(self) -> int:
        """The number of partitions that are combined."""
        return len(self._tables)

    def is_of(self, measured: Mapping[int, Measurement]) -> bool:
        """Whether the reader was made from these measurements."""
        return self._measured == measured.keys()

    def divided(self, block: QueryBlock) -> Divided | None:
        """A block as whole groups and a rest to be measured beside them; None if it is not."""
        if not self._tables:
            return None
        if block not in self._divided:
            self._divided[block] = divided_at(self._leaves, block)
        return self._divided[block]

    def read_with_rest(self, block: QueryBlock, rest: RestOf) -> Reading | None:
        """The rows of a block as sums over groups and a rest; None if that was not measured.

        Parameters
        ----------
        block : QueryBlock
        rest : callable
            The place and the measurement of a row, or None if it was not measured.
        """
        parts = self.divided(block)
        if parts is None:
            return None
        if parts.rest is None:
            return self.read(block)
        known = rest(parts.rest)
        reading = None if known is None else self.read(parts.whole)
        if known is None or reading is None:
            return None
        return reading.with_row(*known, parts.multiplier)

    def read(self, block: QueryBlock) -> Reading | None:
        """The rows of a block as sums over groups; None if they are too many to read."""
        if block not in self._read:
            self._read[block] = self._combined(block)
        return self._read[block]

    def _combined(self, block: QueryBlock) -> Reading | None:
        if not self._tables:
            return None
        n_leaves, n_rows = self._leaves.n_cells, block.n_rows
        if n_leaves > N_LEAVES_MAX or n_leaves * n_rows > N_NUMBERS_MAX:
            return None
        if self._leaves.refined([block]) is not self._leaves:
            return None  # it cuts the finest groups
        coefficient, row = row_signature(self._leaves, block)
        (touched,) = np.nonzero(row >= 0)
        asked = np.zeros((n_leaves, n_rows))
        asked[touched, row[touched]] = coefficient[touched]
        combined = asked.reshape((*self._leaves.shape, n_rows))
        for dimension, tree in enumerate(self._trees):
            combined = tree.coefficients(combined, dimension)
        return self._reading(combined, n_rows)

    def _reading(self, combined: Floats, n_rows: int) -> Reading:
        """The coefficients of all groups, level after level along each axis, as a reading."""
        starts = [tree.starts for tree in self._trees]
        ranges = product(*(range(len(one) - 1) for one in starts))
        rows, coefficients, tables, groups = [], [], [], []
        for table, (levels, one) in enumerate(zip(ranges, self._tables, strict=True)):
            part = combined[
                tuple(slice(ends[k], ends[k + 1]) for ends, k in zip(starts, levels, strict=True))
            ].reshape(-1, n_rows)
            group, row = np.nonzero(part)
            rows.append(row)
            coefficients.append(part[group, row])
            groups.append(one.group[group])
            tables.append(np.full(row.size, table))
        which, noise_row = np.concatenate(tables), np.concatenate(groups)
        starts_of = np.cumsum([0, *(one.values.size for one in self._tables)])
        values = np.concatenate([one.values for one in self._tables])
        return Reading(
            row=np.concatenate(rows),
            coefficient=np.concatenate(coefficients),
            value=values[starts_of[which] + noise_row],
            noise_scale=np.array([one.noise_scale for one in self._tables])[which],
            is_gaussian=np.array([one.is_gaussian for one in self._tables])[which],
            lattice_widening=np.array([one.lattice_widening for one in self._tables])[which],
            noise_place=np.array([one.place for one in self._tables])[which],
            noise_row=noise_row,
            is_covered=np.ones(n_rows, dtype=np.bool_),
        )


def finest_groups(family: Sequence[QueryBlock]) -> Grid | None:
    """The groups of the finest partition of a family, of which a reader's rows are sums."""
    divisible = [block for block in family if divided(block) is not None]
    finest = max(divisible, key=lambda block: block.n_rows, default=None)
    classes = None if finest is None else divided(finest)
    return None if classes is None else Grid(family[0].scope, classes)


_DIVIDED: WeakKeyDictionary[QueryBlock, Classes | None] = WeakKeyDictionary()


def divided(block: QueryBlock) -> Classes | None:
    """The partition along each axis of which a block counts all products; None if it is none."""
    if block not in _DIVIDED:
        _DIVIDED[block] = _divided(block)
    return _DIVIDED[block]


def _divided(block: QueryBlock) -> Classes | None:
    partition = block.partition
    if partition is None or _leaves_out(partition.groups):
        return None
    classes = tuple(
        AxisClasses.undivided(size).refined(slice_keys(partition.groups, dimension))
        for dimension, size in enumerate(partition.shape)
    )
    n_products = int(np.prod([one.n_classes for one in classes]))
    return classes if n_products == partition.n_groups else None


def _leaves_out(groups: NDArray[np.int64] | Pieces | Tiles) -> bool:
    if isinstance(groups, Pieces):
        return groups.ends[0] < 0
    return bool((groups.values if isinstance(groups, Tiles) else groups).min() < 0)


@dataclass(frozen=True, slots=True)
class _Family:
    """Chains of nested partitions, one for each axis, the finest first, and their products.

    Parameters
    ----------
    chains : tuple of tuple of AxisClasses
    places : mapping
        The measurement of each product, by the place of its partition in the chain of each axis.
    """

    chains: tuple[Classes, ...]
    places: Mapping[tuple[int, ...], int]

    def classes(self, levels: tuple[int, ...]) -> Classes:
        """The partition along each axis at some places in the chains."""
        return tuple(chain[level] for chain, level in zip(self.chains, levels, strict=True))


def _family(divisions: Mapping[int, Classes], measured: Mapping[int, Measurement]) -> _Family:
    """The finest partition, and all that extend it to a larger family, the finest first."""
    by_fineness = sorted(
        divisions, key=lambda place: (-measured[place].block.n_rows, measured[place].noise_scale)
    )
    chains: list[list[AxisClasses]] = [[one] for one in divisions[by_fineness[0]]]
    known = {_name(divisions[place]): place for place in reversed(by_fineness)}
    for place in by_fineness[1:]:
        for dimension, one in enumerate(divisions[place]):
            chain = chains[dimension]
            if not extends(chain, one):
                continue
            others = [chain if k != dimension else [one] for k, chain in enumerate(chains)]
            if all(_name(classes) in known for classes in product(*others)):
                chain.append(one)
    places = {
        levels: known[_name(tuple(chain[k] for chain, k in zip(chains, levels, strict=True)))]
        for levels in product(*(range(len(chain)) for chain in chains))
    }
    return _Family(tuple(tuple(chain) for chain in chains), places)


def _name(classes: Sequence[AxisClasses]) -> tuple[bytes, ...]:
    return tuple(one.digest for one in classes)


def _precisions(family: _Family, measured: Mapping[int, Measurement]) -> list[Floats]:
    """For each axis, the precision of each level, such that products of them are near the true."""
    shape = tuple(len(chain) for chain in family.chains)
    logs = np.zeros(shape)
    for levels, place in family.places.items():
        logs[levels] = -2 * np.log(measured[place].noise_scale)
    n_axes, mean = len(shape), logs.mean()
    found = []
    for dimension in range(n_axes):
        others = tuple(k for k in range(n_axes) if k != dimension)
        found.append(np.exp(logs.mean(axis=others) - mean))  # a common factor changes nothing
    return found


@dataclass(frozen=True, eq=False, slots=True)
class _Table:
    """The counts of one product of partitions.

    Parameters
    ----------
    place : int
        In the history.
    values : (n_groups,) ndarray of float64
    noise_scale, lattice_widening : float
    is_gaussian : bool
    group : (n_groups,) ndarray of int64
        The row of the measurement for each product, the last axis fastest.
    """

    place: int
    values: Floats
    noise_scale: float
    lattice_widening: float
    is_gaussian: bool
    group: NDArray[np.int64]

    @classmethod
    def of(cls, one: Measurement, place: int, classes: Classes) -> "_Table":
        partition = one.block.partition
        if partition is None:
            raise ValueError("a partition of nothing")
        grid = Grid(partition.axes, classes)
        group = grid.labels(partition.axes, partition.groups).ravel()
        widening, is_gaussian = one.lattice_widening, one.is_gaussian
        return cls(place, one.values, one.noise_scale, widening, is_gaussian, group)
