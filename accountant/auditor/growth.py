"""How far a growing table was readable, and that nothing was charged for rows beyond that.

Each entry makes the levels of some periods readable, the first where the last one ended. A row may
be charged if some factor of it is 0 on every level that is not readable yet. What was read of a
period stands as a keyed digest, which only holders of the key can compare.

Proof: proofs/growth.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from accountant.auditor.bodies import Advanced, Charge
from accountant.auditor.rows import LevelArray, Share
from accountant.auditor.statistics import Choice, UnitCount
from accountant.auditor.wrong import Wrong


@dataclass(slots=True)
class Readable:
    """The readable levels of one table's axis.

    Parameters
    ----------
    axis : str
        The axis along which the table grows.
    n_all : int
        How many levels it has.
    n_levels : int
        How many levels are readable, from the first.
    closed : list of (int, int)
        The periods in which they became so.
    """

    axis: str
    n_all: int
    n_levels: int = 0
    closed: list[tuple[int, int]] = field(default_factory=list)

    def advance(self, body: Advanced) -> None:
        """Make more levels readable; Wrong if that leaves a gap, or goes back."""
        for start, end in body.periods:
            if start != self.n_levels:
                raise Wrong(f"a period from level {start} where {self.n_levels} were readable")
            if end > self.n_all:
                raise Wrong(f"a period up to level {end} of {self.n_all}")
            self.n_levels = end
            self.closed.append((start, end))

    def check_closed(self, periods: Sequence[tuple[int, int]]) -> None:
        """Raise Wrong unless these are periods of the table, each once."""
        if len(set(periods)) < len(periods) or not set(periods) <= set(self.closed):
            raise Wrong("changes of what was never closed, or of a period twice")

    def check(self, charge: Charge) -> None:
        """Raise Wrong if a charge is for something beyond the readable levels."""
        if any(isinstance(one, Choice) for one in charge.statistics):
            raise Wrong("a choice on a table that grows: it is about every row")
        if any(isinstance(one, UnitCount) and one.only_cut for one in charge.statistics):
            raise Wrong("units with rows left out, on a table that grows: these change")
        shares = [one.block.share for one in charge.bought]
        shares += [one.share for one in charge.statistics if not isinstance(one, Choice)]
        if not all(map(self._ends_within, shares)):
            raise Wrong(f"rows beyond the {self.n_levels} readable levels of {self.axis}")

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
