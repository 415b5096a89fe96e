"""The cost of a history's rows, compared with what was charged for them, after every charge.

    cost = largest over cells of  sum over rows of  weight * |coefficient of the row at the cell|

This must never exceed what had been charged so far. The history is followed row by row with a bound
on its most expensive cell (bound.py). While the bound is within what was charged, no more is
needed. Where it is not, it is tightened; where that is not enough, all cells are covered by boxes
with bounds of their own, which prove a group of charges together (boxes.py). Where they do not, all
cells that cost more than was charged at the first of a group of charges are found and followed
through the group.

They are found by a search that a bound prunes. Axes are fixed one after another, to every class
that can still lead to such a cell: the sum, over tables, of the largest value with the axes fixed
so far is a bound on all cells with these classes. When every axis is fixed, it is the value itself.
If there are too many cells to examine, the result says so; nothing is left out silently.

So each charge ends in one of three states: proved to cover its rows, proved not to, or, where there
are too many cells to examine, left open and reported as open. Proof: proofs/ledger.md, "The most
expensive cell".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from accountant.auditor.costs.bound import Bound
from accountant.auditor.costs.boxes import Boxes, Due
from accountant.auditor.costs.tables import Indices, Row
from accountant.auditor.noise import Whole
from accountant.auditor.rows import LevelArray, Share

N_FOUND_MAX: Final = 2**14  # cells, also partial ones
N_LOOKED_AT_MAX: Final = 2**21  # candidates at one axis


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells, by the class of each axis, and the value of a sum of tables there.

    Parameters
    ----------
    levels : mapping of str to (n_cells,) ndarray
        A level of each cell on each axis.
    values : (n_cells,) ndarray
        Nowhere below what the rows added so far cost the cell.
    """

    levels: Mapping[str, Indices]
    values: Whole

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.values.size

    @property
    def nothing(self) -> Whole:
        """A zero for each cell."""
        return np.zeros_like(self.values)

    def at(self, places: Indices) -> "Cells":
        """Some of them."""
        levels = {axis: of_axis[places] for axis, of_axis in self.levels.items()}
        return Cells(levels, self.values[places])

    def costs(self, row: Row) -> Whole:
        """The exact cost of one row for each cell."""
        return row.price.of_all(self._share(row.share))

    def _share(self, share: Share) -> Whole:
        total: Whole = np.zeros(self.values.size, dtype=self.values.dtype)
        for term in share.terms:
            product = np.full(self.values.size, term.scale, dtype=self.values.dtype)
            for array in term.arrays:
                product *= self._at_cells(array)
            total += product
        total = np.abs(total)
        return total if share.inside is None else total * self._at_cells(share.inside)

    def _at_cells(self, array: LevelArray) -> Whole:
        return array.at([self.levels[axis] for axis in array.axes])


def cells_above(bound: Bound, threshold: int) -> Cells | None:
    """Every class of cells for which the sum of tables is larger than `threshold`.

    Returns
    -------
    Cells or None
        None if there are too many to examine.
    """
    classes: dict[str, Indices] = {}
    for axis, of_axis in bound.layout.classes.items():
        distinguished = of_axis.distinguished(bound.n_added)
        classes[axis] = distinguished[bound.most(axis)[distinguished] > threshold]
    order = sorted(classes, key=lambda axis: (classes[axis].size, axis))
    tables = [_Partial(bound, number, order) for number in bound.in_use]
    found: dict[str, Indices] = {}
    n_first = int(bound.value > threshold)
    values: Whole = np.full(n_first, bound.value, dtype=bound.layout.dtype)
    for axis in order:
        ways = classes[axis]
        if values.size * ways.size > N_LOOKED_AT_MAX:
            return None
        ahead = np.repeat(values[:, np.newaxis], ways.size, axis=1)
        for table in tables:
            if axis in table.axes:
                ahead += table.gain(axis, found, ways)
        came_from, chosen = np.nonzero(ahead > threshold)
        if came_from.size > N_FOUND_MAX:
            return None
        values = ahead[came_from, chosen]
        found = {name: places[came_from] for name, places in found.items()}
        found[axis] = ways[chosen]
    levels = {axis: bound.layout.classes[axis].levels[places] for axis, places in found.items()}
    return Cells(levels, values)


