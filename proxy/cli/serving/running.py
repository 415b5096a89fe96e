"""One process that serves: all of it is started here, and ended in the opposite order.

Its wires are started and stopped together: gRPC always, PostgreSQL's if asked for. Both serve one
engine, identify callers by one ledger and share the process fairly.

Once it serves, its owner is told where, to whom, and commands to try.
"""

import ctypes
import gc
import resource
import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from threadpoolctl import threadpool_limits

from accountant.auditor.verify import verify
from proxy.admin.ledger_admin import ServedLedgerAdmin
from proxy.api.requests import BudgetStatus
from proxy.bootstrap import Service, build
from proxy.collections.http import serving_respondents
from proxy.config.server import ServerSettings
from proxy.config.settings import Settings
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.interceptor import FailureLog
from proxy.monitoring.metrics import Metrics
from proxy.monitoring.service import Monitoring, Readiness, watching
from proxy.outer_sql.process import PROCESSES
from proxy.reporting.report import ReportFormat, make_report
from proxy.scheduling.fair_share import FairShare
from proxy.wire.postgres.connection import House
from proxy.wire.postgres.listener import PostgresListener
from proxy.wire.postgres.login import Door
from proxy.wire.server import RunningServer, services_of, start_server
from proxy.wire.tls import TlsIdentity, endpoint_hash, server_context
from proxy.workers.crew import ALONE, Crew


@dataclass(frozen=True, slots=True)
class RunningWires:
    """The wires of one process."""

    grpc: RunningServer
    postgres: PostgresListener | None

    def stop(self, grace_seconds: float) -> None:
        """Accept no more calls, give those in flight some time, and wait for the end."""
        if self.postgres is not None:
            self.postgres.stop(grace_seconds)
        self.grpc.stop(grace_seconds)


def tls_identity(server: ServerSettings) -> TlsIdentity | None:
    """The server's certificate and key, if it has them."""
    files = server.tls
    if files is None:
        return None
    return TlsIdentity.load(files.certificate, files.key, files.client_ca)


def start_wires(  # noqa: PLR0913 - the parts of a server, by name
    settings: Settings,
    service: Service,
    tls: TlsIdentity | None,
    *,
    monitoring: Monitoring,
    share: FairShare,
    crew: Crew = ALONE,
) -> RunningWires:
    """Serve a service, whose callers are known by the ledger's credentials."""
    names = [table.schema.table for table in settings.tables]
    server = settings.server
    authenticator = LedgerAuthenticator(service.ledger, allow_anonymous=server.allow_anonymous)

    def report(report_format: str) -> bytes:
        entries = list(service.ledger.entries())
        return make_report(
            entries, ReportFormat(report_format), verdict=verify(entries, has_columns=True)
        )

    grpc = start_server(
        service.engine,
        server.listen,
        authenticator=authenticator,
        tls=tls,
        public=service.public,
        admin=ServedLedgerAdmin(service.ledger, names, report),
        synthetic=service.engine.synthetic,
        features=service.features,
        monitoring=monitoring,
        times=server.times,
        share=share,
        crew=crew,
    )
    try:
        door = _door(server, tls, authenticator)
        house = House(service.engine, door, share, monitoring.watcher, server.times)
        postgres = _postgres(server, house, crew)
    except BaseException:
        grpc.stop()
        raise
    return RunningWires(grpc, postgres)


def _postgres(server: ServerSettings, house: House, crew: Crew) -> PostgresListener | None:
    if server.postgres_listen is None:
        return None
    listener = PostgresListener(house, server.postgres_listen, crew=crew)
    listener.start()
    return listener


def _door(
    server: ServerSettings, tls: TlsIdentity | None, authenticator: LedgerAuthenticator
) -> Door:
    """What logins of PostgreSQL's clients are checked against."""
    context, bound = None, None
    if server.tls is not None and tls is not None:
        files = server.tls
        context = server_context(files.certificate, files.key, files.client_ca)
        bound = endpoint_hash(tls.certificate_chain)
    return Door(authenticator, context, bound, FailureLog().note)


