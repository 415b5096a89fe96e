"""The workers of one server: their processes, what they tell, and what starts them again.

What a worker's process tells the one that started it, and what it is told itself.

They are sent as pickles through a pipe that only these two processes hold. Nothing in them is
private: lines of the greeting, a refusal to start with its text, and what the metrics' page shows.

One worker's process, as the process that started it sees it.

It is started afresh, not forked: threads, database handles and gRPC's state do not survive a fork.

How the workers of a server are, as one: readiness, and metrics that add up.

A server is ready while any of its workers is: connections go to those that listen. What a worker
had counted when it died stays in the sums, as of its last word a second before.

Starts the workers of one server, starts those again that die, and ends them together.

The first worker is started alone: what there is to create (a ledger, an extract of a source) is
created once, and what is wrong with the configuration is said once. The others follow when it
serves. A worker that dies later is started again, after a pause that doubles while it keeps dying;
the others go on meanwhile, and complete what it had charged.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from cube.refusals import CannotStart, TacitError
from proxy.config import Settings
from proxy.monitoring import counted, summed, write_log
from proxy.workers.crew import Seat


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is to do.

    Parameters
    ----------
    settings : Settings
        Of the server, as they were when it started: a worker that begins again later serves by the
        same. Their addresses have actual ports.
    config : Path
        Where they are from, for the greeting.
    tells_metrics : bool
        Whether anybody asks for metrics.
    """

    settings: Settings
    config: Path
    seat: Seat
    tells_metrics: bool


@dataclass(frozen=True, slots=True)
class Serves:
    """A worker takes calls from now on; with the lines that greet the server's owner."""

    greeting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CannotServe:
    """A worker could not begin, and why."""

    why: TacitError


@dataclass(frozen=True, slots=True)
class Vitals:
    """How a worker is, once a second.

    Parameters
    ----------
    metrics : tuple of Metric
        None, if they are not wanted.
    """

    is_ready: bool
    metrics: tuple[Metric, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class End:
    """A worker takes no more calls, finishes those that it has, and ends."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker's process is no more.

    Parameters
    ----------
    exit_code : int
        Negative if a signal ended it.
    """

    exit_code: int


Message = Serves | CannotServe | Vitals | Ended


KILLED: Final = -signal.SIGKILL

Work: TypeAlias = Callable[[Orders, Connection], None]
Hear: TypeAlias = Callable[["WorkerProcess", Message], None]


class WorkerProcess:
    """A process that does a worker's work, from its start.

    Parameters
    ----------
    work : callable
        A function of a module, for it is named to the new process. It is given the orders and the
        pipe: it sends `Message` there, and ends when it hears `End`, or when the pipe is closed.
    hear : callable
        Is given every message of the worker, with `Ended` as the last one, in a thread of this
        process.
    """

    def __init__(self, work: Work, orders: Orders, hear: Hear) -> None:
        context = get_context("spawn")
        self.place = orders.seat.place
        self._hear = hear
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(orders, theirs), name="tacit-worker")
        self._process.start()
        theirs.close()  # only the worker holds it now, so that its end is the pipe's
        threading.Thread(target=self._listen, name="tacit-worker", daemon=True).start()

    def end(self) -> None:
        """Tell the worker to end; it may be gone already."""
        with suppress(OSError):
            self._pipe.send(End())

    def kill(self) -> None:
        """End the worker without its help. What it was charged for waits in the ledger."""
        self._process.kill()

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._hear(self, self._pipe.recv())
        self._process.join()
        code = self._process.exitcode
        self._hear(self, Ended(KILLED if code is None else code))


SILENCE_SECONDS_MAX: Final = 5.0  # a worker says how it is once a second


