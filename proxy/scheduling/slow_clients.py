"""Limits on slow clients: how long a thread waits for one, and how many threads one may hold.

A call that is read or answered piece by piece holds a thread while its client takes its time. A
client that takes longer than a limit to send its request or to receive a piece of its answer is cut
off, by one thread that checks all waiting calls. Time that the server itself needs does not count.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
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

    def waiting_for(
        self, context: grpc.ServicerContext, seconds: float
    ) -> AbstractContextManager[None]:
        """Cut the client off if what happens inside takes longer."""
        return _Waiting(self, context, seconds)

    def begin(self, wait: object, context: grpc.ServicerContext, seconds: float) -> None:
        """A wait for a client begins; it is known by an object of its own."""
        with self._lock:
            self._waiting[wait] = (context, self._clock() + seconds)

    def end(self, wait: object) -> None:
        """The wait is over."""
        with self._lock:
            del self._waiting[wait]

    def reading(self, messages: Iterator[Item], context: grpc.ServicerContext) -> Iterator[Item]:
        """The messages of a client; each must arrive within a time limit."""
        while True:
            with waiting(), self.waiting_for(context, SECONDS_TO_SEND_MAX):
                message = next(messages, None)
            if message is None:
                return
            yield message

    def sending(self, pieces: Iterator[Item], context: grpc.ServicerContext) -> Iterator[Item]:
        """The pieces of an answer; the client must take each within a time limit."""
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

    def taken_by(self, caller: Hashable) -> AbstractContextManager[None]:
        """Hold one slot; TooManyCalls if the caller has none left."""
        return _Taken(self, caller)

    def take(self, caller: Hashable) -> None:
        """Take a slot; TooManyCalls if the caller has none left."""
        with self._lock:
            if self._taken[caller] >= self._n_places:
                raise TooManyCalls(
                    f"{self._n_places} calls are already open.",
                    hint="Wait for one of them to end.",
                )
            self._taken[caller] += 1

    def give_back(self, caller: Hashable) -> None:
        """Give a slot back."""
        with self._lock:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]


class _Waiting:
    """A wait for a client. A class, not a generator: every message of every call enters it."""

    __slots__ = ("_context", "_guard", "_seconds")

    def __init__(
        self, guard: SlowClientGuard, context: grpc.ServicerContext, seconds: float
    ) -> None:
        self._guard, self._context, self._seconds = guard, context, seconds

    def __enter__(self) -> None:
        self._guard.begin(self, self._context, self._seconds)

    def __exit__(self, *_error: object) -> None:
        self._guard.end(self)


class _Taken:
    """A slot that is taken. A class for the same reason."""

    __slots__ = ("_caller", "_slots")

    def __init__(self, slots: CallSlots, caller: Hashable) -> None:
        self._slots, self._caller = slots, caller

    def __enter__(self) -> None:
        self._slots.take(self._caller)

    def __exit__(self, *_error: object) -> None:
        self._slots.give_back(self._caller)
