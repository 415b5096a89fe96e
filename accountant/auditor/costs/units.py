"""The loss of a unit whose rows are bounded, in all and at each level of a column.

How often a row counts:

    no bound by level    all rows of a unit in one cell: a row counts k times, its square k**2 times
    m at each level      a row counts once; its square as often as a unit has rows in it

The largest loss of a unit is then found from the levels' most expensive cells. It is the least,
over prices t of a row, of  k t + m (the sum over levels of the excess of the level's cost over t).

After every charge, the most expensive cell of each class of levels is bounded by itself, from the
rows as they are at that level; a row that costs none of these cells anything is left out. While the
largest loss is within what was charged, no more is needed. Where it is not, the levels that count
are bounded better; where their bounds are as low as cells are dear, the loss is exact. So each
charge is proved to cover its rows, proved not to, or left open, as in history.py.
Proof: proofs/units.md, "The auditor".
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.costs.bound import Bound
from accountant.auditor.costs.boxes import Boxes, Due
from accountant.auditor.costs.columns import ColumnCost
from accountant.auditor.costs.history import Cells, Finding, Paid, cells_above, climbed
from accountant.auditor.costs.tables import AxisClasses, Row, classes_of
from accountant.auditor.rows import Block, Curve, LevelArray, Share, Term, Tiled, share_of

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
        The largest number of rows of a unit in all.
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
            raise ValueError("the rows of a unit are not bounded by level")
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


Keys = tuple[int, ...]


class ByLevel:
    """The rows of a history at every level of a column.

    Parameters
    ----------
    rows : sequence of Row
    column : str

    Attributes
    ----------
    levels : list of int
        One for each class of levels that no row tells apart; or the ends of the cheapest part
        between them (tables.py).
    ends : list of (int, int)
        For each segment of levels, the classes of its first and last level.
    n_levels : list of int
        For each segment, how many levels it has.
    """

    def __init__(self, rows: Sequence[Row], column: str, n_rows: int) -> None:
        self._rows = rows
        self._column = column
        classes = classes_of([row.share.arrays for row in rows]).get(column)
        self._keys: dict[LevelArray, list[int]] = {}
        self._shares: dict[tuple[Share, Keys], Share] = {}
        self._arrays: dict[tuple[LevelArray, int], LevelArray] = {}
        if classes is None:  # every level costs the same, and there are enough of them
            self.levels, self.ends, self.n_levels = [0], [(0, 0)], [n_rows]
            return
        self.levels = classes.levels.tolist()
        self.ends = list(zip(*classes.ends.tolist(), strict=True))
        self.n_levels = np.diff(classes.segments, append=classes.n_levels).tolist()
        self._read_keys(classes)

    def _read_keys(self, classes: AxisClasses) -> None:
        arrays = dict.fromkeys(array for row in self._rows for array in row.share.arrays)
        for array in arrays:
            if self._column in array.axes:
                keys = array.keys(self._column)
                at = keys.at(classes.levels) if isinstance(keys, Curve) else keys[classes.levels]
                self._keys[array] = at.tolist()

    def rows_at(self, place: int) -> tuple[list[Row], list[int]]:
        """The rows at one class, and the place of each in the history."""
        found, places = [], []
        for number, row in enumerate(self._rows):
            share = self._share(row.share, place)
            if share.bound:
                found.append(row if share is row.share else Row(share, row.price))
                places.append(number)
        return found, places

    def _share(self, share: Share, place: int) -> Share:
        along = [array for array in share.arrays if array in self._keys]
        if not along:
            return share
        name = share, tuple(self._keys[array][place] for array in along)
        known = self._shares.get(name)
        if known is None:
            known = self._shares[name] = self._restricted(share, place)
        return known

    def _restricted(self, share: Share, place: int) -> Share:
        terms = [self._term(term, place) for term in share.terms]
        if share.inside is None:
            return share_of(terms, None)
        inside = self._array(share.inside, place)
        if isinstance(inside, int):
            return share_of(terms if inside else [], None)
        if inside.is_constant:
            return share_of(terms if inside.ends[0] else [], None)
        return share_of(terms, inside)

    def _term(self, term: Term, place: int) -> Term:
        scale, arrays = term.scale, []
        for array in term.arrays:
            found = self._array(array, place)
            if isinstance(found, int):
                scale *= found
            else:
                arrays.append(found)
        return Term(scale, tuple(arrays))

    def _array(self, array: LevelArray, place: int) -> LevelArray | int:
        """An array at a class of the column: over its other axes, or a number."""
        if array not in self._keys:
            return array
        key = self._keys[array][place]
        if len(array.axes) == 1:
            return key
        known = self._arrays.get((array, key))
        if known is None:
            known = self._arrays[array, key] = self._sliced(array, place)
        return known

    def _sliced(self, array: LevelArray, place: int) -> LevelArray:
        dimension = array.axes.index(self._column)
        others = array.axes[:dimension] + array.axes[dimension + 1 :]
        numbers = array.numbers
        if isinstance(numbers, Curve):
            raise TypeError("a curve must lie along one axis")
        if isinstance(numbers, Tiled):
            values = np.asarray(numbers.values.take(self._keys[array][place], axis=dimension))
            along = numbers.along[:dimension] + numbers.along[dimension + 1 :]
            return LevelArray(others, Tiled(along, values))
        return LevelArray(others, np.asarray(numbers.take(self.levels[place], axis=dimension)))


N_SWEEPS_MAX: Final = 64  # for one level after one charge
GAIN_LEAST: Final = 1 / 32  # of the gap to close; after a sweep that gains less there is no other
N_KNOWN_MAX: Final = 8  # dear cells of a level, whose costs are added up as rows are
N_CHECKED_MAX: Final = 2**8  # cells whose cost is added up from all rows
N_BOXED_MAX: Final = 2**19  # rows times boxes, looked at for one level after one charge


def follow_levels(
    paid: Sequence[Paid], unit: UnitRows, watch: Callable[[int], None] | None = None
) -> Finding:
    """Check every charge of one table, in order; stop at the first that is too small.

    Parameters
    ----------
    paid : sequence of Paid
    unit : UnitRows
        The bounds on a unit's rows, with a bound by level.
    watch : callable, optional
        Called from time to time with the number of charges checked.
    """
    followed = _Followed(paid, unit)
    found = None
    for n_done, charge in enumerate(paid, start=1):
        found = followed.after(n_done, charge)
        if found is not None:
            break
        if watch is not None:
            watch(n_done)
    return followed.finding(found)


class _Level:
    """One class of levels.

    Attributes
    ----------
    most : int
        An upper bound on the cost of every cell.
    least : int
        A cost that some cell reaches.
    """

    def __init__(self, rows: Sequence[Row], places: Sequence[int]) -> None:
        self._rows, self._places = rows, places
        self._bound = Bound(rows)
        self._boxes: Boxes | None = None
        self._known: list[Cells] = []  # the latest last, with what each has cost
        self.most = self.least = 0
        self.is_examined = True

    def go_to(self, n_rows: int) -> None:
        """Take in those of the first rows of the history that cost this level anything."""
        before, after = self._bound.n_added, bisect_left(self._places, n_rows)
        if before == after:
            return
        new = self._rows[before:after]
        self._bound.go_to(after)
        self.most = min(self.most + sum(row.bound for row in new), self._bound.value)
        self._known = [
            replace(one, values=one.values + sum(one.costs(row) for row in new))
            for one in self._known
        ]
        self.least = max((int(one.values[0]) for one in self._known), default=0)
        self.is_examined = self.most == self.least

    def examine(self) -> None:
        """Find what the most expensive cell costs, or come as close to it as is easy."""
        self.is_examined = True
        self._attain(climbed(self._bound))
        for _ in range(N_SWEEPS_MAX):
            before, gap = self._bound.value, self.most - self.least
            if not gap:
                return
            self._bound.sweep()
            self._limit(self._bound.value)
            if before - self._bound.value <= GAIN_LEAST * gap:
                break
        self._bound.gather()
        self._limit(self._bound.value)
        self._attain(climbed(self._bound))
        if self.most == self.least:
            return
        cells = cells_above(self._bound, self.least)
        if cells is not None and cells.n_cells <= N_CHECKED_MAX:
            if cells.n_cells:
                self._attain(cells)
            self._limit(self.least)
            return
        self._look_in_boxes()

    def _look_in_boxes(self) -> None:
        if self._boxes is None:
            self._boxes = Boxes(self._rows, self._bound.layout)
        if self._boxes.is_able:
            self._boxes.proved([Due(self._bound.n_added, self.least)], N_BOXED_MAX)
            self._limit(self._boxes.value)

    def _limit(self, most: int) -> None:
        self.most = min(self.most, most)

    def _attain(self, cells: Cells) -> None:
        """Note the dearest of some cells, if no cell is known to cost more."""
        rows = self._rows[: self._bound.n_added]
        costs = cells.nothing + sum(cells.costs(row) for row in rows)
        dearest = int(np.argmax(costs))
        if int(costs[dearest]) > self.least:
            self.least = int(costs[dearest])
            one = replace(cells.at(np.array([dearest])), values=costs[[dearest]])
            self._known = [*self._known, one][-N_KNOWN_MAX:]


class _Followed:
    """The levels of a history, and what they cost after some of its charges."""

    def __init__(self, paid: Sequence[Paid], unit: UnitRows) -> None:
        if unit.at_level is None:
            raise ValueError("the rows of a unit are not bounded by level")
        self._unit = unit
        self._rows = [row for one in paid for row in one.rows]
        self._n_rows = np.cumsum([0, *(len(one.rows) for one in paid)]).tolist()
        self._along = ByLevel(self._rows, unit.at_level.column, unit.n_rows)
        self._levels = [
            _Level(*self._along.rows_at(place)) for place in range(len(self._along.levels))
        ]
        self._open: list[int] = []

    def after(self, n_charges: int, charge: Paid) -> tuple[int, int] | None:
        """The charge's entry and the loss of a unit, if that is more than was charged."""
        for level in self._levels:
            level.go_to(self._n_rows[n_charges])
        while self._most() > charge.units:
            if not self._examine():
                break
        else:
            return None
        attained = self._least()
        if attained > charge.units:
            return charge.seq, attained
        self._open.append(charge.seq)
        return None

    def finding(self, unpaid: tuple[int, int] | None) -> Finding:
        """The finding once every charge was checked, or one was found to be too small."""
        bound = Bound(self._rows)
        if unpaid is not None:
            return Finding(self._most(), False, *unpaid, tuple(self._open), bound)
        while self._most() > self._least() and self._examine():
            pass
        exact = self._most() == self._least()
        return Finding(self._most(), exact, open=tuple(self._open), bound=bound)

    def _segments(self) -> list[int]:
        """For each segment, an upper bound on the cost of every cell with one of its levels."""
        most = [level.most for level in self._levels]
        return [max(most[first], most[last]) for first, last in self._along.ends]

    def _most(self) -> int:
        return self._unit.largest_loss(self._segments(), self._along.n_levels)

    def _least(self) -> int:
        """What some unit has lost: of levels that differ, only the two ends are known."""
        costs, n_levels = [], []
        for (first, last), n in zip(self._along.ends, self._along.n_levels, strict=True):
            ends = [(first, n)] if first == last else [(first, 1), (last, 1)]
            costs += [self._levels[place].least for place, _ in ends]
            n_levels += [size for _, size in ends]
        return self._unit.largest_loss(costs, n_levels)

    def _examine(self) -> bool:
        """Examine the dearest level that was not, since its last row; False if none counts."""
        price = self._unit.price(self._segments(), self._along.n_levels)
        left = [one for one in self._levels if not one.is_examined and one.most >= price]
        if left:
            max(left, key=lambda level: level.most).examine()
        return bool(left)
