"""The pace of the work for one statement: how long it may still take, and when others have a turn.

The server sets the pace of the thread that works for a statement (`paced`). Every stage that may
take long calls `checkpoint` between two of its steps, asks for `seconds_left` before it starts work
that cannot be interrupted, and marks the times when it only waits (`waiting`). A thread without a
pace runs without limits.

Nothing here knows callers or statements: the server decides how turns are shared.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Final, Protocol

from cube.refusals import TooSlow

PAID_SECONDS: Final = 5.0  # for each step that cannot be interrupted, after a charge was made


class Pace(Protocol):
    """How long one statement may take, and when its work pauses for others."""

    @property
    def seconds_left(self) -> float:
        """The time until the work must end; infinite if there is no limit."""
        ...

    @property
    def is_paid(self) -> bool:
        """Whether something was charged."""
        ...

    def step(self, seconds: float) -> None:
        """Go on to the next step, perhaps after others had their turn.

        Parameters
        ----------
        seconds : float
            The time that must be left for the step.

        Raises
        ------
        TooSlow
            If less time is left, or the client is gone.
        """
        ...

    def take_longer(self) -> None:
        """The statement turns out to be a long job, not a query: allow it the time of a job."""
        ...

    def note_paid(self) -> None:
        """Something was charged: from here on the statement is answered, even past its time."""
        ...

    def note_work(self, seconds: float) -> None:
        """Another process worked for the statement, for as long."""
        ...

    def waiting(self, *, is_first: bool) -> AbstractContextManager[None]:
        """Within it the statement only waits for something, and needs no turn.

        With `is_first` it goes on at once afterwards, before others that want a turn.
        """
        ...


_pace: ContextVar[Pace | None] = ContextVar("tacit_pace", default=None)


class paced:  # noqa: N801 - used as a function; a class costs less for every message of a call
    """Set the pace of this thread, within a ``with`` statement.

    Parameters
    ----------
    pace : Pace
    """

    __slots__ = ("_pace", "_token")

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._token: Token[Pace | None] | None = None

    def __enter__(self) -> None:
        self._token = _pace.set(self._pace)

    def __exit__(self, *_error: object) -> None:
        if self._token is not None:
            _pace.reset(self._token)


def current_pace() -> Pace | None:
    """The pace of this thread, if it has one."""
    return _pace.get()


def checkpoint(seconds: float = 0.0) -> None:
    """Go on to the next step of the work if this much time is left for it; `TooSlow` if not."""
    pace = _pace.get()
    if pace is not None:
        pace.step(seconds)


def seconds_left(at_most: float) -> float:
    """How long the next step may take: the time that is left, and never more than `at_most`."""
    pace = _pace.get()
    return at_most if pace is None else max(0.0, min(at_most, pace.seconds_left))


def take_longer() -> None:
    """Allow the statement the time of a job that its caller expects to take long."""
    pace = _pace.get()
    if pace is not None:
        pace.take_longer()


def note_paid() -> None:
    """Something was charged for the statement: now only steps that name a time can be refused.

    So analysts never pay for an answer that they do not get, and nothing is charged out of time.
    """
    pace = _pace.get()
    if pace is not None:
        pace.note_paid()


def note_work(seconds: float) -> None:
    """Count the work of another process as if this thread had done it."""
    pace = _pace.get()
    if pace is not None:
        pace.note_work(seconds)


def is_paid() -> bool:
    """Whether something was charged for the statement that this thread works on."""
    pace = _pace.get()
    return pace is not None and pace.is_paid


def waiting(*, is_first: bool = False) -> AbstractContextManager[None]:
    """Mark a wait for something outside this thread: a disk, a client, another statement.

    Not for acquiring a lock that is held afterwards: others would wait for the lock while this
    thread waits for its turn, unless it `is_first`.
    """
    pace = _pace.get()
    return nullcontext() if pace is None else pace.waiting(is_first=is_first)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Work at the thread's pace, but no longer than `seconds`; after that, `TooSlow`."""
    deadline = Deadline(seconds)
    outer = _pace.get()
    with paced(deadline if outer is None else _Shorter(deadline, outer)):
        yield


class Deadline:
    """A pace with an end and no turns.

    Parameters
    ----------
    seconds : float
        The time allowed from now on, in seconds.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self.is_paid = False

    @property
    def seconds_left(self) -> float:
        """The time until the work must end."""
        left = self._end - time.monotonic()
        return max(left, PAID_SECONDS) if self.is_paid else left

    def step(self, seconds: float) -> None:
        """Raise TooSlow if less time than this is left."""
        if self._end - time.monotonic() < seconds and (seconds or not self.is_paid):
            raise out_of_time(self._seconds)

    def note_paid(self) -> None:
        """From here on, only steps that name the time they need can be refused."""
        self.is_paid = True

    def note_work(self, seconds: float) -> None:
        """Do nothing, since no other statement shares the deadline."""

    def take_longer(self) -> None:
        """Nothing: this deadline is fixed."""

    def waiting(self, *, is_first: bool) -> AbstractContextManager[None]:  # noqa: ARG002
        """Nothing to do: a deadline shares no turns."""
        return nullcontext()


class _Shorter:
    """A pace that ends sooner."""

    def __init__(self, deadline: Deadline, outer: Pace) -> None:
        self._deadline = deadline
        self._outer = outer

    @property
    def seconds_left(self) -> float:
        return min(self._deadline.seconds_left, self._outer.seconds_left)

    @property
    def is_paid(self) -> bool:
        return self._outer.is_paid

    def step(self, seconds: float) -> None:
        self._deadline.step(seconds)
        self._outer.step(seconds)

    def take_longer(self) -> None:
        self._outer.take_longer()

    def note_paid(self) -> None:
        self._outer.note_paid()

    def note_work(self, seconds: float) -> None:
        self._outer.note_work(seconds)

    def waiting(self, *, is_first: bool) -> AbstractContextManager[None]:
        return self._outer.waiting(is_first=is_first)


def out_of_time(seconds: float) -> TooSlow:
    """The refusal of a statement that used up its time."""
    return TooSlow(
        f"The statement took longer than the allowed {seconds:g} seconds.",
        hint="Ask for fewer aggregates or groups at once, over fewer columns. Any "
        "measurements already made for the statement are kept.",
    )
