"""At how many levels of an axis a block, or one row of it, costs a cell anything.

A unit with at most m rows at each level has at most m times as many in such a row. Counts are never
below the truth: a level at which terms cancel may count. Nothing here knows about budgets or data.
Proof: proofs/units.md, "Rows by level".
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction
from accountant.cost.profile import profile_of
from cube.block import N_GROUPS_MAX, Partition, QueryBlock
from cube.classes import AxisClasses
from cube.pieces import Pieces
from cube.rows_by_level import RowsByLevel
from cube.tiles import Tiles

_LEVELS: WeakKeyDictionary[QueryBlock, dict[str, tuple[int | None, int | None]]] = (
    WeakKeyDictionary()
)


def rows_in_block(block: QueryBlock, bound: RowsByLevel | None, n_rows: int) -> int:
    """How many rows of a unit the rows of a block may be about, if it has `n_rows` in all."""
    if bound is None:
        return n_rows
    of_block, _ = _levels(block, bound.axis)
    return n_rows if of_block is None else bound.at_levels(of_block, n_rows)


def rows_in_one(block: QueryBlock, bound: RowsByLevel, n_rows: int) -> int:
    """How many rows of a unit one row of a block may be about, if it has `n_rows` in all."""
    known = [one for one in _levels(block, bound.axis) if one is not None]
    return min((bound.at_levels(one, n_rows) for one in known), default=n_rows)


def _levels(block: QueryBlock, axis: str) -> tuple[int | None, int | None]:
    """For a block, and for one group: at how many levels it costs anything; None for all."""
    known = _LEVELS.setdefault(block, {})
    if axis not in known:
        partition = block.partition
        in_group = None
        if partition is not None and axis in partition.axes:
            in_group = _of_largest_group(partition, axis)
        known[axis] = _of_functions(profile_of(block).parts, axis), in_group
    return known[axis]


def _of_functions(functions: Sequence[CellFunction], axis: str) -> int | None:
    """At how many levels some function is not 0; None if one does not depend on the axis."""
    if not functions or any(axis not in function.axes for function in functions):
        return None
    along = [_along(function, axis) for function in functions]
    starts = np.unique(np.concatenate([classes.starts for classes, _ in along]))
    is_touched = np.any([costs[classes.at(starts)] for classes, costs in along], axis=0)
    lengths = np.diff(starts, append=along[0][0].n_levels)
    return int(lengths[is_touched].sum())


def _along(function: CellFunction, axis: str) -> tuple[AxisClasses, NDArray[np.bool_]]:
    """The classes of the axis, and in which of them the function is not 0 everywhere."""
    place = function.axes.index(axis)
    classes = function.classes[place]
    by_part = np.moveaxis(function.values, place, 0).reshape(classes.n_classes, -1)
    return classes, (by_part != 0).any(axis=1)


def _of_largest_group(partition: Partition, axis: str) -> int:
    """The most levels of the axis that cells of one group have."""
    place, groups = partition.axes.index(axis), partition.groups
    if isinstance(groups, Pieces):
        n_levels = np.diff(groups.starts, append=groups.size)
        numbers = groups.coefficients[:, 0]
    elif isinstance(groups, Tiles):
        classes = groups.along[place]
        lengths = np.diff(classes.starts, append=classes.size)
        n_levels = np.bincount(classes.coefficients[:, 0], lengths).astype(np.int64)
        numbers = groups.values
    else:
        n_levels, numbers = np.ones(groups.shape[place], dtype=np.int64), groups
    by_class = np.moveaxis(numbers, place, 0).reshape(n_levels.size, -1)
    pairs = np.unique(np.arange(n_levels.size)[:, np.newaxis] * (N_GROUPS_MAX + 1) + by_class + 1)
    which, group = np.divmod(pairs, N_GROUPS_MAX + 1)
    return int(np.bincount(group, n_levels[which])[1:].max())
