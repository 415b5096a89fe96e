"""Fair shares of one process, and one large statement of an analyst at a time.

The threads of a process take turns in one interpreter. Without scheduling, forty heavy statements
of one analyst would leave a fortieth of it to another's light statement. So the work for each
analyst is added up; between two steps of a statement (`cube/pace.py`), an analyst who has used more
time than another one with work to do steps aside. An analyst who was idle gets only a small credit,
which is why a light statement is served at once beside heavy ones.

Only a few statements of one analyst work at a time, because code that runs outside the interpreter
cannot be made to step aside. The time limit of a statement is counted from here on, and includes
the time in which it waits for others.

Nothing here knows what a statement is. Shares belong to analysts' names: a person with two names
has two shares.

A statement with many groups takes hundreds of megabytes while it is priced and estimated, and keeps
them while it waits. A few of them at once would exhaust the memory of the process.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cube.pace import PAID_SECONDS, checkpoint, out_of_time, paced, seconds_left, waiting
from cube.refusals import TooSlow
from planner.workload import Part

N_AT_ONCE: Final = 2  # statements of one analyst; those that wait for a disk do not count
QUANTUM_SECONDS: Final = 0.01  # of work by which one analyst may be ahead of another
CREDIT_SECONDS: Final = 0.1  # of work that an analyst who was idle may be ahead
ASIDE_SECONDS_MAX: Final = 0.1  # at a time: the other one may itself be waiting for something
GLANCE_SECONDS: Final = 0.002  # between two checks of who works; steps are shorter
CLIENT_SECONDS: Final = 0.1  # between two checks that the client is still there

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class CallTimes:
    """How long the work for one call may take, in seconds.

    Parameters
    ----------
    statement : float
        A query.
    job : float
        A call that is known to take long: a synthetic table, a batch, a report.
    """

    statement: float = 10.0
    job: float = 600.0


DEFAULT_TIMES: Final = CallTimes()


@dataclass(slots=True, eq=False)
class _Account:
    """The work done for one analyst, on a scale common to all, and the threads that do it."""

    worked: float
    n_working: int = 0
    queue: "deque[threading.Event]" = field(default_factory=deque)


class FairShare:
    """Shares the process among analysts. Thread-safe.

    Parameters
    ----------
    n_at_once : int
        How many statements of one analyst may work at a time.
    """

    def __init__(self, n_at_once: int = N_AT_ONCE) -> None:
        self._n_at_once = n_at_once
        self._lock = threading.Lock()  # of all that follows
        self._changed = threading.Condition(self._lock)
        self._n_aside = 0  # threads that have stepped aside
        self._accounts: dict[str, _Account] = {}

    def enter_first(self, analyst: str) -> None:
        """Continue to work at once, even without a free slot."""
        with self._lock:
            self._begin(self._account_of(analyst))

    def enter(self, analyst: str, seconds: float) -> bool:
        """Begin to work once there is a free slot; False if there was none in time."""
        with self._lock:
            account = self._account_of(analyst)
            if account.n_working < self._n_at_once and not account.queue:
                self._begin(account)
                return True
            called = threading.Event()
            account.queue.append(called)
        if called.wait(max(0.0, seconds)):
            return True  # the thread that freed the slot has begun for this one
        with self._lock:
            if called.is_set():
                return True
            account.queue.remove(called)
            self._forget(analyst, account)
            return False

    def leave(self, analyst: str, worked: float) -> None:
        """Stop working, and give the slot to a thread of the same analyst that waits for one."""
        with self._lock:
            account = self._accounts[analyst]
            account.worked += worked
            account.n_working -= 1
            if account.queue and account.n_working < self._n_at_once:
                self._begin(account)
                account.queue.popleft().set()
            self._forget(analyst, account)
            if self._n_aside:
                self._changed.notify_all()

    def step_aside(self, analyst: str, worked: float) -> None:
        """Let analysts with less work go first, for a while."""
        with self._lock:
            account = self._accounts[analyst]
            account.worked += worked
            end = time.monotonic() + ASIDE_SECONDS_MAX
            self._n_aside += 1
            while self._is_ahead(account) and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, QUANTUM_SECONDS))
            self._n_aside -= 1

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
        """The least work among the analysts who are working."""
        working = (one.worked for one in self._accounts.values() if one.n_working)
        return min(working, default=0.0)

    def _forget(self, analyst: str, account: _Account) -> None:
        """Drop an account that no longer matters."""
        if account.n_working or account.queue:
            return
        if len(self._accounts) == 1:
            self._accounts.clear()
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
    is_gone : callable
        Whether the client no longer waits for the answer.
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
        self._counted = 0.0  # of this thread's processor time
        self._in_all = 0.0  # of work, by processor time
        self._elsewhere = 0.0  # of waiting for something else than a turn
        self._is_waiting = False
        self.is_paid = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return max(self._left(), PAID_SECONDS) if self.is_paid else self._left()

    def take_longer(self) -> None:
        """Apply the time limit of a job instead of a statement's."""
        self._seconds = self._times.job

    def note_paid(self) -> None:
        """From here on refuse only steps that state the time they need."""
        self.is_paid = True

    def note_work(self, seconds: float) -> None:
        """Count what another process worked for the statement."""
        self._counted -= seconds

    def step(self, seconds: float) -> None:
        """Continue, after those who have worked for less."""
        now = time.monotonic()
        if now - self._glanced < GLANCE_SECONDS and not seconds:
            return
        self._glanced = now
        if self._left() < self._needed(seconds) and (seconds or not self.is_paid):
            raise out_of_time(self._seconds)
        if now - self._asked > CLIENT_SECONDS:
            self._asked = now
            if self._is_gone():
                raise TooSlow("The client is gone.")
        if not self._is_waiting:
            self._share.step_aside(self._analyst, self._worked())

    def working(self) -> AbstractContextManager[None]:
        """Work in this thread, once there is a free slot."""
        return _Work(self)

    def begin(self) -> None:
        """Begin to work in this thread, once there is a free slot; `TooSlow` if there is none."""
        if not self._share.enter(self._analyst, self.seconds_left):
            raise out_of_time(self._seconds)
        self._counted = time.thread_time()

    def end(self) -> None:
        """Stop working, and give the slot to others."""
        self._share.leave(self._analyst, self._worked())

    @contextmanager
    def waiting(self, *, is_first: bool) -> Iterator[None]:
        """Give the slot to others while waiting."""
        self._share.leave(self._analyst, self._worked())
        self._is_waiting = True
        since = time.monotonic()
        try:
            yield
        finally:
            self._elsewhere += time.monotonic() - since
            if is_first or not self._share.enter(self._analyst, self.seconds_left):
                self._share.enter_first(self._analyst)  # out of time: the next step refuses
            self._is_waiting = False
            self._counted = time.thread_time()

    def pieces(self, made: Iterator[Item]) -> Iterator[Item]:
        """A result made piece by piece: producing a piece is work, sending it is not."""
        while True:
            with self.working():
                try:
                    piece = next(made)
                except StopIteration:
                    return
            yield piece

    def _left(self) -> float:
        return self._started + self._seconds - time.monotonic()

    def _needed(self, seconds: float) -> float:
        """How long a step may take that needs so much work: longer, where others work, too.

        It is taken to be slowed down as the work so far was, up to half of the statement's time.
        """
        if not seconds:
            return 0.0
        worked = self._in_all + time.thread_time() - self._counted
        elapsed = time.monotonic() - self._started - self._elsewhere
        slowed_down = elapsed / worked if 0 < worked < elapsed else 1.0
        return max(seconds, min(seconds * slowed_down, self._seconds / 2))

    def _worked(self) -> float:
        now = time.thread_time()
        worked, self._counted = now - self._counted, now
        self._in_all += worked
        return worked


