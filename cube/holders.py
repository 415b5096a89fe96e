"""Rows of a federated table, which several holders have: a table with one more axis, the holder.

A row that is measured is about one holder. Here it is the holder's own row with one more factor,
which is 1 at the level of the holder and 0 at the others:

    of_holder    a holder's row, as a row of the federated table
    at_holder    the same row without the factor, as the holder has it
    split        any rows of the federated table, as rows of one holder each
    parts        the same, with the rows of the whole to which each of them belongs

Nothing here touches data, noise or budget.
"""

from dataclasses import dataclass, field, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cube.classes import Tiles, tiled
from cube.pieces import Pieces
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term
from cube.schema import Schema
from cube.statistic import Choice, Distance

N_HOLDERS_MAX: Final = 100
_NOT_OF_ONE: Final = "a measured row must be about one holder"


def holder_factor(block: QueryBlock, axis: str) -> Factor | None:
    """The factor that is 1 at the one holder of some rows, and 0 at the others; None if none is.

    Then the rows may be about several holders, or the table may have only one.
    """
    if block.partition is not None and axis in block.partition.axes:
        return None
    found = []
    for term in block.query.terms:
        along = [one for one in term.factors if axis in one.axes]
        if len(along) != 1 or along[0].axes != (axis,):
            return None
        found.append(along[0])
    places = {_level_of(one) for one in found}
    return found[0] if len(places) == 1 and None not in places else None


def _level_of(factor: Factor) -> int | None:
    """The one level at which a factor of one axis is 1, where it is 0 at all others."""
    (places,) = np.nonzero(factor.values)
    return int(places[0]) if places.size == 1 and factor.values[places[0]] == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class HolderPart:
    """Rows of one holder, and to which rows of a block each of them belongs.

    Parameters
    ----------
    block : QueryBlock
        The rows, as those of the federated table.
    rows : (n_rows,) ndarray of int64
    """

    block: QueryBlock
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Holders:
    """The axis of the holders of one table.

    Parameters
    ----------
    axis : str
    n_holders : int
        The number of its levels, one for each holder.
    """

    axis: str
    n_holders: int
    _parts: WeakKeyDictionary[QueryBlock, tuple[HolderPart, ...]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )
    _places: WeakKeyDictionary[QueryBlock, tuple[int, QueryBlock]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )
    _only: "tuple[Factor, ...]" = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.n_holders <= N_HOLDERS_MAX:
            raise ValueError(f"a table must have 1 to {N_HOLDERS_MAX} holders")
        each = np.eye(self.n_holders, dtype=np.int64)
        object.__setattr__(self, "_only", tuple(Factor((self.axis,), one) for one in each))

    @classmethod
    def of(cls, schema: Schema) -> "Holders | None":
        """Those of a table; None if it is no federated one."""
        name = schema.holders
        return None if name is None else cls(name, schema.by_name[name].size)

    def only(self, level: int) -> Factor:
        """The factor that is 1 at one holder and 0 at the others."""
        return self._only[level]

    def of_holder(self, block: QueryBlock, level: int) -> QueryBlock:
        """The rows of one holder's table, as rows of the federated table."""
        if self.n_holders == 1:
            return block
        terms = tuple(
            Term(term.scale, (*term.factors, self._only[level])) for term in block.query.terms
        )
        return QueryBlock(LinearQuery(terms, block.query.constant), block.partition).primitive[0]

    def at_holder(self, block: QueryBlock) -> tuple[int, QueryBlock]:
        """The one holder that has the rows, and the rows as the holder has them.

        Raises
        ------
        ValueError
            If the rows are not those of one holder, written as `of_holder` writes them.
        """
        if self.n_holders == 1:
            return 0, block
        found = self._places.get(block)  # a plan asks for it again and again
        if found is None:
            factor = holder_factor(block, self.axis)
            if factor is None:
                raise ValueError(_NOT_OF_ONE)
            terms = (
                Term(term.scale, tuple(one for one in term.factors if one.axes != (self.axis,)))
                for term in block.query.terms
            )
            held = QueryBlock(LinearQuery(tuple(terms)), block.partition)
            found = self._places[block] = self._level(factor), held
        return found

    def split(self, block: QueryBlock) -> tuple[QueryBlock, ...]:
        """Rows of the federated table, as rows of one holder each, in lowest terms.

        Holders at which all rows are 0 have none. What is constant is left out.
        """
        return tuple(one.block for one in self.parts(block))

    def parts(self, block: QueryBlock) -> tuple[HolderPart, ...]:
        """The same, with the rows of the block to which they belong."""
        found = self._parts.get(block)
        if found is None:
            slices = ((level, self._slice(block, level)) for level in range(self.n_holders))
            found = self._parts[block] = tuple(
                HolderPart(self.of_holder(one[0], level), one[1])
                for level, one in slices
                if one is not None
            )
        return found

    def addends(self, block: QueryBlock) -> tuple[QueryBlock, ...]:
        """Rows of one holder each, in lowest terms, whose plain sum these rows in lowest terms are.

        Empty if there are none: some holders' rows have other factors than others', or one holder
        has all.
        """
        if block.partition is not None and self.axis in block.partition.axes:
            return ()
        found = {self._taken(term) for term in block.query.terms}
        return self.split(block) if len(found) == 1 and None not in found else ()

    def _taken(self, term: Term) -> bytes | None:
        """Which holders' rows a term takes as they are; None if it does not."""
        among = [factor for factor in term.factors if self.axis in factor.axes]
        if not among:
            return b""
        values = among[0].values
        if len(among) > 1 or among[0].axes != (self.axis,) or not np.isin(values, (0, 1)).all():
            return None
        return values.tobytes()

    def distance_of(self, distance: Distance, level: int) -> Distance:
        """A distance of one holder's rows, as one of the federated table."""
        return replace(distance, block=self.of_holder(distance.block, level))

    def distance_at(self, distance: Distance) -> tuple[int, Distance]:
        """The one holder of the rows, and the distance as it is there; raises as `at_holder`."""
        level, block = self.at_holder(distance.block)
        return level, replace(distance, block=block)

    def choice_of(self, choice: Choice, level: int) -> Choice:
        """A choice by one holder, as one of the federated table."""
        return replace(choice, within=self._only[level])

    def choice_at(self, choice: Choice) -> tuple[int, Choice]:
        """The holder that makes a choice, and the choice as it is there.

        Raises
        ------
        ValueError
            If it is not made by one holder.
        """
        if choice.within is None:
            raise ValueError("a choice must be made by one holder")
        return self._level(choice.within), replace(choice, within=None)

    def _level(self, factor: Factor) -> int:
        is_fit = factor.axes == (self.axis,) and factor.values.shape == (self.n_holders,)
        level = _level_of(factor) if is_fit else None
        if level is None:
            raise ValueError(_NOT_OF_ONE)
        return level

    def _slice(self, block: QueryBlock, level: int) -> tuple[QueryBlock, NDArray[np.int64]] | None:
        """The rows at one holder, without the axis, and which they are; None if all are 0 there."""
        partition, rows = block.partition, np.arange(block.n_rows)
        if partition is not None and self.axis in partition.axes:
            partition, rows = _sliced_partition(partition, self.axis, level)
            if not rows.size:
                return None
        query = LinearQuery(tuple(_sliced_term(one, self.axis, level) for one in block.query.terms))
        if query.is_constant:
            return None
        return QueryBlock(query, partition).primitive[0], rows


