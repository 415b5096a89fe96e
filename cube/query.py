"""Linear queries: exact weighted sums of the cells of a private table's cube; and blocks of them.

    query = sum over terms of  scale * product of factors  +  constant

A factor is an array of whole numbers over the levels of a few axes; a term's factors share no axis.
A conjunction of predicates on five columns is five small factors, never a product of five domains.
Axes that a query does not mention are summed over. Everything is exact, because sensitivity and
cost are computed from these numbers.

A block is linear queries that are asked and measured together. A GROUP BY is one query and a
partition of cells into groups: row ``i`` is the query on group ``i`` and zero elsewhere. Rows of
one block share no cell, so a block costs no more than one row (parallel composition follows from
the cost per cell; it needs no rule of its own). Rows may be restricted to some levels of an axis:
coefficients elsewhere are 0.

Nothing here touches data, noise or budget, knows what was measured, or decides to which levels rows
are restricted.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import Tiles
from cube.pieces import Pieces, constant_runs, pieces_of, runs_of
from cube.runtime import cached_property

COEFFICIENT_MAX = 2**40  # times N_RECORDS_MAX = 2**40: every exact answer stays below 2**80
N_FACTOR_CELLS_MAX = 2**22  # one factor's or partition's domain: 32 MB of int64
N_NARROW_LEVELS_MAX = 2**12  # an array over more levels of one axis is kept as pieces
N_TERMS_MAX = 256  # a sum of more aggregates than anyone writes by hand

Scope: TypeAlias = tuple[str, ...]


def read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """A copy that cannot be changed afterwards: what was charged for is what is measured."""
    locked = np.array(array, dtype=np.int64, order="C", copy=True)
    locked.flags.writeable = False
    return locked


def shape_of(numbers: NDArray[np.int64] | Pieces | Tiles) -> tuple[int, ...]:
    """The number of levels along each axis of an array, or of pieces along one."""
    return (numbers.size,) if isinstance(numbers, Pieces) else numbers.shape


def n_stored(numbers: NDArray[np.int64] | Pieces | Tiles) -> int:
    """How many numbers an array, pieces or tiles are stored in."""
    if isinstance(numbers, Tiles):
        return numbers.n_stored
    return numbers.coefficients.size if isinstance(numbers, Pieces) else numbers.size


def check_scope(axes: Scope) -> None:
    """Raise ValueError unless `axes` is sorted and without repeats."""
    if list(axes) != sorted(set(axes)):
        raise ValueError(f"axes must be sorted and distinct, got {axes}")


@dataclass(frozen=True, eq=False)
class Factor:
    """Whole numbers over the levels of one or a few axes.

    Parameters
    ----------
    axes : tuple of str
        Sorted, distinct, at least one.
    numbers : (n_levels of axes[0], n_levels of axes[1], ...) ndarray of int64, or Pieces
        One number per combination of levels; 0 and 1 for a predicate. Pieces are for one axis. An
        array over many levels of one axis is turned into them.
    """

    axes: Scope
    numbers: NDArray[np.int64] | Pieces

    def __post_init__(self) -> None:
        check_scope(self.axes)
        if not self.axes or len(self.shape) != len(self.axes):
            raise ValueError(f"there are {len(self.shape)} dimensions for {len(self.axes)} axes")
        if math.prod(self.shape) > N_FACTOR_CELLS_MAX:
            raise ValueError(f"a factor over {math.prod(self.shape)} cells is too large")
        if not isinstance(self.numbers, Pieces):
            if self.numbers.dtype != np.int64:
                raise TypeError(f"factor values must be int64, not {self.numbers.dtype}")
            is_wide = len(self.axes) == 1 and self.numbers.size > N_NARROW_LEVELS_MAX
            kept = pieces_of(self.numbers) if is_wide else read_only(self.numbers)
            object.__setattr__(self, "numbers", kept)
        if self.bound > COEFFICIENT_MAX:
            raise ValueError("a coefficient must not exceed 2**40")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return shape_of(self.numbers)

    @property
    def values(self) -> NDArray[np.int64]:
        """The number of every combination of levels; made anew where pieces are kept."""
        return self.numbers.dense() if isinstance(self.numbers, Pieces) else self.numbers

    @property
    def content(self) -> bytes:
        """Equal for equal values over the same axes."""
        return self.numbers.content if isinstance(self.numbers, Pieces) else self.numbers.tobytes()

    @property
    def n_stored(self) -> int:
        """How many numbers are stored."""
        return n_stored(self.numbers)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The least and the largest value."""
        if isinstance(self.numbers, Pieces):
            return self.numbers.ends
        return int(self.numbers.min()), int(self.numbers.max())

    @cached_property
    def bound(self) -> int:
        """The largest absolute value."""
        return max(map(abs, self.ends))

    @cached_property
    def primitive(self) -> "tuple[Factor | None, int]":
        """Split into a multiplier and values without a common divisor, the first of them positive.

        The factor is None if the values are all equal: the multiplier then says everything.
        """
        least, largest = self.ends
        if least == largest:
            return None, least
        divisor = 1 if self.bound == 1 else self._common_divisor()
        if least < 0 and self._first_nonzero() < 0:
            divisor = -divisor
        return (self if divisor == 1 else self._divided(divisor)), divisor

    def _common_divisor(self) -> int:
        if isinstance(self.numbers, Pieces):
            return self.numbers.common_divisor
        return int(np.gcd.reduce(self.numbers, axis=None))

    def _first_nonzero(self) -> int:
        if isinstance(self.numbers, Pieces):
            return self.numbers.first_nonzero
        return int(self.numbers.flat[np.flatnonzero(self.numbers)[0]])

    def _divided(self, divisor: int) -> "Factor":
        if isinstance(self.numbers, Pieces):
            return Factor(self.axes, self.numbers.divided(divisor))
        return Factor(self.axes, self.numbers // divisor)


@dataclass(frozen=True, eq=False)
class Term:
    """A rational number times a product of factors on disjoint axes.

    Kept in lowest terms: a common divisor of a factor moves into the scale, a constant factor
    is absorbed by the scale, and factors are in the order of their axes. So equal coefficients,
    however they were written, mostly give the same term.
    """

    scale: Fraction
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction):
            raise TypeError("a coefficient must be exact: build it from a Fraction, not a float")
        axes = [name for factor in self.factors for name in factor.axes]
        if len(set(axes)) != len(axes):
            raise ValueError("two factors of one term share an axis")
        scale, kept = self.scale, []
        for factor in sorted(self.factors, key=lambda factor: factor.axes):
            rest, multiplier = factor.primitive
            scale = scale if multiplier == 1 else scale * multiplier
            if rest is not None:
                kept.append(rest)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "factors", tuple(kept))

    @cached_property
    def scope(self) -> Scope:
        """The axes the term touches, sorted."""
        return tuple(sorted(name for factor in self.factors for name in factor.axes))

    @property
    def bound(self) -> Fraction:
        """The largest absolute coefficient."""
        return abs(self.scale) * math.prod(factor.bound for factor in self.factors)


