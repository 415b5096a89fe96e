"""What the rows of a history cost, beside what was charged for them: after every single charge.

    cost = largest over cells of  sum over rows of  weight * |coefficient of the row at the cell|

This must never exceed what had been charged so far. The history is followed row by row with a bound
on its most expensive cell (bound.py). While the bound is within what was charged, nothing more need
be known. Where it is not, it is tightened; where that is not enough, every cell that costs more
than was charged at the first of some charges is found (search.py) and followed through them.

So each charge ends up as one of three: proved to cover its rows, proved not to, or, where there are
too many cells to look at, left open and said to be. Proof: proofs/ledger.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from accountant.auditor.bound import Bound
from accountant.auditor.search import Cells, cells_above, climbed
from accountant.auditor.tables import Row, Whole

N_SWEEPS_MAX: Final = 64  # for one charge
GAIN_LEAST: Final = 1 / 32  # of what is wanted; a sweep that gains less is not followed by another
N_AHEAD_MAX: Final = 2**10  # charges looked at together
N_TRIED_MAX: Final = 2**8  # in vain; after so many, a charge that no bound covers is left open
N_CHECKED_MAX: Final = (
    2**8
)  # cells whose cost is added up from all rows, where tables only bound it


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """The rows of one charge, and what was charged altogether once it was made.

    Parameters
    ----------
    seq : int
        The entry's number.
    rows : tuple of Row
        With the weights that the charge added.
    units : int
        In units of 2**-40 epsilon.
    """

    seq: int
    rows: tuple[Row, ...]
    units: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What rows cost.

    Parameters
    ----------
    units : int
        The cost of all of them, or a bound on it that is never too small.
    exact : bool
        Whether it is the cost itself.
    unpaid : int, optional
        The number of the first entry that charges less than a cell had cost by then.
    cost : int, optional
        What that cell had cost by then, in units.
    open : tuple of int
        Numbers of entries for which neither was proved.
    bound : Bound, optional
        With which it was found.
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
        Told now and then how many charges were checked.
    """
    followed = _Followed(paid)
    while followed.n_done < len(paid) and followed.unpaid is None:
        followed.step()
        if watch is not None:
            watch(followed.n_done)
    return followed.finding()


class _Followed:
    """How far a history was followed.

    Attributes
    ----------
    n_done : int
        The number of charges that were looked at.
    bound : Bound
        On what their rows cost.
    least : int
        The best that was found of it.
    """

    def __init__(self, paid: Sequence[Paid]) -> None:
        self._paid = paid
        self.bound = Bound([row for one in paid for row in one.rows])
        # The number of rows after so many charges.
        self._n_rows = np.cumsum([0, *(len(one.rows) for one in paid)]).tolist()
        self._n_ahead = 1
        self._n_to_skip = 0
        self._n_skipped = 0
        self._n_tried = 0
        self._open: list[int] = []
        self.n_done = 0
        self.least = 0
        self.unpaid: tuple[int, int] | None = None  # entry, and what the rows cost by then

    def step(self) -> None:
        """Look at the next charge, and perhaps at some after it."""
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
        self._tighten(charge.units)
        if self.least <= charge.units:
            self.n_done += 1
            return
        self._look_ahead()

    def finding(self) -> Finding:
        """What is known once every charge was looked at."""
        if self.unpaid is not None:
            return Finding(self.least, False, *self.unpaid, tuple(self._open), self.bound)
        exact = self._is_attained()
        return Finding(self.least, exact, open=tuple(self._open), bound=self.bound)

    def _take_in(self, n_charges: int) -> None:
        """Add the rows of charges up to this many."""
        before = self.bound.n_added
        n_rows = self._n_rows[n_charges]
        most = sum(self.bound.rows[place].bound for place in range(before, n_rows))
        self.bound.go_to(n_rows)
        self.least = min(self.least + most, self.bound.value)

    def _tighten(self, wanted: int) -> None:
        """Sweep until the bound is as small as wanted, or will not be soon."""
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

        Cells only ever cost more: whichever costs more than was charged, after one of these
        charges, costs more than was charged at their first once the last is made.
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

    def _follows(self, cells: Cells, first: int, last: int) -> bool:
        """Whether it could be decided, for charges from `first` to `last`, what `cells` cost."""
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
        """Look for a cell that costs too much where not all of them can be looked at."""
        self.bound.go_to(self._n_rows[first + 1])
        cell = climbed(self.bound)
        cost = 0
        for charge in self._paid[: first + 1]:
            cost += sum(int(cell.costs(row)[0]) for row in charge.rows)
            if cost > charge.units:
                self.unpaid = charge.seq, cost
                return

    def _leave_open(self) -> None:
        self._open.append(self._paid[self.n_done].seq)
        self.n_done += 1

    def _summed(self, cells: Cells, n_charges: int) -> Whole:
        """What cells cost, from every row of so many charges."""
        rows = self.bound.rows[: self._n_rows[n_charges]]
        return cells.nothing + sum(cells.costs(row) for row in rows)

    def _is_attained(self) -> bool:
        """Whether some cell costs as much as the bound, after looking for the largest."""
        attained = int(self._summed(climbed(self.bound), len(self._paid))[0])
        if attained < self.least:
            self.bound.sweep()
            attained = self._searched(attained)
        if attained < self.least:
            self._tighten(attained)
            attained = self._searched(attained)
        return attained == self.least

    def _searched(self, attained: int) -> int:
        """What the most expensive cell costs; what some cell does, if there are too many above."""
        cells = cells_above(self.bound, attained)
        if cells is None or cells.n_cells > N_CHECKED_MAX:
            return attained
        if cells.n_cells:
            attained = max(attained, *self._summed(cells, len(self._paid)).tolist())
        self.least = attained
        return attained
