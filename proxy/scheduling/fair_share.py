"""Fair shares of one process: nobody's statements starve those of others.

The threads of a process take turns at one interpreter. Left to themselves, forty heavy statements
of one analyst leave another's light one a fortieth of it. So each analyst's work is added up; who
has worked for longer than somebody else who has something to do steps aside, between two steps of
a statement (`cube/pace.py`). Whoever was idle has nothing saved up but a moment, which is why a
light statement is served at once beside heavy ones.

Of one analyst only so many statements work at a time, because what runs outside the interpreter
cannot be asked to step aside. The time that one statement may take is counted from here on, that
in which it waits for others included.

Nothing here knows what a statement is. Shares are of analysts: one with two credentials has two.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cube.pace import PAID_SECONDS, out_of_time, paced
from cube.refusals import TooSlow

N_AT_ONCE: Final = 2  # statements of one analyst; those that wait for a disk do not count
QUANTUM_SECONDS: Final = 0.01  # of work by which one may be ahead of another
CREDIT_SECONDS: Final = 0.1  # of work that whoever was idle is given over those who were not
ASIDE_SECONDS_MAX: Final = 0.1  # at a time: who is waited for may wait for something itself
GLANCE_SECONDS: Final = 0.002  # between two looks at who works; steps are shorter
CLIENT_SECONDS: Final = 0.1  # between two looks whether the client is still there

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class CallTimes:
    """How long the work for one call may take, in seconds.

    Parameters
    ----------
    statement : float
        A statement that asks.
    job : float
        What its caller knows to take long: a synthetic table, a batch, a report.
    """

    statement: float = 10.0
    job: float = 600.0


DEFAULT_TIMES: Final = CallTimes()


@dataclass(slots=True, eq=False)
class _Account:
    """What one analyst has worked, on a scale that is the same for all, and who works for them."""

    worked: float
    n_working: int = 0
    queue: "deque[threading.Event]" = field(default_factory=deque)


class FairShare:
    """Shares the process among analysts. Thread-safe.

    Parameters
    ----------
    n_at_once : int
        The most statements of one analyst that work at a time.
    """

    def __init__(self, n_at_once: int = N_AT_ONCE) -> None:
        self._n_at_once = n_at_once
        self._changed = threading.Condition()
        self._accounts: dict[str, _Account] = {}

    def enter_first(self, analyst: str) -> None:
        """Go on working at once, place or not."""
        with self._changed:
            self._begin(self._account_of(analyst))

    def enter(self, analyst: str, seconds: float) -> bool:
        """Begin to work, once there is a place; False if there was none in time."""
        with self._changed:
            account = self._account_of(analyst)
            if account.n_working < self._n_at_once and not account.queue:
                self._begin(account)
                return True
            called = threading.Event()
            account.queue.append(called)
        if called.wait(max(0.0, seconds)):
            return True  # who called has begun for us
        with self._changed:
            if called.is_set():
                return True
            account.queue.remove(called)
            self._forget(analyst, account)
            return False

    def leave(self, analyst: str, worked: float) -> None:
        """Stop working; whoever of the same analyst waits for a place has it."""
        with self._changed:
            account = self._accounts[analyst]
            account.worked += worked
            account.n_working -= 1
            if account.queue and account.n_working < self._n_at_once:
                self._begin(account)
                account.queue.popleft().set()
            self._forget(analyst, account)
            self._changed.notify_all()

    def step_aside(self, analyst: str, worked: float) -> None:
        """Let whoever has worked for less go first, for a while."""
        with self._changed:
            account = self._accounts[analyst]
            account.worked += worked
            end = time.monotonic() + ASIDE_SECONDS_MAX
            while self._is_ahead(account) and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, QUANTUM_SECONDS))

    def _account_of(self, analyst: str) -> _Account:
        account = self._accounts.get(analyst)
        if account is None:
            account = self._accounts[analyst] = _Account(self._floor() - CREDIT_SECONDS)
        return account

    def _begin(self, account: _Account) -> None:
        if not account.n_working:
            account.worked = max(account.worked, self._floor() - CREDIT_SECONDS)
        account.n_working += 1

    def _is_ahead(self, account: _Account) -> bool:
        others = (one.worked for one in self._accounts.values() if one.n_working)
        return account.worked > min(others, default=account.worked) + QUANTUM_SECONDS

    def _floor(self) -> float:
        """What the least has worked of those who work."""
        working = (one.worked for one in self._accounts.values() if one.n_working)
        return min(working, default=0.0)

    def _forget(self, analyst: str, account: _Account) -> None:
        """Keep no account that says nothing any more."""
        if account.n_working or account.queue:
            return
        others = [one for one in self._accounts.values() if one.n_working or one.queue]
        if not others:
            self._accounts.clear()
        elif account.worked <= self._floor() - CREDIT_SECONDS:
            del self._accounts[analyst]


class Shift:
    """The work for one statement; the `Pace` of the thread that does it.

    Parameters
    ----------
    share : FairShare
    analyst : str
    times : CallTimes
    is_gone : callable
        Whether nobody waits for the answer any more.
    """

    def __init__(
        self, share: FairShare, analyst: str, times: CallTimes, is_gone: Callable[[], bool]
    ) -> None:
        self._share = share
        self._analyst = analyst
        self._times = times
        self._seconds = times.statement
        self._is_gone = is_gone
        self._started = time.monotonic()
        self._glanced = self._asked = self._started
        self._counted = 0.0  # of this thread's own time
        self._is_waiting = False
        self._is_paid = False

    @property
    def seconds_left(self) -> float:
        """Until the work must be over."""
        return max(self._left(), PAID_SECONDS) if self._is_paid else self._left()

    def take_longer(self) -> None:
        """It is a job, and no question."""
        self._seconds = self._times.job

    def note_paid(self) -> None:
        """From here on no step is refused that does not name the time it needs."""
        self._is_paid = True

    def step(self, seconds: float) -> None:
        """Go on, after those who have worked for less."""
        now = time.monotonic()
        if now - self._glanced < GLANCE_SECONDS and not seconds:
            return
        self._glanced = now
        if self._left() < seconds and (seconds or not self._is_paid):
            raise out_of_time(self._seconds)
        if now - self._asked > CLIENT_SECONDS:
            self._asked = now
            if self._is_gone():
                raise TooSlow("The client is gone.")
        if not self._is_waiting:
            self._share.step_aside(self._analyst, self._worked())

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work, in this thread, once there is a place."""
        if not self._share.enter(self._analyst, self.seconds_left):
            raise out_of_time(self._seconds)
        self._counted = time.thread_time()
        try:
            with paced(self):
                yield
        finally:
            self._share.leave(self._analyst, self._worked())

    @contextmanager
    def waiting(self, *, is_first: bool) -> Iterator[None]:
        """Give the place to others meanwhile."""
        self._share.leave(self._analyst, self._worked())
        self._is_waiting = True
        try:
            yield
        finally:
            if is_first or not self._share.enter(self._analyst, self.seconds_left):
                self._share.enter_first(self._analyst)  # without time, only to be told at a step
            self._is_waiting = False
            self._counted = time.thread_time()

    def pieces(self, made: Iterator[Item]) -> Iterator[Item]:
        """What is made piece by piece: work for each, and none while it is taken."""
        while True:
            with self.working():
                try:
                    piece = next(made)
                except StopIteration:
                    return
            yield piece

    def _left(self) -> float:
        return self._started + self._seconds - time.monotonic()

    def _worked(self) -> float:
        now = time.thread_time()
        worked, self._counted = now - self._counted, now
        return worked
