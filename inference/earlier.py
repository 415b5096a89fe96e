"""Estimates from a history as it was: what was promised before this process began.

An estimator combines a limited number of rows, and rows that are bought later may take the places
of those that an earlier answer rested on. An estimator remembers its answers; one that begins with
a long history remembers none, and looks back here. What an earlier history says is still an
estimate.

Nothing here chooses among estimates.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from cube.block import QueryBlock
from cube.measurement import Measurement
from inference.block_estimates import RowEstimates
from inference.history import History

N_KEPT: Final = 8  # histories: each has an estimator with workspaces of its own


class Estimates(Protocol):
    """What is asked for estimates from one history."""

    def further(self, measurements: Sequence[Measurement]) -> "Estimates":
        """Estimates from the same history with more measurements."""
        ...

    def estimate(self, block: QueryBlock, confidence: float, half_width: float) -> RowEstimates:
        """The posterior of each row of a block."""
        ...


class EarlierHistories:
    """The beginnings of one history, each with an estimator. For one thread.

    Parameters
    ----------
    begun : callable
        Makes an estimator of no measurements. It holds no estimator, which would hold itself so.
    n_opened_with : int, optional
        How many measurements were there at first. Later ones are not looked back to.
    """

    def __init__(
        self,
        begun: Callable[[], Estimates],
        n_opened_with: int | None = None,
    ) -> None:
        self.n_opened_with = n_opened_with
        self._begun = begun
        self._kept: OrderedDict[int, Estimates] = OrderedDict()

    def begin_with(self, n_measurements: int) -> None:
        """Note how many measurements were there at first, unless that was noted before."""
        if self.n_opened_with is None:
            self.n_opened_with = n_measurements

    def estimates(
        self,
        history: History,
        places: Sequence[int | None],
        block: QueryBlock,
        confidence: float,
        half_width: float,
    ) -> Iterator[RowEstimates]:
        """What the history up to each place says, one after the other.

        Parameters
        ----------
        history : History
        places : sequence of int
            Of measurements; those that nothing was forgotten since are left out.
        block : QueryBlock
        confidence : float
        half_width : float
        """
        for place in dict.fromkeys(places):
            if place is not None and place + 1 < (self.n_opened_with or 0):
                yield self._as_of(history, place).estimate(block, confidence, half_width)

    def _as_of(self, history: History, place: int) -> Estimates:
        known = self._kept.pop(place, None)
        if known is None:
            # From the nearest beginning that is known: of a long history it is most of the way.
            nearest = max((one for one in self._kept if one < place), default=None)
            start = self._begun() if nearest is None else self._kept[nearest]
            first = 0 if nearest is None else nearest + 1
            known = start.further([history[one] for one in range(first, place + 1)])
        self._kept[place] = known
        while len(self._kept) > N_KEPT:
            self._kept.popitem(last=False)
        return known
