"""Closed rows that changed: what was paid for them stays paid, whatever cells they are in now.

From such an entry on, what was paid for the changed levels is replaced by one row, the count of
their rows, at a weight that is checked here to cost every one of their cells no less than any of
them had cost. Elsewhere all stays as it was. Written apart from the server's own
(ledger/acceptance.py). Proof: proofs/growth.md, "Accepted changes".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.prices import Price
from accountant.auditor.rows import LevelArray, Share, Term
from accountant.auditor.tables import Row

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
        """What rows cost at the changed levels."""
        return tuple(Row(self._times(one.share, self.levels), one.price) for one in rows)

    def outside(self, rows: Sequence[Row], price: Price) -> tuple[Row, ...]:
        """What rows cost at other levels, and a price for each row of the changed ones."""
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
