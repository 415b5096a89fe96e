"""Answers from a hierarchy of counted groups: the best combination of all of its levels.

A hierarchy is a family of partitions of the cells of a few axes: along every axis a chain of
nested partitions, and the counts of all products of one partition for each axis. Where noise is
alike on all of them, or depends on the axes separately, the least-squares problem is a product of
one problem for each axis, and along one axis it is a tree: each partition's groups were counted
with noise of one precision. Two passes along each axis give the coefficient of every noisy count
for a query of the finest groups, in a time that grows with the number of groups; see Hay, Rastogi,
Miklau and Suciu 2010, "Boosting the accuracy of differentially private histograms through
consistency". Where noise differs otherwise the combination is not the best, and still unbiased.

What the intervals of a hierarchy leave of a query is a row beside it. A range whose ends lie within
groups of the finest partition is the whole groups between them, and what is left at both ends. On a
product of ranges the rest is a frame. The whole part, a sum of whole groups, is read from the
hierarchy; the rest is a row of its own, which hardly any other query's rest meets.

Nothing here knows budgets. Values play no part in the choice of coefficients.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import AxisClasses, Tiles, first_places
from cube.grid import Grid, slice_keys
from cube.measurement import Measurement
from cube.pieces import Pieces, runs_of
from cube.query import Factor, LinearQuery, QueryBlock, Scope, Term
from inference.blue.atoms import row_signature
from inference.blue.partition_reader import Reading

N_CUT_MAX = 8  # groups along one axis; a query that cuts more is no sum of a few ranges


@dataclass(frozen=True, slots=True)
class Divided:
    """A row of whole numbers as ``whole + multiplier * rest``.

    Parameters
    ----------
    whole : QueryBlock
        The part of the block that is constant on every group.
    rest : QueryBlock, optional
        In lowest terms; None if the query is whole groups.
    multiplier : float
        The factor of the rest.
    """

    whole: QueryBlock
    rest: QueryBlock | None = None
    multiplier: float = 1.0


def divided_at(leaves: Grid, block: QueryBlock) -> Divided | None:
    """A block's whole groups of a partition, and the rest of it.

    None if no whole group is in it, or too many groups are cut for the rest to be narrow. A block
    of several rows, or of a sum of products, is divided only if it cuts none.
    """
    factors = _along_single_axes(block)
    if factors is None:
        return Divided(block) if leaves.refined([block]) is leaves else None
    inner = [_whole_of(leaves.classes[leaves.position[one.axes[0]]], one) for one in factors]
    found = [one for one in inner if one is not None]
    if len(found) < len(inner):
        return None
    if all(one is own for one, own in zip(found, factors, strict=True)):
        return Divided(block)
    scale = block.query.terms[0].scale
    rest = QueryBlock(LinearQuery(_frame(scale, factors, found)))
    row, multiplier = rest.primitive
    whole = QueryBlock(LinearQuery((Term(scale, tuple(found)),)))
    return Divided(whole, row, float(multiplier))


def is_divided_at(leaves: Grid, block: QueryBlock) -> bool:
    """Whether `divided_at` gives anything: the factors that many rows share are looked at once."""
    factors = _along_single_axes(block)
    if factors is None:
        return leaves.refined([block]) is leaves
    return all(
        _has_whole(leaves.classes[leaves.position[factor.axes[0]]], factor) for factor in factors
    )


# By the digest of the classes. Weak, as a factor may hold megabytes.
_HAVE_WHOLE: WeakKeyDictionary[Factor, dict[bytes, bool]] = WeakKeyDictionary()


def _has_whole(classes: AxisClasses, factor: Factor) -> bool:
    known = _HAVE_WHOLE.setdefault(factor, {})
    if classes.digest not in known:
        known[classes.digest] = _whole_of(classes, factor) is not None
    return known[classes.digest]


def _along_single_axes(block: QueryBlock) -> tuple[Factor, ...] | None:
    """The factors of a row that is one product of arrays along an axis each; None if it is not."""
    terms = block.query.terms
    if block.partition is not None or len(terms) != 1 or block.query.constant:
        return None
    factors = terms[0].factors
    return factors if all(len(one.axes) == 1 for one in factors) else None


def _whole_of(classes: AxisClasses, factor: Factor) -> Factor | None:
    """A factor on the classes within which it is constant, and 0 on others; None if that is none.

    The factor itself if it cuts no class.
    """
    numbers = factor.numbers if isinstance(factor.numbers, Pieces) else runs_of(factor.numbers)
    if numbers.degree or classes.degree:
        return None
    if classes.n_classes == classes.n_levels:
        return factor  # levels are not cut
    starts = np.union1d(classes.starts, numbers.starts)  # within these runs nothing changes
    which, values = classes.at(starts), numbers.at(starts)
    is_cut = np.zeros(classes.n_classes, dtype=np.bool_)
    is_cut[which[values != values[first_places(which)][which]]] = True
    n_cut = int(is_cut.sum())
    if n_cut == 0 or n_cut > N_CUT_MAX:
        return None if n_cut else factor
    kept = np.where(is_cut[which], 0, values)
    lengths = np.diff(starts, append=classes.n_levels)
    return Factor(factor.axes, np.repeat(kept, lengths)) if kept.any() else None


def _frame(scale: Fraction, outer: Sequence[Factor], inner: Sequence[Factor]) -> tuple[Term, ...]:
    """The product of outer factors less that of inner ones, as products that share no cell."""
    terms = []
    for place, (whole, part) in enumerate(zip(outer, inner, strict=True)):
        if part is whole:
            continue
        edge = Factor(whole.axes, whole.values - part.values)
        terms.append(Term(scale, (*inner[:place], edge, *outer[place + 1 :])))
    return tuple(terms)


GroupNumbers: TypeAlias = NDArray[np.float64]


def extends(chain: Sequence[AxisClasses], coarser: AxisClasses) -> bool:
    """Whether a partition is coarser than all of a chain."""
    return coarser.n_classes < chain[-1].n_classes and chain[-1].refines(coarser)


@dataclass(frozen=True, eq=False, slots=True)
class NestedGroups:
    """Nested partitions along one axis, with the precision of the counts of each.

    Parameters
    ----------
    parents : tuple of ndarray of int64
        For each level but the last, the group of the next level that contains each group.
    precisions : (n_levels,) ndarray of float64
    starts : tuple of int
        Where each level begins, when the groups of all levels follow each other; and the end.
    """

    parents: tuple[NDArray[np.int64], ...]
    precisions: GroupNumbers
    starts: tuple[int, ...]

    @classmethod
    def of(cls, chain: Sequence[AxisClasses], precisions: GroupNumbers) -> "NestedGroups":
        """The nesting of partitions, the finest first, each counted at a precision."""
        parents = tuple(coarser.parents(finer) for finer, coarser in pairwise(chain))
        starts = np.cumsum([0, *(one.n_classes for one in chain)])
        return cls(parents, precisions, tuple(starts.tolist()))

    def coefficients(self, asked: GroupNumbers, dimension: int) -> GroupNumbers:
        """The coefficients of the groups of all levels, for queries of the finest groups.

        Notes
        -----
        With ``M`` the sum over levels of precision times the levels' Gram matrices, the solution of
        ``M x = c``, summed over each group and multiplied by its precision, is the group's
        coefficient. A level adds the same number to all pairs within a group, so the inverse
        follows from the inverse of the finer levels (Sherman and Morrison): on the way up, `ones`
        and `sums` are those of ``M_g^-1 1`` and ``M_g^-1 c`` over each group; on the way down, what
        the coarser groups have explained is taken off.
        """
        c = np.moveaxis(asked, dimension, 0)
        ones = [np.full(c.shape[0], 1 / self.precisions[0])]
        sums = [c / self.precisions[0]]
        for parent, precision in zip(self.parents, self.precisions[1:], strict=True):
            together = _summed(ones[-1][:, np.newaxis], parent)[:, 0]
            shrunk = 1 + precision * together
            ones.append(together / shrunk)
            sums.append(_summed(sums[-1], parent) / _beside(shrunk, c))
        explained = np.zeros_like(sums[-1])
        found: list[GroupNumbers] = []
        for level in reversed(range(len(sums))):
            own = self.precisions[level] * (sums[level] - explained * _beside(ones[level], c))
            found.insert(0, own)
            if level:
                explained = (explained + own)[self.parents[level - 1]]
        return np.moveaxis(np.concatenate(found), 0, dimension)


def _beside(values: GroupNumbers, c: GroupNumbers) -> GroupNumbers:
    """A number for each of the first dimension, to be multiplied with all that follow."""
    return values.reshape((-1, *([1] * (c.ndim - 1))))


def _summed(values: GroupNumbers, parent: NDArray[np.int64]) -> GroupNumbers:
    """Sums over the groups of the next level."""
    order = np.argsort(parent, kind="stable")
    starts = np.searchsorted(parent[order], np.arange(int(parent.max()) + 1))
    return np.add.reduceat(values[order], starts, axis=0)


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
    """The groups of the finest partition of a family; a reader's rows are sums of them."""
    divisible = [block for block in family if divided(block) is not None]
    finest = max(divisible, key=lambda block: block.n_rows, default=None)
    classes = None if finest is None else divided(finest)
    return None if classes is None else Grid(family[0].scope, classes)


_DIVIDED: WeakKeyDictionary[QueryBlock, Classes | None] = WeakKeyDictionary()


def divided(block: QueryBlock) -> Classes | None:
    """A partition along each axis, if the block counts all their products; else None."""
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
        The measurement's place in the history.
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
            raise ValueError("a partition needs at least one level")
        grid = Grid(partition.axes, classes)
        group = grid.labels(partition.axes, partition.groups).ravel()
        widening, is_gaussian = one.lattice_widening, one.is_gaussian
        return cls(place, one.values, one.noise_scale, widening, is_gaussian, group)