def climbed(bound: Bound) -> Cells:
    """One cell of high cost: the best class of each axis in turn, until none is better."""
    classes = bound.layout.classes
    chosen = {axis: int(np.argmax(bound.most(axis))) for axis in classes}
    is_better = True
    while is_better:
        is_better = False
        for axis in classes:
            costs = bound.costs_along(axis, chosen)
            best = int(np.argmax(costs))
            if costs[best] > costs[chosen[axis]]:
                chosen[axis], is_better = best, True
    levels = {axis: classes[axis].levels[[place]] for axis, place in chosen.items()}
    return Cells(levels, np.full(1, bound.value, dtype=bound.layout.dtype))


class _Partial:
    """A table's largest values once its first axes are fixed, in the order of the search."""

    def __init__(self, bound: Bound, number: int, order: Sequence[str]) -> None:
        tilted = bound.tables[number]
        places = sorted(
            range(len(tilted.table.axes)), key=lambda p: order.index(tilted.table.axes[p])
        )
        self.axes = [tilted.table.axes[place] for place in places]
        self._label = [tilted.table.label[place] for place in places]
        left = np.transpose(tilted.values, places)
        self._most = [left]
        for place in reversed(places):
            left = _array((left + bound.largest(number, place)).max(axis=-1), left)
            self._most.insert(0, left)

    def gain(self, axis: str, fixed: Mapping[str, Indices], ways: Indices) -> Whole:
        """The change of the bound when an axis is fixed: a row for each cell, a column per way."""
        place = self.axes.index(axis)
        names = self.axes[:place]
        here = tuple(
            label[fixed[name]] for label, name in zip(self._label[:place], names, strict=True)
        )
        before = _array(self._most[place][here], self._most[place])
        after = self._most[place + 1][here]
        gained: Whole = after[..., self._label[place][ways]] - before[..., np.newaxis]
        return gained


def _array(found: Whole | int, like: Whole) -> Whole:
    """An array, also where the result is a single Python integer."""
    return np.asarray(found, dtype=like.dtype)


N_SWEEPS_MAX: Final = 64  # for one charge
GAIN_LEAST: Final = 1 / 32  # of the gap to close; after a sweep that gains less there is no other
N_BOXED_MAX: Final = 2**21  # rows times boxes, looked at for some charges
N_BOXES_MAX: Final = 2**9  # boxes looked at for them
BOXED_AHEAD_MAX: Final = 1 / 8  # of the charges before, that are proved together
N_BOXED_IN_VAIN_MAX: Final = 2**23  # for all charges that were not proved by it
N_BOXED_AT_THE_END_MAX: Final = 2**19  # for the cost of all rows
N_AHEAD_MAX: Final = 2**10  # charges examined together
N_TRIED_MAX: Final = 2**8  # searches in vain, after which a charge above its bound is left open
N_CHECKED_MAX: Final = (
    2**8
)  # cells whose cost is added up from all rows, where tables only bound it


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """The rows of one charge, and the total that was charged up to and including it.

    Parameters
    ----------
    seq : int
        The entry's number.
    rows : tuple of Row
        The charged rows, with the weights that the charge added.
    units : int
        In units of 2**-40 epsilon; never less than after the charge before (`book.py`
        refuses an entry that lowers a total).
    """

    seq: int
    rows: tuple[Row, ...]
    units: int


@dataclass(frozen=True, slots=True)
class Finding:
    """The cost of rows.

    Parameters
    ----------
    units : int
        The cost of all of them, or a bound that is never too small.
    exact : bool
        Whether the total is the cost itself, not only a bound on it.
    unpaid : int, optional
        The number of the first entry after which a cell had cost more than was charged.
    cost : int, optional
        The cost of that cell up to then, in units.
    open : tuple of int
        Numbers of the entries for which neither was proved.
    bound : Bound, optional
        The bound with which it was found.
    """

    units: int
    exact: bool
    unpaid: int | None = None
    cost: int | None = None
    open: tuple[int, ...] = ()
    bound: Bound | None = field(default=None, compare=False, repr=False)


def follow(paid: Sequence[Paid], watch: Callable[[int], None] | None = None) -> Finding:
    """Check every charge of one table, in order; stop at the first that is too small.

    Parameters
    ----------
    paid : sequence of Paid
    watch : callable, optional
        Called from time to time with the number of charges checked.
    """
    followed = _Followed(paid)
    while followed.n_done < len(paid) and followed.unpaid is None:
        followed.step()
        if watch is not None:
            watch(followed.n_done)
    return followed.finding()


