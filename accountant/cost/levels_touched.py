"""At how many levels of an axis a block, or one row of it, costs a cell anything.

A unit with at most m rows at each level has at most m times as many in such a row. A level counts
if some term of the query is not 0 on a cell with it, and some cell with it is in a group: terms
that cancel still count, so that the number is never below the truth. Nothing here knows about
budgets or data. Proof: proofs/units.md, "Rows by level".
"""

from functools import reduce
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import Tiles
from cube.pieces import Pieces
from cube.query import N_GROUPS_MAX, Partition, QueryBlock, Term
from cube.schema import RowsByLevel

Levels = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# Of a block, and of one of its rows; None for all levels. Weak: a block may hold megabytes.
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
    known = _LEVELS.setdefault(block, {})
    if axis not in known:
        known[axis] = _counted(block, axis)
    return known[axis]


def _counted(block: QueryBlock, axis: str) -> tuple[int | None, int | None]:
    of_terms = [_of_term(term, axis) for term in block.query.terms]
    along = [levels for levels in of_terms if levels is not None]
    touched = reduce(np.logical_or, along) if len(along) == len(of_terms) else None
    if block.partition is None or axis not in block.partition.axes:
        return (None if touched is None else int(touched.sum())), None
    groups, class_of_level = _groups(block.partition, axis)
    inside = _is_any(groups >= 0)[class_of_level]
    n_inside = int((inside if touched is None else inside & touched).sum())
    return n_inside, _of_largest_group(groups, np.bincount(class_of_level))


def _of_term(term: Term, axis: str) -> Levels | None:
    """At which levels a term is not 0 everywhere; None if it does not depend on the axis."""
    factor = next((one for one in term.factors if axis in one.axes), None)
    if factor is None:
        return None
    if isinstance(factor.numbers, Pieces):  # a polynomial counts as a whole
        pieces = factor.numbers
        lengths = np.diff(pieces.starts, append=pieces.size)
        return np.repeat(_is_any(pieces.coefficients != 0), lengths)
    numbers = np.moveaxis(factor.numbers, factor.axes.index(axis), 0)
    return _is_any(numbers != 0)


def _is_any(found: NDArray[np.bool_]) -> Levels:
    """For each place along the first dimension, whether it is anywhere."""
    levels: Levels = np.logical_or.reduce(found.reshape(len(found), -1), axis=1)
    return levels


def _groups(partition: Partition, axis: str) -> tuple[Numbers, Numbers]:
    """The groups of the cells of each class of levels, a row each; and the class of each level."""
    place, groups = partition.axes.index(axis), partition.groups
    numbers = groups.values if isinstance(groups, Tiles) else partition.labels
    pieces = groups.along[place] if isinstance(groups, Tiles) else None
    by_class = np.moveaxis(numbers, place, 0)
    class_of_level = np.arange(len(by_class)) if pieces is None else pieces.dense()
    return by_class.reshape(len(by_class), -1), class_of_level


def _of_largest_group(groups: Numbers, n_levels: Numbers) -> int:
    """The most levels that cells of one group have, of classes of so many levels."""
    which = np.arange(len(groups))[:, np.newaxis]
    pairs = np.unique(which * (N_GROUPS_MAX + 1) + groups + 1)
    found, group = np.divmod(pairs, N_GROUPS_MAX + 1)
    return int(np.bincount(group, n_levels[found])[1:].max())
