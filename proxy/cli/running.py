"""One process that serves: all of it is started here, and ended in the opposite order."""

import ctypes
import gc
import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from threadpoolctl import threadpool_limits

from proxy.bootstrap import Service, build
from proxy.cli.greeting import greeting, metrics_hint, postgres_hint, respondents_hint
from proxy.cli.wires import RunningWires, start_wires, tls_identity
from proxy.collections.http import serving_respondents
from proxy.config.settings import Settings
from proxy.engine.sql_process import PROCESSES
from proxy.monitoring.health import Monitoring, Readiness
from proxy.monitoring.metrics import Metrics
from proxy.monitoring.service import watching
from proxy.scheduling.fair_share import FairShare
from proxy.wire.server import SERVICES
from proxy.workers.crew import ALONE, Crew

# Parameters of glibc's <malloc.h>, and their values.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
BLOCK_BYTES: Final = 2**24  # smaller blocks are too frequent to request each from the system
N_ARENAS: Final = 2
GRACE_SECONDS: Final = 5.0  # for calls in flight; their purchases are in the ledger in any case


@dataclass(frozen=True, slots=True)
class Running:
    """A process that takes calls.

    Parameters
    ----------
    settings : Settings
    service : Service
    metrics : Metrics
    readiness : Readiness
    wires : RunningWires
    metrics_address, respondents_address : str, optional
    """

    settings: Settings
    service: Service
    metrics: Metrics
    readiness: Readiness
    wires: RunningWires
    metrics_address: str | None
    respondents_address: str | None

    def greeting(self, config: Path) -> list[str]:
        """The lines for the server's owner."""
        server = self.settings.server
        told = greeting(self.wires.grpc.address, self.service.budgets(), server, config)
        if self.wires.postgres is not None:
            told.insert(-1, postgres_hint(self.wires.postgres.address, server))
        if self.metrics_address is not None:
            told.insert(-1, metrics_hint(self.metrics_address))
        if self.respondents_address is not None:
            told.insert(-1, respondents_hint(self.respondents_address))
        return told


@contextmanager
def running(settings: Settings, crew: Crew = ALONE) -> Iterator[Running]:
    """Serve, in this process, until the block is left; calls in flight are given some time then.

    Parameters
    ----------
    settings : Settings
    crew : Crew
        The workers of the server, if this process is one of several.

    Raises
    ------
    CannotStart
    """
    # Requests run in parallel. On matrices this small, several threads of linear algebra per
    # request would wait for one another longer than they compute.
    threadpool_limits(limits=1)
    give_memory_back()
    allow_many_connections()
    tls = tls_identity(settings.server)
    metrics = Metrics(table.schema.table for table in settings.tables)
    PROCESSES.start()  # beside the tables
    service = build(settings, metrics, crew)
    readiness = Readiness(SERVICES)
    share = FairShare()
    # What is alive now stays alive: the collector need not scan it again during queries.
    gc.freeze()
    try:
        with (
            service.advancing,
            service.keeping if crew.seat.place == 0 else nullcontext(),  # one file, one writer
            service.renewing,
            service.forgetting if crew.seat.place == 0 else nullcontext(),  # one file again
            service.turning if crew.seat.place == 0 else nullcontext(),  # it holds the states
            watching(
                service, metrics, readiness, settings.server.metrics_listen
            ) as metrics_address,
            _for_respondents(settings, service, crew, share) as respondents,
        ):
            monitoring = Monitoring(metrics, readiness)
            wires = start_wires(
                settings, service, tls, monitoring=monitoring, share=share, crew=crew
            )
            address = wires.grpc.address
            try:
                yield Running(
                    settings, service, metrics, readiness, wires, metrics_address, respondents
                )
                readiness.end()
            finally:
                wires.stop(GRACE_SECONDS)
                structlog.get_logger("tacit").info("stopped", address=address)
    finally:
        service.close()
        gc.unfreeze()  # otherwise objects of native modules would be reported as leaked at exit


def _for_respondents(
    settings: Settings, service: Service, crew: Crew, share: FairShare
) -> AbstractContextManager[str | None]:
    """Serve browsers, if that is wanted; of several workers, the first does it for all."""
    listen = settings.server.respondents_listen
    if listen is None or service.collections is None or crew.seat.place != 0:
        return nullcontext()
    return serving_respondents(listen, service.collections, share)


def allow_many_connections() -> None:
    """Raise the process's limit on open files, and so on connections, as far as allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems report a limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def give_memory_back() -> None:
    """Make the C library return large blocks to the system, if it supports that.

    By default glibc keeps what one heavy statement needed, for each of many threads.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, BLOCK_BYTES)
        library.mallopt(M_ARENA_MAX, N_ARENAS)