def _sliced_term(term: Term, axis: str, level: int) -> Term:
    """A term at one level of an axis, without the axis."""
    scale, factors = term.scale, []
    for factor in term.factors:
        if axis not in factor.axes:
            factors.append(factor)
            continue
        at = np.take(factor.values, level, axis=factor.axes.index(axis))
        axes = tuple(name for name in factor.axes if name != axis)
        if axes:
            factors.append(Factor(axes, np.ascontiguousarray(at)))
        else:
            scale *= int(at)
    return Term(scale, tuple(factors))


def _sliced_partition(
    partition: Partition, axis: str, level: int
) -> tuple[Partition | None, NDArray[np.int64]]:
    """The groups at one level of an axis, None if one group has all; and which groups they are."""
    place = partition.axes.index(axis)
    axes = tuple(name for name in partition.axes if name != axis)
    groups = partition.groups
    if isinstance(groups, Tiles):
        kept = (*groups.along[:place], *groups.along[place + 1 :])
        number = int(groups.along[place].dense()[level])
        values = np.take(groups.values, number, axis=place)
    else:
        kept = ()
        values = np.take(
            groups.dense() if isinstance(groups, Pieces) else groups, level, axis=place
        )
    if not axes:
        return None, np.array([values] if int(values) >= 0 else [], dtype=np.int64)
    found, numbers = _renumbered(values)
    if not found.size:
        return None, found
    left = Partition(axes, tiled(kept, numbers) if kept else np.ascontiguousarray(numbers))
    return left, found


def _renumbered(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The groups that are left, and all values with the numbers that these have now."""
    found = np.unique(values[values >= 0])
    numbers = np.where(values >= 0, np.searchsorted(found, values), -1).astype(np.int64)
    return found, numbers