class _Followed:
    """The state of following a history.

    Attributes
    ----------
    n_done : int
        The number of charges that were checked.
    bound : Bound
        The bound on the cost of their rows.
    least : int
        The smallest value of it that was found.
    """

    def __init__(self, paid: Sequence[Paid]) -> None:
        self._paid = paid
        self.bound = Bound([row for one in paid for row in one.rows])
        # The number of rows after each number of charges.
        self._n_rows = np.cumsum([0, *(len(one.rows) for one in paid)]).tolist()
        self._n_ahead = 1
        self._n_to_skip = 0
        self._n_skipped = 0
        self._n_tried = 0
        self._boxes: Boxes | None = None  # once the bound was not enough
        self._n_boxed_ahead = 1
        self._n_boxed_in_vain = 0
        self._open: list[int] = []
        self.n_done = 0
        self.least = 0
        self.unpaid: tuple[int, int] | None = None  # entry, and what the rows cost by then

    def step(self) -> None:
        """Check the next charge, and perhaps some after it."""
        charge = self._paid[self.n_done]
        self._take_in(self.n_done + 1)
        if self.least <= charge.units:
            self.n_done += 1
            self._n_skipped = self._n_to_skip = 0
            return
        if self._n_to_skip > 0 or self._n_tried == N_TRIED_MAX:
            self._n_to_skip -= 1
            self._leave_open()
            return
        if self._boxes is not None and self._is_boxed(self._boxes):
            return
        self._tighten(charge.units)
        if self.least <= charge.units:
            self.n_done += 1
            return
        if self._boxes is None:
            self._boxes = Boxes(self.bound.rows, self.bound.layout)
            if self._is_boxed(self._boxes):
                return
        self._look_ahead()

    def finding(self) -> Finding:
        """The finding once every charge was checked."""
        if self.unpaid is not None:
            return Finding(self.least, False, *self.unpaid, tuple(self._open), self.bound)
        exact = self._is_attained()
        return Finding(self.least, exact, open=tuple(self._open), bound=self.bound)

    def _take_in(self, n_charges: int) -> None:
        """Add the rows of charges up to this many."""
        before = self._n_rows[self.n_done]
        n_rows = self._n_rows[n_charges]
        most = sum(self.bound.rows[place].bound for place in range(before, n_rows))
        self.bound.go_to(n_rows)
        self.least = min(self.least + most, self.bound.value)

    def _tighten(self, wanted: int) -> None:
        """Sweep until the bound is as small as wanted, or sweeps gain too little."""
        for _ in range(N_SWEEPS_MAX):
            before = self.bound.value
            self.bound.sweep()
            missing = self.bound.value - wanted
            if missing <= 0:
                self.bound.gather()
                break
            if before - self.bound.value <= GAIN_LEAST * missing:
                break
        self.least = min(self.least, self.bound.value)

    def _look_ahead(self) -> None:
        """Follow every cell that costs more than the next charge through some charges.

        The cost of a cell never falls: a cell that costs more than was charged after any of these
        charges costs, after the last, more than was charged at the first.
        """
        first = self.n_done
        while True:
            last = min(first + self._n_ahead, len(self._paid))
            self.bound.go_to(self._n_rows[last])
            cells = cells_above(self.bound, self._paid[first].units)
            if cells is not None and self._follows(cells, first, last):
                self._n_ahead = min(2 * self._n_ahead, N_AHEAD_MAX)
                return
            if self._n_ahead == 1:
                break
            self._n_ahead = max(1, self._n_ahead // 4)
        self._find_unpaid(first)
        if self.unpaid is None:
            self._n_tried += 1
            self._n_skipped = min(2 * self._n_skipped + 1, N_AHEAD_MAX)
            self._n_to_skip = self._n_skipped
            self._leave_open()

    def _is_boxed(self, boxes: Boxes) -> bool:
        """Whether boxes show that no cell costs more than the next charge, and those after it."""
        if not boxes.is_able or self._n_boxed_in_vain > N_BOXED_IN_VAIN_MAX:
            return False
        before = boxes.n_looked_at
        while True:
            due = self._due(self._n_boxed_ahead)
            n_proved = boxes.proved(due, min(N_BOXED_MAX, N_BOXES_MAX * due[-1].n_rows))
            if n_proved == len(due):
                self._n_boxed_ahead = 2 * n_proved
                break
            self._n_boxed_ahead = max(1, n_proved, len(due) // 4)
            if n_proved or len(due) == 1:
                break
        if n_proved:
            self.least = due[n_proved - 1].units
            self.n_done += n_proved
        else:
            self._n_boxed_in_vain += boxes.n_looked_at - before
        if n_proved in {0, len(due)}:
            self.least = min(self.least, boxes.value)
        return n_proved > 0

    def _due(self, n_charges: int) -> list[Due]:
        """The totals of the next charges, not too many for the rows before them."""
        n_ahead = min(n_charges, max(1, int(BOXED_AHEAD_MAX * self.n_done)))
        ahead = range(self.n_done, min(self.n_done + n_ahead, len(self._paid)))
        return [Due(self._n_rows[place + 1], self._paid[place].units) for place in ahead]

    def _follows(self, cells: Cells, first: int, last: int) -> bool:
        """Whether the charges from `first` to `last` could be decided from the costs of `cells`."""
        rows = [self._paid[place].rows for place in range(first, last)]
        costs = cells.values - sum(cells.costs(row) for of_charge in rows for row in of_charge)
        for place, of_charge in zip(range(first, last), rows, strict=True):
            costs = costs + sum(cells.costs(row) for row in of_charge)
            above = np.flatnonzero(costs > self._paid[place].units)
            if above.size > N_CHECKED_MAX:
                return False
            if above.size:
                costs[above] = self._summed(cells.at(above), place + 1)
                if int(costs[above].max()) > self._paid[place].units:
                    self.unpaid = self._paid[place].seq, int(costs[above].max())
                    break
        self.n_done = last
        self.least = max(self._paid[first].units, int(costs.max(initial=0)))
        return True

    def _find_unpaid(self, first: int) -> None:
        """Look for a cell that costs too much where not all cells can be examined."""
        self.bound.go_to(self._n_rows[first + 1])
        for cell in self._expensive():
            cost = 0
            for charge in self._paid[: first + 1]:
                cost += sum(int(cell.costs(row)[0]) for row in charge.rows)
                if cost > charge.units:
                    self.unpaid = charge.seq, cost
                    return

    def _expensive(self) -> list[Cells]:
        """Cells of high cost, one at a time."""
        found = [climbed(self.bound)]
        if self._boxes is not None and self._boxes.is_able:
            levels = {axis: np.array([level]) for axis, level in self._boxes.cell().items()}
            found.append(Cells(levels, found[0].values))
        return found

    def _leave_open(self) -> None:
        self._open.append(self._paid[self.n_done].seq)
        self.n_done += 1

    def _summed(self, cells: Cells, n_charges: int) -> Whole:
        """The cost of cells, added up from every row of this many charges."""
        rows = self.bound.rows[: self._n_rows[n_charges]]
        return cells.nothing + sum(cells.costs(row) for row in rows)

    def _is_attained(self) -> bool:
        """Whether some cell costs as much as the bound, after looking for the largest."""
        attained = self._attained()
        if attained < self.least:
            self.bound.sweep()
            attained = self._searched(attained)
        if attained < self.least:
            self._tighten(attained)
            attained = self._searched(attained)
        if attained < self.least and self._boxes is not None and self._boxes.is_able:
            self._boxes.proved([Due(self._n_rows[-1], attained)], N_BOXED_AT_THE_END_MAX)
            self.least = min(self.least, self._boxes.value)
            attained = max(attained, self._attained())
        return attained == self.least

    def _attained(self) -> int:
        """The cost of some cell, as high as was easily found."""
        n_charges = len(self._paid)
        return max(int(self._summed(cell, n_charges)[0]) for cell in self._expensive())

    def _searched(self, attained: int) -> int:
        """The cost of the most expensive cell; or of some cell, if too many cost more."""
        cells = cells_above(self.bound, attained)
        if cells is None or cells.n_cells > N_CHECKED_MAX:
            return attained
        if cells.n_cells:
            attained = max(attained, *self._summed(cells, len(self._paid)).tolist())
        self.least = attained
        return attained
