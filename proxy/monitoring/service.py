"""What monitors one running service: health, and the port that tells it.

Whether the server is ready for calls, and the threads that find out.

It is ready as long as its ledger can be written: otherwise nothing new can be measured, though
answers from history are still given. The ledger is probed every few seconds, and at once when an
append fails; it is read again every second, so that entries of other processes (a measurement, a
revoked token) are known here. A disk or a database that does not respond at all makes the server
unready too.

The port for monitoring systems: `/metrics`, `/healthz` and `/readyz` over plain HTTP.

It listens on loopback only: the owner decides who else may see the metrics. The replies are public
by the rules of `proxy.monitoring.metrics`, and no text of a request is in any of them.

Starts and stops everything that monitors one running service.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol, Self
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from grpc_health.v1 import health, health_pb2
from prometheus_client import CollectorRegistry, make_wsgi_app

from cube.refusals import TacitError
from proxy.api import BudgetStatus
from proxy.monitoring.events import Watcher
from proxy.monitoring.logs import write_log
from proxy.monitoring.loopback_http import serving_http
from proxy.monitoring.metrics import Metrics

LOOK_SECONDS: Final = 0.25  # how soon a failed append is noticed
REFRESH_SECONDS: Final = 1.0
PROBE_SECONDS: Final = 5.0  # each probe is a durable write
RETRY_SECONDS: Final = 1.0  # how soon a recovered ledger is noticed
SILENCE_SECONDS_MAX: Final = 20.0  # longer than a store waits for its locks
WHOLE_SERVER: Final = ""  # the health protocol's name for it
SILENT: Final = "ledger_silent"  # the log's code for a ledger that does not respond at all


class Readiness:
    """Whether calls should be sent here, for gRPC's health service and HTTP. Thread-safe.

    Parameters
    ----------
    services : sequence of str
        Full names of the services, which become ready or unready together.
    is_ready : bool
        The initial state.
    """

    def __init__(self, services: Sequence[str], *, is_ready: bool = False) -> None:
        self.servicer = health.HealthServicer()
        self._services = (WHOLE_SERVER, *services)
        self._lock = threading.Lock()
        self._is_ready = is_ready
        self._has_ended = False
        self._tell()

    @property
    def is_ready(self) -> bool:
        """Whether calls should be sent here."""
        return self._is_ready

    def set(self, trouble: str | None) -> None:
        """Become ready, or unready because of `trouble`; log one line if the state changes."""
        is_ready = trouble is None
        with self._lock:
            if self._has_ended or is_ready == self._is_ready:
                return
            self._is_ready = is_ready
            self._tell()
        if trouble is None:
            write_log(logging.INFO, "ready")
        else:
            write_log(logging.ERROR, "unready", code=trouble)

    def end(self) -> None:
        """Become unready for good: the server is stopping and takes no new calls."""
        with self._lock:
            self._is_ready, self._has_ended = False, True
            self._tell()

    def _tell(self) -> None:
        response = health_pb2.HealthCheckResponse
        status = response.SERVING if self._is_ready else response.NOT_SERVING
        for service in self._services:
            self.servicer.set(service, status)


@dataclass(frozen=True, slots=True)
class Monitoring:
    """The listener for events, and the readiness that the health service reports."""

    watcher: Watcher
    readiness: Readiness


class WatchedLedger(Protocol):
    """The part of a ledger that watching it needs."""

    @property
    def is_writable(self) -> bool:
        """Whether the last attempt to write it succeeded."""
        ...

    def refresh(self) -> None:
        """Read what other processes have appended."""
        ...

    def probe(self) -> None:
        """Raise unless the ledger can be written at present."""
        ...


class LedgerWatch:
    """Keeps a ledger and the readiness up to date, from `start` to `stop`; a context manager.

    Parameters
    ----------
    keep_up : callable
        Other periodic work; called after every refresh, with whether the ledger is sound.
    """

    def __init__(
        self, ledger: WatchedLedger, readiness: Readiness, keep_up: Callable[[bool], None]
    ) -> None:
        self._ledger = ledger
        self._readiness = readiness
        self._keep_up = keep_up
        self._neglect: str | None = None
        self._stopped = threading.Event()
        self._trouble: str | None = None
        self._looked_at = time.monotonic()
        self._refresh_at = self._probe_at = 0.0
        # Daemons: a disk that never answers must not keep the process from ending.
        self._threads = [
            threading.Thread(target=run, name=f"tacit-{name}", daemon=True)
            for name, run in (("ledger", self._keep_looking), ("silence", self._mind_silence))
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Check once in this thread; then continue in the background."""
        self._look()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Become unready, and end the threads, unless one hangs in a call that never returns."""
        self._readiness.end()
        self._stopped.set()
        for thread in self._threads:
            thread.join(LOOK_SECONDS + RETRY_SECONDS)

    def _keep_looking(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            self._look()

    def _mind_silence(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            if time.monotonic() - self._looked_at > SILENCE_SECONDS_MAX:
                self._readiness.set(SILENT)

    def _look(self) -> None:
        now = time.monotonic()
        has_just_failed = self._trouble is None and not self._ledger.is_writable
        if has_just_failed or now >= self._probe_at:
            self._trouble = _trouble_with(self._ledger.probe)
            self._probe_at = now + (PROBE_SECONDS if self._trouble is None else RETRY_SECONDS)
        is_due = now >= self._refresh_at
        if is_due:
            self._refresh_at = now + REFRESH_SECONDS
        if is_due:  # also if the ledger cannot be written, so that revoked credentials stop working
            unread = _trouble_with(self._ledger.refresh)
            if unread is not None:
                self._trouble = unread
                self._probe_at = now + RETRY_SECONDS
        self._looked_at = time.monotonic()
        self._readiness.set(self._trouble)
        if is_due:
            self._keep_everything_up()

    def _keep_everything_up(self) -> None:
        """Do the other periodic work; a failure is logged once and does not affect readiness."""
        before = self._neglect
        self._neglect = _trouble_with(lambda: self._keep_up(self._trouble is None))
        if self._neglect is not None and self._neglect != before:
            write_log(logging.ERROR, "upkeep_failed", code=self._neglect)


def _trouble_with(attempt: Callable[[], None]) -> str | None:
    """The code of a failure; for unexpected errors the type, as their text may hold anything."""
    try:
        attempt()
    except TacitError as error:
        return error.code
    except Exception as error:  # noqa: BLE001 - else a recovery of the ledger would go unnoticed
        return type(error).__name__
    return None


N_REQUESTS_MAX: Final = 8  # at once: scrapers and probes are few


def application(registry: CollectorRegistry, is_ready: Callable[[], bool]) -> WSGIApplication:
    """The three pages as a WSGI application."""
    metrics: WSGIApplication = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        if environ["REQUEST_METHOD"] != "GET":
            return _page(start_response, HTTPStatus.METHOD_NOT_ALLOWED, "only GET")
        match environ["PATH_INFO"]:
            case "/metrics":
                # The query string could only select metrics by name; it is ignored.
                return metrics({**environ, "QUERY_STRING": ""}, start_response)
            case "/healthz":
                return _page(start_response, HTTPStatus.OK, "alive")
            case "/readyz" if is_ready():
                return _page(start_response, HTTPStatus.OK, "ready")
            case "/readyz":
                return _page(start_response, HTTPStatus.SERVICE_UNAVAILABLE, "not ready")
            case _:
                return _page(start_response, HTTPStatus.NOT_FOUND, "no such page")

    return answer


def serving_metrics(listen: str, pages: WSGIApplication) -> AbstractContextManager[str]:
    """Serve the pages; yields the address."""
    return serving_http(listen, pages, setting="metrics_listen", n_requests_max=N_REQUESTS_MAX)


def _page(start_response: StartResponse, status: HTTPStatus, text: str) -> list[bytes]:
    body = f"{text}\n".encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]


TALLY_SECONDS: Final = 60.0  # between two ledger entries with answer counts


class CountedLedger(WatchedLedger, Protocol):
    """A ledger whose entries are counted."""

    @property
    def position(self) -> tuple[int, str]:
        """How many entries this process has seen, and the digest of the last."""
        ...


class WatchedService(Protocol):
    """The part of a running service that monitoring needs."""

    @property
    def ledger(self) -> CountedLedger:
        """The ledger that the service writes."""
        ...

    def budgets(self) -> Iterable[BudgetStatus]:
        """The budget of every table."""
        ...

    def write_usage(self) -> None:
        """Write the answer counts since the last write to the ledger."""
        ...

    def sign_head(self) -> None:
        """Sign the head of the ledger, if the server has a key for that."""
        ...


@contextmanager
def watching(
    service: WatchedService, metrics: Metrics, readiness: Readiness, metrics_listen: str | None
) -> Iterator[str | None]:
    """Keep ledger, gauges, answer counts and readiness up to date; yields the metrics' address.

    Parameters
    ----------
    readiness : Readiness
        Set ready at the start and ended at the exit.
    metrics_listen : str, optional
        Where to serve metrics, as ``host:port`` of loopback; None for nowhere.

    Raises
    ------
    ConfigurationInvalid
        If the metrics cannot be served there.
    """
    tally_at = time.monotonic() + TALLY_SECONDS

    def keep_up(is_sound: bool) -> None:
        nonlocal tally_at
        metrics.show_ledger(
            service.budgets(), n_entries=service.ledger.position[0], is_writable=is_sound
        )
        if is_sound and time.monotonic() >= tally_at:
            tally_at = time.monotonic() + TALLY_SECONDS
            service.write_usage()
        service.sign_head()  # last: a failure is logged, and it is tried again in a second

    with ExitStack() as stack:
        stack.enter_context(LedgerWatch(service.ledger, readiness, keep_up))
        if metrics_listen is None:
            yield None
        else:
            pages = application(metrics.registry, lambda: readiness.is_ready)
            yield stack.enter_context(serving_metrics(metrics_listen, pages))
