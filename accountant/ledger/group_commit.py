"""Group commit: one thread writes for all threads that are waiting to write.

Each thread waits until its own request is done. A thread that wakes and finds no leader becomes the
leader: so one sync to the disk is shared by all requests that arrived during the one before.

Nothing here knows what is written. Proof: proofs/gate.md, "Many at once".
"""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar


class CommitRequest(Protocol):
    """A request with a thread that waits for it."""

    is_done: bool


Request = TypeVar("Request", bound=CommitRequest)


class GroupCommit(Generic[Request]):
    """Waiting requests, in the order in which they arrived.

    Parameters
    ----------
    write : callable
        Handles requests together, in one thread at a time. The failure of one request is noted in
        that request; what `write` itself raises, the leader's thread raises.
    """

    def __init__(self, write: Callable[[Sequence[Request]], None]) -> None:
        self._write = write
        self._requests: list[Request] = []
        self._turn = threading.Condition()
        self._is_led = False

    def deal_with(self, *requests: Request) -> None:
        """Return once these requests are handled, together, by this thread or another."""
        with self._turn:
            self._requests += requests
            self._turn.wait_for(lambda: requests[-1].is_done or not self._is_led)
            if requests[-1].is_done:
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