def greeting(
    address: str, budgets: tuple[BudgetStatus, ...], server: ServerSettings, config: Path
) -> list[str]:
    """The lines for the server's owner: its address, who has access, and what is left."""
    scheme = "grpc" if server.tls is None else "grpc+tls"
    header = '"adbc.flight.sql.authorization_header": "Bearer TOKEN"'
    shown = "" if server.allow_anonymous else f", db_kwargs={{{header}}}"
    tables = [f"  {budget.table}: {budget.left_text}" for budget in budgets]
    return [
        f"Tacit serves on {address}",
        *tables,
        who_may_come_in(server),
        f"ADBC: adbc_driver_flightsql.dbapi.connect({scheme + '://' + address!r}{shown})",
        *shell_hints(address, server, config),
        "Ctrl-C stops it.",
    ]


def postgres_hint(address: str, server: ServerSettings) -> str:
    """How PostgreSQL's clients connect."""
    host, _, port = address.rpartition(":")
    user = "anonymous" if server.allow_anonymous else "ANALYST"
    tls = "" if server.tls is None else " sslmode=require"
    shown = f"host={host.strip('[]')} port={port} dbname=tacit user={user}{tls}"
    password = "" if server.allow_anonymous else ", with a token as the password"
    return f'PostgreSQL: psql "{shown}"{password}'


def metrics_hint(address: str) -> str:
    """Where the metrics are."""
    return f"Metrics: http://{address}/metrics"


def respondents_hint(address: str) -> str:
    """Where respondents in browsers are served."""
    return f"Respondents: http://{address}/collections/"


def shell_hints(address: str, server: ServerSettings, config: Path) -> list[str]:
    """Commands that work as they are printed; with a certificate, if it is its own authority."""
    options = [f"--server {address}"]
    if server.tls is not None:
        options.append(f"--tls-ca {shlex.quote(str(server.tls.certificate))}")
    hints = []
    if not server.allow_anonymous:
        issue = f"tacit token issue --config {shlex.quote(str(config))} --analyst me --all-tables"
        hints.append(f"A first token: (umask 077; {issue} > me.token)")
        options.append("--token-file me.token")
    return [*hints, f"Shell: tacit tables {' '.join(options)}"]


def who_may_come_in(server: ServerSettings) -> str:
    """One sentence on who has access."""
    if server.allow_anonymous:
        return (
            "ANYBODY on this machine may query without a credential, as the analyst 'anonymous' "
            "(allow_anonymous)."
        )
    if server.tls is not None and server.tls.client_ca is not None:
        return "Clients need a certificate registered with `tacit token issue --certificate`."
    return "Clients need a token issued by `tacit token issue`."


# Parameters of glibc's <malloc.h>, and their values.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
BLOCK_BYTES: Final = 2**24  # smaller blocks are too frequent to request each from the system
N_ARENAS: Final = 2
GRACE_SECONDS: Final = 5.0  # for calls in flight; their purchases are in the ledger in any case


@dataclass(frozen=True, slots=True)
class Running:
    """A process that takes calls."""

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
    readiness = Readiness(services_of(service.features))
    share = FairShare()
    # What is alive now stays alive: the collector need not scan it again during queries.
    gc.freeze()
    try:
        with (
            service.advancing,
            service.renewing,
            _chores(service, crew),
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


@contextmanager
def _chores(service: Service, crew: Crew) -> Iterator[None]:
    """Run the chores that one process, the first, does for all workers, since it has the files."""
    chores = [service.keeping, *(chore for one in service.features for chore in one.chores)]
    with ExitStack() as stack:
        for chore in chores if crew.seat.place == 0 else ():
            stack.enter_context(chore)
        yield


def _for_respondents(
    settings: Settings, service: Service, crew: Crew, share: FairShare
) -> AbstractContextManager[str | None]:
    """Serve browsers, if that is wanted; of several workers, the first does it for all."""
    listen = settings.server.respondents_listen
    if listen is None or crew.seat.place != 0:
        return nullcontext()
    return serving_respondents(listen, service.collections, share)


def allow_many_connections() -> None:
    """Raise the process's limit on open files, and so on connections, as far as allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems report a limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def give_memory_back() -> None:
    """Make the C library return large blocks to the system, if it supports that.

    By default glibc keeps the memory that a heavy statement needed, for each of many threads.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, BLOCK_BYTES)
        library.mallopt(M_ARENA_MAX, N_ARENAS)