@dataclass(frozen=True, eq=False)
class LinearQuery:
    """``sum_j coefficient_j x_j + constant`` over the cells ``x`` of the cube.

    Parameters
    ----------
    terms : tuple of Term
        Their sum is the coefficient vector. Terms that vanish are dropped.
    constant : Fraction
        Added to the answer and to both ends of its interval; free of privacy cost.
    """

    terms: tuple[Term, ...]
    constant: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not isinstance(self.constant, Fraction):
            raise TypeError("a constant must be exact: build it from a Fraction, not a float")
        if len(self.terms) > N_TERMS_MAX:
            raise ValueError(f"a query cannot have more than {N_TERMS_MAX} terms")
        kept = tuple(term for term in self.terms if term.scale != 0)
        object.__setattr__(self, "terms", kept)

    @cached_property
    def scope(self) -> Scope:
        """The axes the query touches, sorted."""
        return tuple(sorted({name for term in self.terms for name in term.scope}))

    @property
    def is_constant(self) -> bool:
        """Whether no cell has a coefficient, so that the answer is public."""
        return not self.terms

    @cached_property
    def bound(self) -> Fraction:
        """An upper bound on every absolute coefficient (exact when there is one term)."""
        return sum((term.bound for term in self.terms), Fraction(0))

    def __add__(self, other: "LinearQuery") -> "LinearQuery":
        return LinearQuery(self.terms + other.terms, self.constant + other.constant)

    def scaled(self, factor: Fraction) -> "LinearQuery":
        """The query times an exact number."""
        terms = tuple(Term(term.scale * factor, term.factors) for term in self.terms)
        return LinearQuery(terms, self.constant * factor)

    def primitive(self) -> "tuple[LinearQuery, Fraction]":
        """Split into ``multiplier * row``, where ``row`` has whole coefficients and no constant.

        Queries that are multiples of one another share their row, so that ``2 * COUNT(*)`` is
        answered from what was measured for ``COUNT(*)``.
        """
        if self.is_constant:
            return LinearQuery(()), Fraction(1)
        divisor = reduce(rational_gcd, (abs(term.scale) for term in self.terms))
        if self.terms[0].scale < 0:
            divisor = -divisor
        row = LinearQuery(self.terms) if self.constant else self
        return (row if divisor == 1 else row.scaled(1 / divisor)), divisor


