"""Group commit: of many threads that want to write, one writes for all who have come meanwhile.

Each waits until its own request is dealt with. Who is woken and finds that nobody leads, leads: so
that a sync to the disk is shared by all who came while the one before was under way.

Nothing here knows what is written. Proof: proofs/gate.md, "Many at once".
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar


class CommitRequest(Protocol):
    """A request that somebody waits for."""

    is_done: bool


Request = TypeVar("Request", bound=CommitRequest)


class GroupCommit(Generic[Request]):
    """Requests that wait, in the order in which they came.

    Parameters
    ----------
    write : callable
        Deals with requests together, by one thread at a time. What goes wrong with one is noted in
        it; what it raises, the leader's thread raises.
    """

    def __init__(self, write: Callable[[Sequence[Request]], None]) -> None:
        self._write = write
        self._requests: list[Request] = []
        self._turn = threading.Condition()
        self._is_led = False

    def deal_with(self, request: Request) -> None:
        """Return once a request was dealt with, by this thread or another."""
        with self._turn:
            self._requests.append(request)
            self._turn.wait_for(lambda: request.is_done or not self._is_led)
            if request.is_done:
                return
            self._is_led = True
            batch, self._requests = self._requests, []
        try:
            self._write(batch)
        finally:
            with self._turn:
                for one in batch:
                    one.is_done = True
                self._is_led = False
                self._turn.notify_all()
