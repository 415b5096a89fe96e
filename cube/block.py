"""Blocks: linear queries that are asked and measured together.

A GROUP BY is one query and a partition of cells into groups: row ``i`` is the query on group ``i``
and zero elsewhere. Rows of one block share no cell, so a block costs what one row costs (parallel
composition follows from the cost per cell; it needs no rule of its own).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from cube.cached import cached_property
from cube.pieces import Pieces, constant_runs, runs_of
from cube.query import (
    N_FACTOR_CELLS_MAX,
    N_NARROW_LEVELS_MAX,
    Factor,
    LinearQuery,
    Scope,
    check_scope,
    n_stored,
    read_only,
    shape_of,
)
from cube.tiles import Tiles

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
            raise ValueError(f"{len(self.shape)} dimensions for {len(self.axes)} axes")
        if self.n_stored > N_FACTOR_CELLS_MAX:
            raise ValueError(f"a partition of {self.n_stored} numbers")
        if not isinstance(self.groups, Pieces | Tiles):
            is_wide = len(self.axes) == 1 and self.groups.size > N_NARROW_LEVELS_MAX
            kept = runs_of(self.groups) if is_wide else read_only(self.groups)
            object.__setattr__(self, "groups", kept)
        found = np.unique(self._occurring)
        groups = found[found >= 0]
        if found[0] < -1 or not np.array_equal(groups, np.arange(groups.size)):
            raise ValueError("labels must be -1 or 0 .. n_groups - 1, each of them used")
        if groups.size > N_GROUPS_MAX:
            raise ValueError(f"{groups.size} groups; {N_GROUPS_MAX} are allowed")

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
            raise ValueError("the pieces of a partition are constant")
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
