"""One port: `tacit.v1`, Flight SQL, health and reflection, behind two interceptors.

The interceptors are the firewall for errors and the one for identity. Plain text is served on
loopback only; any other address needs a certificate.
"""

from collections.abc import Iterable, Sequence
from concurrent import futures
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from cube.refusals import ConfigurationInvalid
from proxy.admin import LedgerAdmin
from proxy.api import QueryEngine
from proxy.feature import Feature
from proxy.identity import Authenticator, IdentityInterceptor
from proxy.monitoring import UNWATCHED, Monitoring, Readiness
from proxy.protocol import flight_pb2, flight_pb2_grpc, tacit_pb2, tacit_pb2_grpc
from proxy.scheduling import DEFAULT_TIMES, CallTimes, FairShare, SlowClientGuard
from proxy.shared.address import DEFAULT_LISTEN, host_of, is_loopback
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import NO_TABLES, SyntheticTableService
from proxy.wire.errors import Firewall
from proxy.wire.flight import FlightSqlService
from proxy.wire.sessions import Sessions
from proxy.wire.tacit import TacitService
from proxy.wire.tls import TlsIdentity
from proxy.workers import ALONE, Crew

N_THREADS = 48  # many wait for the same commit of the ledger
N_CALLS_MAX = 64  # beyond it, calls are turned away at once instead of piling up

