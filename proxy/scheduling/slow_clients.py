"""Limits on slow clients: how long a thread waits for one, and how many threads one may hold.

A call that is read or answered piece by piece holds a thread while its client takes its time. A
client that takes longer than a limit to send its request or to receive a piece of its answer is cut
off, by one thread that checks all waiting calls. Time that the server itself needs does not count.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import grpc

from cube.pace import waiting
from cube.refusals import TooManyCalls

SECONDS_TO_SEND_MAX: Final = 10.0  # from its headers to its request; a statement is small
SECONDS_TO_TAKE_MAX: Final = 30.0  # one piece of an answer
LOOK_SECONDS: Final = 0.5

Item = TypeVar("Item")


class SlowClientGuard:
    """Cuts off clients that keep a thread waiting for too long. Thread-safe.

    Parameters
    ----------
    clock : callable, optional
        Seconds on a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[object, tuple[grpc.ServicerContext, float]] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="tacit-slow-clients", daemon=True)

    def start(self) -> None:
        """Begin to check waiting calls."""
        self._thread.start()

    def stop(self) -> None:
        """Stop checking them."""
        self._stopped.set()
        self._thread.join()

    @contextmanager
    def waiting_for(self, context: grpc.ServicerContext, seconds: float) -> Iterator[None]:
        """Cut the client off if what happens inside takes longer."""
        key = object()
        with self._lock:
            self._waiting[key] = (context, self._clock() + seconds)
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[key]

    def reading(self, messages: Iterator[Item], context: grpc.ServicerContext) -> Iterator[Item]:
        """The messages of a client, each of which must arrive within a limit."""
        while True:
            with waiting(), self.waiting_for(context, SECONDS_TO_SEND_MAX):
                message = next(messages, None)
            if message is None:
                return
            yield message

    def sending(self, pieces: Iterator[Item], context: grpc.ServicerContext) -> Iterator[Item]:
        """The pieces of an answer, each of which the client must take within a limit."""
        for piece in pieces:
            with self.waiting_for(context, SECONDS_TO_TAKE_MAX):
                yield piece

    def cut_off_overdue(self) -> int:
        """Cut off every client that is overdue; how many there were."""
        now = self._clock()
        with self._lock:
            overdue = [context for context, until in self._waiting.values() if until < now]
        for context in overdue:
            context.cancel()
        return len(overdue)

    def _look(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self.cut_off_overdue()


class CallSlots:
    """A number of concurrent calls for each caller, so that no caller can keep the others out.

    Parameters
    ----------
    n_places : int
        For each caller.
    """

    def __init__(self, n_places: int) -> None:
        self._n_places = n_places
        self._lock = threading.Lock()
        self._taken: Counter[Hashable] = Counter()

    @contextmanager
    def taken_by(self, caller: Hashable) -> Iterator[None]:
        """Hold one slot; TooManyCalls if the caller has none left."""
        with self._lock:
            if self._taken[caller] >= self._n_places:
                raise TooManyCalls(
                    f"{self._n_places} calls are already open.",
                    hint="Wait for one of them to end.",
                )
            self._taken[caller] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[caller] -= 1
                if not self._taken[caller]:
                    del self._taken[caller]
