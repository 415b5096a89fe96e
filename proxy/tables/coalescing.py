"""The queue of requests that lack something of one table: one leads, and buys for the others too.

Each payer has a queue. The request that leads plans a purchase for itself and for those that wait
behind it and have no cap of their own. They would otherwise plan one after the other, each on what
the one before had bought. Requests of different payers do not wait for each other. Nothing here
knows what a purchase is.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from accountant.ledger.limits import Payer
from cube.pace import checkpoint, seconds_left, waiting
from cube.refusals import SourceUnavailable
from inference.block_estimates import RowEstimates
from planner.measuring.choose import meets
from planner.workload import Wanted

WAIT_SECONDS_MAX: Final = 60.0  # else a disk that hangs would hold every thread
N_COMPANIONS_MAX: Final = 32  # served together by one that leads


@dataclass(slots=True, eq=False)
class PendingRequest:
    """What one request wants of one table, how well that is known, and what it has cost so far.

    Parameters
    ----------
    wanted : tuple of Wanted
    payer : Payer
    cap : Fraction, optional
        The most that all of it may cost. What has a cap is bought alone.
    """

    wanted: tuple[Wanted, ...]
    payer: Payer
    cap: Fraction | None
    known: Sequence[RowEstimates] = ()
    epsilons: list[Fraction] = field(init=False)
    was_known: list[bool] = field(init=False)
    is_alone: bool = field(init=False)
    n_overtaken: int = 0
    leads: bool = False
    called: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.epsilons = [Fraction(0)] * len(self.wanted)
        self.was_known = [True] * len(self.wanted)
        self.is_alone = self.cap is not None

    @property
    def is_met(self) -> bool:
        """Whether all of it is known as well as it is wanted."""
        return all(
            meets(rows, one.target) for rows, one in zip(self.known, self.wanted, strict=True)
        )

    @property
    def left(self) -> Fraction | None:
        """What it may still cost."""
        return None if self.cap is None else self.cap - sum(self.epsilons, Fraction(0))


class PurchaseQueue:
    """The requests of one table that lack something, in a queue for each payer. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[Payer, list[PendingRequest]] = {}
        """The requests that wait, for each payer with a request that leads."""

    @property
    def n_waiting(self) -> int:
        """The number of requests that wait for one that leads, and have not joined it yet."""
        with self._lock:
            return sum(map(len, self._queues.values()))

    @property
    def is_led(self) -> bool:
        """Whether a request leads just now."""
        return bool(self._queues)

    def leads(self, need: PendingRequest) -> bool:
        """Wait until the request leads (True), or another has led for it (False).

        A request that leads must `pass_on`.

        Raises
        ------
        SourceUnavailable
            If that takes too long.
        """
        with self._lock:
            waiting_here = self._queues.get(need.payer)
            need.leads = waiting_here is None
            if waiting_here is None:
                self._queues[need.payer] = []
                return True
            need.called.clear()
            waiting_here.append(need)
        with waiting():
            is_called = need.called.wait(seconds_left(WAIT_SECONDS_MAX))
        if not is_called and self._has_left(need):
            checkpoint()  # its own time may be over
            raise too_long()
        return need.leads

    def companions(self, need: PendingRequest) -> list[PendingRequest]:
        """The waiting requests that one that leads may serve together with its own."""
        if need.is_alone:
            return []
        with self._lock:
            waiting_here = self._queues[need.payer]
            found = [one for one in waiting_here if not one.is_alone][:N_COMPANIONS_MAX]
            waiting_here[:] = [one for one in waiting_here if one not in found]
        return found

    def pass_on(self, need: PendingRequest) -> None:
        """Let the next request of the same payer lead, if one waits."""
        with self._lock:
            waiting_here = self._queues[need.payer]
            if waiting_here:
                following = waiting_here.pop(0)
                following.leads = True
                following.called.set()
            else:
                del self._queues[need.payer]

    def _has_left(self, need: PendingRequest) -> bool:
        """Remove a request that waits no longer; False if it was called at the last moment."""
        with self._lock:
            if need.called.is_set():
                return False
            # There is no queue left if its leader took this request along, and is done.
            waiting_here = self._queues.get(need.payer, [])
            waiting_here[:] = [one for one in waiting_here if one is not need]
            return True


def too_long() -> SourceUnavailable:
    """The refusal if what other requests measure does not come in time."""
    return SourceUnavailable(
        "What others are measuring for this has not come.",
        hint="Ask again later: what is paid for is not paid again.",
    )
