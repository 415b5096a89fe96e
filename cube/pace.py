"""The pace of the work for one statement: how long it may still take, and when it lets others go.

Whoever serves a statement says at which pace its thread works (`paced`). Every stage that may take
long calls `checkpoint` between two steps of it, asks `seconds_left` before it hands work to
something that cannot be stopped in between, and says when it only waits (`waiting`). A thread to
which nobody gave a pace works on without one.

Nothing here knows who asks for what: how turns are shared out is for who serves to decide.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Final, Protocol

from cube.refusals import TooSlow

PAID_SECONDS: Final = 5.0  # for each of what cannot be stopped in between, once it is paid for


class Pace(Protocol):
    """How fast one statement may be worked for."""

    @property
    def seconds_left(self) -> float:
        """Until the work must be over; infinite if it need not."""
        ...

    def step(self, seconds: float) -> None:
        """Go on to the next step, perhaps after others had their turn.

        Parameters
        ----------
        seconds : float
            That must be left for it.

        Raises
        ------
        TooSlow
            If they are not, or there is nobody to hear the answer.
        """
        ...

    def take_longer(self) -> None:
        """What is worked for turns out to be no question: it may take as long as jobs may."""
        ...

    def note_paid(self) -> None:
        """Something was charged: what follows is answered, also if the time is over."""
        ...

    def waiting(self, *, is_first: bool) -> AbstractContextManager[None]:
        """Within it the statement waits for something, and needs no turn.

        With `is_first` it goes on at once afterwards, whoever else wants a turn.
        """
        ...


_pace: ContextVar[Pace | None] = ContextVar("tacit_pace", default=None)


@contextmanager
def paced(pace: Pace) -> Iterator[None]:
    """Work at a pace, in this thread."""
    token = _pace.set(pace)
    try:
        yield
    finally:
        _pace.reset(token)


def current_pace() -> Pace | None:
    """The pace of this thread, if it was given one."""
    return _pace.get()


def checkpoint(seconds: float = 0.0) -> None:
    """Go on to the next step of the work, if so much time is left for it; `TooSlow` if not."""
    pace = _pace.get()
    if pace is not None:
        pace.step(seconds)


def seconds_left(at_most: float) -> float:
    """How long the next step may take: what is left, and never more than `at_most`."""
    pace = _pace.get()
    return at_most if pace is None else max(0.0, min(at_most, pace.seconds_left))


def take_longer() -> None:
    """Let the statement take as long as what its caller knows to take long."""
    pace = _pace.get()
    if pace is not None:
        pace.take_longer()


def note_paid() -> None:
    """Something was charged for the statement: only steps that name the time they need are refused.

    So nobody pays for what they are not told; and nothing more is charged without time.
    """
    pace = _pace.get()
    if pace is not None:
        pace.note_paid()


def waiting(*, is_first: bool = False) -> AbstractContextManager[None]:
    """While something else than this thread is to move: a disk, a client, another statement.

    Not for a lock that is held afterwards: others would wait for it while this waits for a turn,
    unless it `is_first`.
    """
    pace = _pace.get()
    return nullcontext() if pace is None else pace.waiting(is_first=is_first)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Work at the pace there is, but no longer than some seconds; `TooSlow` then."""
    deadline = Deadline(seconds)
    outer = _pace.get()
    with paced(deadline if outer is None else _Shorter(deadline, outer)):
        yield


class Deadline:
    """A pace that only ends.

    Parameters
    ----------
    seconds : float
        From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._is_paid = False

    @property
    def seconds_left(self) -> float:
        """Until the work must be over."""
        left = self._end - time.monotonic()
        return max(left, PAID_SECONDS) if self._is_paid else left

    def step(self, seconds: float) -> None:
        """Raise TooSlow if there is not so much time left."""
        if self._end - time.monotonic() < seconds and (seconds or not self._is_paid):
            raise out_of_time(self._seconds)

    def note_paid(self) -> None:
        """From here on no step is refused that does not name the time it needs."""
        self._is_paid = True

    def take_longer(self) -> None:
        """A deadline is one."""

    def waiting(self, *, is_first: bool) -> AbstractContextManager[None]:  # noqa: ARG002
        """Nobody is kept from working by one that waits."""
        return nullcontext()


class _Shorter:
    """A pace that ends sooner."""

    def __init__(self, deadline: Deadline, outer: Pace) -> None:
        self._deadline = deadline
        self._outer = outer

    @property
    def seconds_left(self) -> float:
        return min(self._deadline.seconds_left, self._outer.seconds_left)

    def step(self, seconds: float) -> None:
        self._deadline.step(seconds)
        self._outer.step(seconds)

    def take_longer(self) -> None:
        self._outer.take_longer()

    def note_paid(self) -> None:
        self._outer.note_paid()

    def waiting(self, *, is_first: bool) -> AbstractContextManager[None]:
        return self._outer.waiting(is_first=is_first)


def out_of_time(seconds: float) -> TooSlow:
    """The refusal of a statement that took all the time there was."""
    return TooSlow(
        f"This took longer than the {seconds:g} seconds that one statement may take.",
        hint="Ask for fewer aggregates or groups at once, over fewer columns. What was measured "
        "for it, if anything was, is kept.",
    )