_SECOND: Final = 1000
_HOUR: Final = 3600 * _SECOND
_OPTIONS: Final = (
    (
        "grpc.max_receive_message_length",
        4 * 2**20,
    ),  # above the planner's limit, so that the planner can explain it
    ("grpc.max_send_message_length", 64 * 2**20),
    ("grpc.max_metadata_size", 16 * 2**10),
    ("grpc.max_concurrent_streams", N_CALLS_MAX),
    ("grpc.server_handshake_timeout_ms", 10 * _SECOND),  # TLS and HTTP/2, before the first call
    ("grpc.keepalive_time_ms", 60 * _SECOND),  # detects clients that are gone
    ("grpc.keepalive_timeout_ms", 20 * _SECOND),
    ("grpc.http2.min_ping_interval_without_data_ms", 10 * _SECOND),
    ("grpc.max_connection_idle_ms", 2 * _HOUR),  # longer than any session is remembered
    ("grpc.max_connection_age_ms", 24 * _HOUR),  # TLS checks a certificate only at the beginning
    ("grpc.max_connection_age_grace_ms", _HOUR // 6),
)
SERVICES: Final = (
    tacit_pb2.DESCRIPTOR.services_by_name["Tacit"].full_name,
    flight_pb2.DESCRIPTOR.services_by_name["FlightService"].full_name,
)


class RunningServer:
    """A running server.

    Parameters
    ----------
    server : grpc.Server
        The started gRPC server. address : str The address it is bound to, with the actual port.
    slow_clients : SlowClientGuard
        The started guard, which stops with the server.
    """

    def __init__(self, server: grpc.Server, address: str, slow_clients: SlowClientGuard) -> None:
        self.address = address
        self._server = server
        self._slow_clients = slow_clients

    def stop(self, grace_seconds: float | None = None) -> None:
        """Accept no more calls, give those in flight some time, and wait for the end."""
        self._server.stop(grace_seconds).wait()
        self._slow_clients.stop()


def start_server(  # noqa: PLR0913 - the parts of a server, by name
    engine: QueryEngine,
    listen: str,
    *,
    authenticator: Authenticator,
    tls: TlsIdentity | None = None,
    public: tuple[PublicTable, ...] = (),
    admin: LedgerAdmin | None = None,
    synthetic: SyntheticTableService = NO_TABLES,
    features: Sequence[Feature] = (),
    monitoring: Monitoring | None = None,
    times: CallTimes = DEFAULT_TIMES,
    share: FairShare | None = None,
    crew: Crew = ALONE,
) -> RunningServer:
    """Serve an engine.

    Parameters
    ----------
    engine : QueryEngine
        The engine that answers queries.
    listen : str
        ``host:port``, with an IPv6 host in brackets; port 0 takes any free one.
    authenticator : Authenticator
        Identifies callers.
    tls : TlsIdentity, optional
        Needed unless the host is a loopback address.
    public : tuple of PublicTable
        Tables that the catalog lists beside the engine's private ones.
    admin : LedgerAdmin, optional
        For owners and auditors; if None, limits and reports are not offered.
    synthetic : SyntheticTableService, optional
        The synthetic tables; if None, there are none.
    features : sequence of Feature
        With their calls and services.
    monitoring : Monitoring, optional
        The listener for calls, and the state of the health service; by default there is no
        listener, and the server counts as ready.
    times : CallTimes
        How long the work for a call may take.
    share : FairShare, optional
        The process's, if there are other wires; else one of this server's own.
    crew : Crew
        The processes that share the port, if this is one of several workers.

    Raises
    ------
    ConfigurationInvalid
        If the address is malformed, not available, or would be served in plain text to a network.
    """
    _check_address(listen, tls)
    if monitoring is None:
        monitoring = Monitoring(UNWATCHED, Readiness(services_of(features), is_ready=True))
    slow_clients = SlowClientGuard()
    server = grpc.server(
        futures.ThreadPoolExecutor(N_THREADS, thread_name_prefix="tacit-call"),
        interceptors=[
            Firewall(monitoring.watcher),
            IdentityInterceptor(authenticator, slow_clients, times, share),
        ],
        # Unless workers share it, a second server must not get the same port in silence.
        options=(*_OPTIONS, ("grpc.so_reuseport", int(not crew.seat.is_alone))),
        maximum_concurrent_rpcs=N_CALLS_MAX,
    )
    sessions = Sessions()  # one for both protocols: a session is a connection
    tacit_pb2_grpc.add_TacitServicer_to_server(
        TacitService(engine, sessions, admin, synthetic, features), server
    )
    for feature in features:
        feature.add_services(server)
    flight_pb2_grpc.add_FlightServiceServicer_to_server(
        FlightSqlService(engine, sessions, public, synthetic, crew, features), server
    )
    _add_vitals(server, monitoring.readiness, features)
    bound_port = _bind(server, listen, tls)
    slow_clients.start()
    server.start()
    return RunningServer(server, f"{listen.rpartition(':')[0]}:{bound_port}", slow_clients)


def _check_address(listen: str, tls: TlsIdentity | None) -> None:
    host = host_of(listen)
    if host is None:
        raise ConfigurationInvalid(
            f"{listen!r} is not an address.", hint=f"Write host:port, such as {DEFAULT_LISTEN}."
        )
    if tls is None and not is_loopback(host):
        raise ConfigurationInvalid(
            f"{listen} would carry answers over a network in plain text.",
            hint="Listen on 127.0.0.1, or set tls_certificate and tls_key.",
        )


def services_of(features: Iterable[Feature]) -> tuple[str, ...]:
    """The full names of all gRPC services of a server with some features."""
    return (*SERVICES, *(name for feature in features for name in feature.services))


def _add_vitals(server: grpc.Server, readiness: Readiness, features: Iterable[Feature]) -> None:
    """Health and reflection."""
    health_pb2_grpc.add_HealthServicer_to_server(readiness.servicer, server)
    reflection.enable_server_reflection(
        (*services_of(features), health.SERVICE_NAME, reflection.SERVICE_NAME), server
    )


def _bind(server: grpc.Server, address: str, tls: TlsIdentity | None) -> int:
    try:
        if tls is None:
            return server.add_insecure_port(address)
        pair = (tls.private_key, tls.certificate_chain)
        credentials = grpc.ssl_server_credentials(
            [pair],
            root_certificates=tls.client_ca,
            require_client_auth=tls.client_ca is not None,
        )
        return server.add_secure_port(address, credentials)
    except (RuntimeError, ValueError):
        raise ConfigurationInvalid(
            f"The server cannot listen on {address}.",
            hint="Is another process using the port, and are the certificates valid PEM?",
        ) from None
