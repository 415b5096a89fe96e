"""How many rows a unit has, in all and at each level of a column, and how often a row counts.

    no bound by level    all rows of a unit in one cell: a row counts k times, its square k**2 times
    m at each level      a row counts once; its square as often as a unit has rows in it

What is then the largest loss of a unit is found from the levels' most expensive cells, as the least
over prices t of a row:  k t + m sum over levels of what the level costs above t. (by_level.py finds
those cells.) Proof: proofs/units.md, "The auditor".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.columns import ColumnCost
from accountant.auditor.curves import Curve
from accountant.auditor.rows import Block, LevelArray
from accountant.auditor.tiled import Tiled

Levels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AtLevel:
    """At most so many rows of a unit at each level of a column."""

    column: str
    n_rows: int


@dataclass(frozen=True, slots=True)
class UnitRows:
    """The rows of a unit.

    Parameters
    ----------
    n_rows : int
        In all, at most.
    at_level : AtLevel, optional
    """

    n_rows: int
    at_level: AtLevel | None = None

    @property
    def times(self) -> int:
        """How often the cost of a cell counts."""
        return self.n_rows if self.at_level is None else 1

    def times_squared(self, block: Block) -> int:
        """How often the square of a coefficient counts."""
        if self.at_level is None:
            return self.n_rows**2
        most = self.at_level.n_rows
        levels = _n_levels(block, self.at_level.column)
        return min([self.n_rows, *(most * n for n in levels)])

    def largest_loss(self, costs: Sequence[int], n_levels: Sequence[int]) -> int:
        """The largest loss of a unit, if cells cost at most this at so many levels each.

        Notes
        -----
        The dual of a linear programme: any price t is an upper bound, and the smallest one at which
        the dearer levels have room for no more than all rows of a unit is the least.
        """
        if self.at_level is None:
            raise ValueError("rows that are not bounded by level")
        price = self.price(costs, n_levels)
        above = sum(n * max(0, cost - price) for cost, n in zip(costs, n_levels, strict=True))
        return self.n_rows * price + self.at_level.n_rows * above

    def price(self, costs: Sequence[int], n_levels: Sequence[int]) -> int:
        """The best price of a row: levels that cost less have no part in the largest loss."""
        room = 0 if self.at_level is None else self.n_rows // self.at_level.n_rows
        for cost, n in sorted(zip(costs, n_levels, strict=True), reverse=True):
            room -= n
            if room < 0:
                return cost
        return 0

    def along(self, cost: ColumnCost, units_spent: int) -> ColumnCost:
        """What a unit pays along a column at most, and some unit at least, from what a row does."""
        if self.at_level is None:
            return cost
        least = self.at_level.n_rows
        times = least if cost.column == self.at_level.column else self.n_rows
        return replace(
            cost,
            at_most=tuple(min(units_spent, times * one) for one in cost.at_most),
            at_least=tuple(least * one for one in cost.at_least),
        )


ONE_ROW: Final = UnitRows(1)


def _n_levels(block: Block, column: str) -> list[int]:
    """At how many levels the rows of a block cost anything, and at how many one of them does."""
    share = block.share
    of_terms = [[one for one in term.arrays if column in one.axes] for term in share.terms]
    touched: Levels | None = None
    if all(of_terms):
        touched = reduce(np.logical_or, (_is_touched(one[0], column) for one in of_terms))
    if share.inside is not None and column in share.inside.axes:
        inside = _is_touched(share.inside, column)
        touched = inside if touched is None else touched & inside
    found = [] if touched is None else [int(touched.sum())]
    if block.labels is not None and column in block.labels.axes:
        found.append(_of_largest_row(block.labels, column))
    return found


def _is_touched(array: LevelArray, column: str) -> Levels:
    """At which levels of a column an array is not 0 everywhere."""
    numbers = array.numbers
    if isinstance(numbers, Curve):
        return _is_any(numbers.dense(), 0)
    if isinstance(numbers, Tiled):
        place = array.axes.index(column)
        return _is_any(numbers.values, place)[numbers.along[place].dense()]
    return _is_any(numbers, array.axes.index(column))


def _is_any(numbers: NDArray[np.int64], place: int) -> Levels:
    """Along one dimension, where some number is not 0."""
    along = np.moveaxis(numbers, place, 0) != 0
    found: Levels = along.reshape(len(along), -1).any(axis=1)
    return found


def _of_largest_row(labels: LevelArray, column: str) -> int:
    """The most levels of a column that the cells of one row have."""
    place, numbers = labels.axes.index(column), labels.numbers
    if isinstance(numbers, Curve):
        rows, times = numbers.dense()[:, np.newaxis], np.ones(numbers.size, dtype=np.int64)
    elif isinstance(numbers, Tiled):
        rows = np.moveaxis(numbers.values, place, 0).reshape(numbers.values.shape[place], -1)
        times = np.bincount(numbers.along[place].dense(), minlength=len(rows))
    else:
        rows = np.moveaxis(numbers, place, 0).reshape(numbers.shape[place], -1)
        times = np.ones(len(rows), dtype=np.int64)
    found: dict[int, int] = {}
    for row, n in zip(rows, times.tolist(), strict=True):
        for label in np.unique(row[row >= 0]).tolist():
            found[label] = found.get(label, 0) + n
    return max(found.values())