def rational_gcd(a: Fraction, b: Fraction) -> Fraction:
    """The largest rational that divides both a whole number of times.

    >>> rational_gcd(Fraction(1, 2), Fraction(3, 4))
    Fraction(1, 4)
    """
    common = math.lcm(a.denominator, b.denominator)
    return Fraction(math.gcd(int(a * common), int(b * common)), common)


def counting(factors: Iterable[Factor] = ()) -> LinearQuery:
    """The number of records in the product of some factors: one term of scale 1."""
    return LinearQuery((Term(Fraction(1), tuple(factors)),))


N_GROUPS_MAX = 100_000  # rows of one block; a larger result is a table, not an answer


@dataclass(frozen=True, eq=False)
class Partition:
    """Disjoint groups of the cells of a few axes.

    Parameters
    ----------
    axes : tuple of str
        Sorted, distinct, at least one.
    groups : (n_levels of axes[0], ...) ndarray of int64, or Pieces, or Tiles
        The group of each cell, ``0 .. n_groups - 1``; -1 for a cell in no group. No group is empty.
        Constant pieces are for one axis; an array over many levels of one axis is turned into them.
        Tiles are for several axes with many levels, or with many combinations of them.
    """

    axes: Scope
    groups: NDArray[np.int64] | Pieces | Tiles

    def __post_init__(self) -> None:
        check_scope(self.axes)
        if not self.axes or len(self.shape) != len(self.axes):
            raise ValueError(f"there are {len(self.shape)} dimensions for {len(self.axes)} axes")
        if self.n_stored > N_FACTOR_CELLS_MAX:
            raise ValueError(f"a partition of {self.n_stored} numbers is too large")
        if not isinstance(self.groups, Pieces | Tiles):
            is_wide = len(self.axes) == 1 and self.groups.size > N_NARROW_LEVELS_MAX
            kept = runs_of(self.groups) if is_wide else read_only(self.groups)
            object.__setattr__(self, "groups", kept)
        found = np.unique(self._occurring)
        groups = found[found >= 0]
        if found[0] < -1 or not np.array_equal(groups, np.arange(groups.size)):
            raise ValueError("labels must be -1 or 0 .. n_groups - 1, each of them used")
        if groups.size > N_GROUPS_MAX:
            raise ValueError(f"there are {groups.size} groups; at most {N_GROUPS_MAX} are allowed")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels of each axis."""
        return shape_of(self.groups)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The group of every cell; made anew where pieces or tiles are kept."""
        return self.groups if isinstance(self.groups, np.ndarray) else self.groups.dense()

    @property
    def n_cells(self) -> int:
        """The number of products of levels."""
        return math.prod(self.shape)

    def renumbered(self, numbers: NDArray[np.int64]) -> "Partition":
        """The partition whose groups have other numbers, or -1; the last of them is for -1."""
        if isinstance(self.groups, Pieces):
            new = numbers[self.groups.coefficients[:, 0]]
            return Partition(self.axes, constant_runs(self.groups.starts, new, self.groups.size))
        if isinstance(self.groups, Tiles):
            return Partition(self.axes, self.groups.with_values(numbers[self.groups.values]))
        return Partition(self.axes, numbers[self.groups])

    @property
    def n_stored(self) -> int:
        """How many numbers are stored."""
        return n_stored(self.groups)

    @property
    def _occurring(self) -> NDArray[np.int64]:
        """Every label, once or more."""
        if isinstance(self.groups, Tiles):
            return self.groups.values
        if not isinstance(self.groups, Pieces):
            return self.groups
        if self.groups.degree:
            raise ValueError("the pieces of a partition must be constant")
        return self.groups.coefficients[:, 0]

    @property
    def covers_all(self) -> bool:
        """Whether every cell is in a group."""
        return int(self._occurring.min()) >= 0

    @cached_property
    def n_grouped(self) -> int:
        """The number of cells that are in a group, exactly (it may be far beyond 2**64)."""
        if isinstance(self.groups, Tiles):
            return self.groups.n_at_least_zero
        if isinstance(self.groups, Pieces):
            return int(self.groups.lengths[self._occurring >= 0].sum())
        return int(np.count_nonzero(self.groups >= 0))

    @cached_property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self._occurring.max()) + 1


