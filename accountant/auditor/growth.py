"""Checks a table that grows: how far it was readable, and which closed rows changed.

Each entry makes the levels of some periods readable, the first where the last one ended. A row may
be charged if some factor of it is 0 on every level that is not readable yet. What was read of a
period stands as a keyed digest, which only holders of the key can compare.

Where closed rows changed, what was paid for them stays paid, whatever cells they are in now. From
such an entry on, what was paid for the levels that ever changed, and for those that were not
readable when rows first changed, is replaced by one row, the count of their rows, at a weight that
is checked here to cost every one of their cells no less than any of them had cost. Elsewhere all
stays as it was.

Written apart from the server's own (ledger/history/table_history.py and changed_rows.py). Proof:
proofs/growth.md, "Accepted changes" for the second.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.bodies import Advanced, Charge
from accountant.auditor.costs import Row
from accountant.auditor.fields import Wrong
from accountant.auditor.noise import Price
from accountant.auditor.rows import LevelArray, Share, Term
from accountant.auditor.statistics import Choice, UnitCount


@dataclass(slots=True)
class Readable:
    """The readable levels of one table's axis.

    Parameters
    ----------
    axis : str
        The axis along which the table grows.
    n_all : int
        The number of levels of the axis, readable or not.
    n_levels : int
        How many levels are readable, from the first.
    closed : list of (int, int)
        The periods in which they became so.
    unsettled : list of (int, int)
        Levels, from the first to before the second, at which a unit may have had other rows.
    """

    axis: str
    n_all: int
    n_levels: int = 0
    closed: list[tuple[int, int]] = field(default_factory=list)
    unsettled: list[tuple[int, int]] = field(default_factory=list)

    def advance(self, body: Advanced) -> None:
        """Make more levels readable; Wrong if that leaves a gap, or goes back."""
        for start, end in body.periods:
            if start != self.n_levels:
                raise Wrong(
                    f"the period starts at level {start}, but {self.n_levels} levels were readable"
                )
            if end > self.n_all:
                raise Wrong(f"the period ends at level {end}, but there are {self.n_all} levels")
            self.n_levels = end
            self.closed.append((start, end))

    def check_closed(self, periods: Sequence[tuple[int, int]]) -> None:
        """Raise Wrong unless these are periods of the table, each once."""
        if len(set(periods)) < len(periods) or not set(periods) <= set(self.closed):
            raise Wrong("the changes name a period that was never closed, or one period twice")

    def unsettle(self, periods: Sequence[tuple[int, int]]) -> None:
        """Note that the rows of closed periods changed; Wrong as `check_closed`."""
        self.check_closed(periods)
        self.unsettled += [*periods, (self.n_levels, self.n_all)]

    def check(self, charge: Charge) -> None:
        """Raise Wrong if a charge is for something beyond the readable levels."""
        if any(isinstance(one, Choice) for one in charge.statistics):
            raise Wrong("a choice covers every row, so it cannot be made on a table that grows")
        if any(isinstance(one, UnitCount) and one.only_cut for one in charge.statistics):
            raise Wrong(
                "units with rows left out cannot be counted on a table that grows, since "
                "they change"
            )
        shares = [one.block.share for one in charge.bought]
        shares += [one.share for one in charge.statistics if not isinstance(one, Choice)]
        if not all(map(self._ends_within, shares)):
            raise Wrong(
                f"the charged rows reach beyond the {self.n_levels} readable levels of {self.axis}"
            )

    def _ends_within(self, share: Share) -> bool:
        """Whether every term is 0 beyond the readable levels, or no cell beyond is inside."""
        if self.n_levels == self.n_all:
            return True
        if share.inside is not None and self._is_zero_beyond(share.inside):
            return True
        return all(any(map(self._is_zero_beyond, term.arrays)) for term in share.terms)

    def _is_zero_beyond(self, array: LevelArray) -> bool:
        if self.axis not in array.axes:
            return False
        place = array.axes.index(self.axis)
        places = [np.arange(size) for size in array.shape]
        places[place] = places[place][self.n_levels :]
        return not array.at(np.ix_(*places)).any()


Levels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChangedLevels:
    """Some levels of an axis.

    Parameters
    ----------
    axis : str
    levels : (n_levels,) ndarray of int64
        1 for a changed level, 0 for others.
    """

    axis: str
    levels: Levels

    @classmethod
    def of(cls, axis: str, n_levels: int, periods: Sequence[tuple[int, int]]) -> "ChangedLevels":
        """The levels of some periods."""
        levels = np.zeros(n_levels, dtype=np.int64)
        for start, end in periods:
            levels[start:end] = 1
        return cls(axis, levels)

    def are_of(self, share: Share) -> bool:
        """Whether rows have a coefficient at some changed level."""
        if share.inside is not None and self._is_zero(share.inside):
            return False
        return not all(any(map(self._is_zero, term.arrays)) for term in share.terms)

    def inside(self, rows: Sequence[Row]) -> tuple[Row, ...]:
        """The cost of rows at the changed levels."""
        return tuple(Row(self._times(one.share, self.levels), one.price) for one in rows)

    def outside(self, rows: Sequence[Row], price: Price) -> tuple[Row, ...]:
        """The cost of rows at other levels, and a price for each row of the changed levels."""
        flat = Row(Share((Term(1, (self._array(self.levels),)),), None), price)
        others = tuple(Row(self._times(one.share, 1 - self.levels), one.price) for one in rows)
        return (*others, flat)

    def _is_zero(self, array: LevelArray) -> bool:
        """Whether an array is 0 at every changed level."""
        if self.axis not in array.axes:
            return False
        places = [np.arange(size) for size in array.shape]
        place = array.axes.index(self.axis)
        places[place] = np.flatnonzero(self.levels)
        return not array.at(np.ix_(*places)).any()

    def _times(self, share: Share, levels: Levels) -> Share:
        """The cost of rows where `levels` is 1, and 0 elsewhere."""
        terms = []
        for term in share.terms:
            arrays = [one for one in term.arrays if self.axis not in one.axes]
            own = [one for one in term.arrays if self.axis in one.axes]
            cut = [self._cut(one, levels) for one in own] or [self._array(levels)]
            terms.append(Term(term.scale, (*arrays, *cut)))
        return Share(tuple(terms), share.inside)

    def _cut(self, array: LevelArray, levels: Levels) -> LevelArray:
        if array.axes == (self.axis,):
            return self._array(array.at((np.arange(levels.size),)) * levels)
        dense = array.at(np.ix_(*(np.arange(size) for size in array.shape)))
        shape = [-1 if name == self.axis else 1 for name in array.axes]
        return LevelArray(array.axes, dense * levels.reshape(shape))

    def _array(self, numbers: Levels) -> LevelArray:
        return LevelArray((self.axis,), numbers)
