"""The loss of a unit with bounded rows at each level of a column, after every charge.

The most expensive cell of each class of levels is bounded by itself, from the rows at that level
(at_level.py), and the largest loss is found from these (unit_rows.py). While it is within what was
charged, no more is needed. Where it is not, the levels that count are bounded better; where their
bounds are as low as cells are dear, the loss is exact. So each charge is proved to cover its rows,
proved not to, or left open, as in cost.py. Proof: proofs/units.md, "The auditor".
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from accountant.auditor.at_level import ByLevel
from accountant.auditor.bound import Bound
from accountant.auditor.boxes import Boxes, Due
from accountant.auditor.cost import Finding, Paid
from accountant.auditor.search import Cells, cells_above, climbed
from accountant.auditor.tables import Row
from accountant.auditor.unit_rows import UnitRows

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
        With a bound by level.
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
        No cell costs more.
    least : int
        Some cell costs this much.
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
            raise ValueError("rows that are not bounded by level")
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
        """What no cell with a level of each segment passes."""
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