class Roll(Collector):
    """The last word of every worker. Thread-safe.

    Parameters
    ----------
    clock : callable, optional
        Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._present: dict[int, tuple[float, Vitals]] = {}
        self._past: list[Metric] = []
        self.registry = CollectorRegistry()
        self.registry.register(self)

    @property
    def is_ready(self) -> bool:
        """Whether any worker is ready, and not silent."""
        since = self._clock() - SILENCE_SECONDS_MAX
        with self._lock:
            return any(said.is_ready and at >= since for at, said in self._present.values())

    def note(self, place: int, said: Vitals) -> None:
        """Take in how a worker is."""
        with self._lock:
            self._present[place] = (self._clock(), said)

    def strike(self, place: int) -> None:
        """A worker is gone; what it had counted stays counted."""
        with self._lock:
            _, said = self._present.pop(place, (0.0, Vitals(is_ready=False)))
            self._past = counted([self._past, said.metrics])

    def collect(self) -> Iterable[Metric]:
        """The metrics of the whole server."""
        with self._lock:
            present = [said.metrics for _, said in self._present.values()]
            return summed(present, self._past)


PAUSE_SECONDS: Final = 1.0  # before a worker that died is started again; then twice that, ..
PAUSE_SECONDS_MAX: Final = 60.0
STEADY_SECONDS: Final = 60.0  # of service, after which earlier deaths do not count
END_SECONDS_MAX: Final = 30.0  # for calls under way, and what is to be written at the end

Begin: TypeAlias = Callable[[int, Hear], WorkerProcess]
_Heard: TypeAlias = tuple[WorkerProcess, Message]


@dataclass(slots=True)
class _Place:
    """One place of the crew: who is in it, since when they serve, and when it is filled again."""

    process: WorkerProcess | None = None
    serves_since: float | None = None
    n_deaths: int = 0
    fill_at: float | None = None


class Supervisor:
    """The workers of one server.

    Parameters
    ----------
    begin : callable
        Starts the worker of a place, whose messages go to the function that is given to it.
    roll : Roll
        Is told how every worker is.
    """

    def __init__(self, n_places: int, begin: Begin, roll: Roll) -> None:
        self._begin = begin
        self._roll = roll
        self._places = [_Place() for _ in range(n_places)]
        self._greeting: tuple[str, ...] = ()
        self._heard: SimpleQueue[_Heard | None] = SimpleQueue()

    def stop(self) -> None:
        """End the server. For signal handlers, and for any thread."""
        self._heard.put(None)

    def run(self, greet: Callable[[tuple[str, ...]], None]) -> None:
        """Serve until `stop`.

        Parameters
        ----------
        greet : callable
            Is called once, when all workers serve, with the greeting of one.

        Raises
        ------
        CannotStart
            If a worker cannot begin with the server; then none is left.
        """
        try:
            if self._started(self._places[:1]) and self._started(self._places[1:]):
                greet(self._greeting)
                self._keep()
        finally:
            self._end_all()

    def _started(self, places: list[_Place]) -> bool:
        """Fill places and wait until they serve; False if the server is to end before."""
        for place in places:
            self._fill(place)
        while any(place.serves_since is None for place in places):
            heard = self._heard.get()
            if heard is None:
                return False
            process, message = heard
            if isinstance(message, CannotServe):
                raise message.why
            if isinstance(message, Ended):
                raise CannotStart(
                    f"A worker ended while it started, with {_said(message.exit_code)}.",
                    hint="Is there enough memory? Each worker loads the tables for itself.",
                )
            self._note(self._places[process.place], message)
        return True

    def _keep(self) -> None:
        """Fill places that become empty, until the server is to end."""
        while True:
            due = [place.fill_at for place in self._places if place.fill_at is not None]
            left = max(0.0, min(due) - time.monotonic()) if due else None
            try:
                heard = self._heard.get(timeout=left)
            except Empty:
                self._fill_due()
                continue
            if heard is None:
                return
            process, message = heard
            self._note(self._places[process.place], message)

    def _fill_due(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.fill_at is not None and place.fill_at <= now:
                self._fill(place)

    def _fill(self, place: _Place) -> None:
        number = self._places.index(place)
        place.fill_at = None
        place.process = self._begin(number, lambda one, message: self._heard.put((one, message)))

    def _note(self, place: _Place, message: Message) -> None:
        """Take in what a worker said about itself, or that it is gone."""
        number = self._places.index(place)
        match message:
            case Serves(greeting):
                place.serves_since = time.monotonic()
                if number == 0:  # which has what only one of them does
                    self._greeting = greeting
                write_log(logging.INFO, "worker_serves", worker=number)
            case CannotServe(why):
                write_log(logging.ERROR, "worker_cannot_start", worker=number, code=why.code)
            case Vitals():
                self._roll.note(number, message)
            case Ended(exit_code):
                self._roll.strike(number)
                write_log(logging.ERROR, "worker_ended", worker=number, code=_said(exit_code))
                self._empty(place)

    def _empty(self, place: _Place) -> None:
        """A worker is gone: when its place is filled again."""
        now = time.monotonic()
        served = 0.0 if place.serves_since is None else now - place.serves_since
        place.n_deaths = 1 if served >= STEADY_SECONDS else place.n_deaths + 1
        pause = min(PAUSE_SECONDS * 2.0 ** (place.n_deaths - 1), PAUSE_SECONDS_MAX)
        place.process, place.serves_since, place.fill_at = None, None, now + pause

    def _end_all(self) -> None:
        """End every worker, and wait for that; who takes too long is killed."""
        left = {place.process for place in self._places if place.process is not None}
        for process in left:
            process.end()
        end = time.monotonic() + END_SECONDS_MAX
        while left:
            try:
                heard = self._heard.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                for process in left:
                    process.kill()
                end += END_SECONDS_MAX
                continue
            if heard is not None and isinstance(heard[1], Ended):
                left.discard(heard[0])


def _said(exit_code: int) -> str:
    """How a process ended.

    >>> _said(-9), _said(1)
    ('signal 9', 'exit code 1')
    """
    return f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