# By identity: each term's scale and factors, and the partition.
_Key: TypeAlias = tuple[tuple[tuple[Fraction, tuple[Factor, ...]], ...], Partition | None]


@dataclass(frozen=True, eq=False)
class QueryBlock:
    """One linear query, on every group of a partition (or on everything, as one row).

    The constant of the query belongs to every row.
    """

    query: LinearQuery
    partition: Partition | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return 1 if self.partition is None else self.partition.n_groups

    @cached_property
    def scope(self) -> Scope:
        """The axes that any row touches, sorted."""
        keys = () if self.partition is None else self.partition.axes
        return tuple(sorted({*self.query.scope, *keys}))

    @cached_property
    def primitive(self) -> "tuple[QueryBlock, Fraction]":
        """Split into a multiplier and a block of whole-number rows without a constant.

        What is measured and kept in the history is always the whole-number block.
        """
        row, multiplier = self.query.primitive()
        return _shared(row, self.partition), multiplier


# Equal rows of several statements are one object, so that results cached for it are shared.
# Weak: an entry lives as long as the plans and the history that use it.
_ROWS: WeakValueDictionary[_Key, QueryBlock] = WeakValueDictionary()


def _shared(row: LinearQuery, partition: Partition | None) -> QueryBlock:
    key = (tuple((term.scale, term.factors) for term in row.terms), partition)
    known = _ROWS.get(key)
    if known is None:
        known = _ROWS[key] = QueryBlock(row, partition)
    return known


Indicator = NDArray[np.int64]  # for each level of the axis, 1 or 0


def restricted(block: QueryBlock, axis: str, levels: Indicator) -> QueryBlock:
    """The rows of a block with their coefficients at some levels alone; perhaps none are left."""
    terms = tuple(_restricted_term(term, axis, levels) for term in block.query.terms)
    return QueryBlock(LinearQuery(terms, block.query.constant), block.partition)


def touches(block: QueryBlock, axis: str, levels: Indicator) -> bool:
    """Whether the rows of a block have a coefficient at some levels; terms may cancel."""
    partition = block.partition
    if partition is not None and axis in partition.axes:
        labels = np.moveaxis(partition.labels, partition.axes.index(axis), 0)
        if (labels[levels != 0] < 0).all():
            return False
    return not restricted(block, axis, levels).query.is_constant


def _restricted_term(term: Term, axis: str, levels: Indicator) -> Term:
    factors = [
        _restricted_factor(one, axis, levels) if axis in one.axes else one for one in term.factors
    ]
    if axis not in term.scope:
        factors.append(Factor((axis,), levels))
    return Term(term.scale, tuple(factors))


def _restricted_factor(factor: Factor, axis: str, levels: Indicator) -> Factor:
    if isinstance(factor.numbers, Pieces):
        return Factor(factor.axes, pieces_of(factor.numbers.dense() * levels))
    shape = [-1 if name == axis else 1 for name in factor.axes]
    return Factor(factor.axes, factor.numbers * levels.reshape(shape))
