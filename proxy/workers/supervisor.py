"""Starts the workers of one server, starts those again that die, and ends them together.

The first worker is started alone: what there is to create (a ledger, an extract of a source) is
created once, and what is wrong with the configuration is said once. The others follow when it
serves. A worker that dies later is started again, after a pause that doubles while it keeps dying;
the others go on meanwhile, and complete what it had charged.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from cube.refusals import CannotStart
from proxy.monitoring.logs import write_log
from proxy.workers.messages import CannotServe, Ended, Message, Serves, Vitals
from proxy.workers.process import Hear, WorkerProcess
from proxy.workers.roll import Roll

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
    n_places : int
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
                    hint="Is there memory for so many? Each has the tables to itself.",
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
        """Take in what a worker said of itself, or that it is gone."""
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
