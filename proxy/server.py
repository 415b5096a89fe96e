"""One port: `tacit.v1`, Flight SQL, health and reflection, behind the firewall.

Plain text is served on loopback only; any other address needs a certificate.
"""

from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from cube.refusals import ConfigurationInvalid
from proxy.answers import QueryEngine
from proxy.config_server import DEFAULT_LISTEN, host_of, is_loopback
from proxy.flight_sql import FlightSqlService
from proxy.interceptors import Firewall
from proxy.protocol import flight_pb2, flight_pb2_grpc, tacit_pb2, tacit_pb2_grpc
from proxy.public_tables import PublicTable
from proxy.sessions import Sessions
from proxy.tacit_service import TacitService

N_THREADS = 16
N_CALLS_MAX = 64  # beyond it, calls are turned away at once instead of piling up

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 4 * 2**20),  # above what the planner takes, so it explains
    ("grpc.max_send_message_length", 64 * 2**20),
    ("grpc.max_metadata_size", 16 * 2**10),
    ("grpc.max_concurrent_streams", N_CALLS_MAX),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.so_reuseport", 0),  # or a second server would silently share the port
)


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """The server's certificate chain and its key, both PEM."""

    certificate_chain: bytes
    private_key: bytes = field(repr=False)

    @classmethod
    def load(cls, certificate: Path, key: Path) -> "TlsIdentity":
        """Read both files."""
        try:
            return cls(certificate.read_bytes(), key.read_bytes())
        except OSError as error:
            raise ConfigurationInvalid(
                f"The TLS file {error.filename} cannot be read: {error.strerror}."
            ) from None


def start_server(
    engine: QueryEngine,
    listen: str,
    tls: TlsIdentity | None = None,
    public: tuple[PublicTable, ...] = (),
) -> tuple[grpc.Server, str]:
    """Serve an engine; the running server and the address it is bound to.

    Parameters
    ----------
    engine : QueryEngine
        What answers.
    listen : str
        ``host:port``, with an IPv6 host in brackets; port 0 takes any free one.
    tls : TlsIdentity, optional
        Needed unless the host is a loopback address.
    public : tuple of PublicTable
        Tables that the catalog lists beside the engine's private ones.

    Raises
    ------
    ConfigurationInvalid
        If the address is malformed, not to be had, or would be served in plain text to a network.
    """
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
    server = grpc.server(
        futures.ThreadPoolExecutor(N_THREADS, thread_name_prefix="tacit-call"),
        interceptors=[Firewall()],
        options=_OPTIONS,
        maximum_concurrent_rpcs=N_CALLS_MAX,
    )
    _add_services(server, engine, public)
    bound_port = _bind(server, listen, tls)
    server.start()
    return server, f"{listen.rpartition(':')[0]}:{bound_port}"


def _add_services(
    server: grpc.Server, engine: QueryEngine, public: tuple[PublicTable, ...]
) -> None:
    sessions = Sessions()  # one for both protocols: a session is a connection
    tacit_pb2_grpc.add_TacitServicer_to_server(TacitService(engine, sessions), server)
    flight_pb2_grpc.add_FlightServiceServicer_to_server(
        FlightSqlService(engine, sessions, public), server
    )
    names = [
        tacit_pb2.DESCRIPTOR.services_by_name["Tacit"].full_name,
        flight_pb2.DESCRIPTOR.services_by_name["FlightService"].full_name,
    ]
    vitals = health.HealthServicer()
    for name in names:
        vitals.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(vitals, server)
    reflection.enable_server_reflection(
        (*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server
    )


def _bind(server: grpc.Server, address: str, tls: TlsIdentity | None) -> int:
    try:
        if tls is None:
            return server.add_insecure_port(address)
        pair = (tls.private_key, tls.certificate_chain)
        return server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    except (RuntimeError, ValueError):
        raise ConfigurationInvalid(
            f"The server cannot listen on {address}.",
            hint="Is another process using the port, and is the certificate valid PEM?",
        ) from None