class _Work:
    """The work of a shift in one thread: a turn, and the pace of the thread.

    A class, not a generator: every message of every call enters it.
    """

    __slots__ = ("_pace", "_shift")

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._pace = paced(shift)

    def __enter__(self) -> None:
        self._shift.begin()
        self._pace.__enter__()

    def __exit__(self, *_error: object) -> None:
        self._pace.__exit__()
        self._shift.end()


N_ROWS_LARGE: Final = 5_000  # summed over all linear queries of a statement on one table
WAIT_SECONDS: Final = 1.0


class LargeStatements:
    """The large statements under way on one table. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work: set[str] = set()

    @contextmanager
    def turn(self, analyst: str, parts: Sequence[Part]) -> Iterator[None]:
        """Hold an analyst's turn to have parts answered; waits for it if the parts are large.

        Raises
        ------
        TooSlow
            If the statement's deadline passes first.
        """
        if _n_rows(parts) <= N_ROWS_LARGE:
            yield
            return
        with waiting():
            self._begin(analyst)
        try:
            yield
        finally:
            with self._changed:
                self._at_work.remove(analyst)
                self._changed.notify_all()

    def _begin(self, analyst: str) -> None:
        with self._changed:
            while analyst in self._at_work:
                self._changed.wait(seconds_left(WAIT_SECONDS))
                checkpoint()
            self._at_work.add(analyst)


def _n_rows(parts: Sequence[Part]) -> int:
    return sum(block.n_rows for part in parts for one in part.aggregates for block in one.blocks)
