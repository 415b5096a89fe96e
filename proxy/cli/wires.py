"""The wires of `tacit serve`, started and stopped together: gRPC always, PostgreSQL's if asked for.

Both serve one engine, identify callers by one ledger and share the process fairly.
"""

from dataclasses import dataclass

from accountant.auditor.verify import verify
from proxy.admin.ledger_admin import ServedLedgerAdmin
from proxy.bootstrap import Service
from proxy.config.server import ServerSettings
from proxy.config.settings import Settings
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.interceptor import FailureLog
from proxy.monitoring.health import Monitoring
from proxy.reporting.make import ReportFormat, make_report
from proxy.scheduling.fair_share import FairShare
from proxy.wire.postgres.connection import House
from proxy.wire.postgres.listener import PostgresListener
from proxy.wire.postgres.login import Door
from proxy.wire.server import RunningServer, start_server
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
        collections=service.collections,
        streams=service.engine.streams,
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
