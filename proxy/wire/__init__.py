"""The protocols on one port: gRPC and Flight SQL in, refusals as statuses out.

Here: messages, translated into the requests of `api/` and back. Not here: any decision on privacy,
cost or rights.
"""

from proxy.wire.refusal_details import CODE_KEY, detail_in
from proxy.wire.server import SERVICES, RunningServer, start_server
from proxy.wire.tls import TlsIdentity, endpoint_hash, server_context

__all__ = [
    "CODE_KEY",
    "SERVICES",
    "RunningServer",
    "TlsIdentity",
    "detail_in",
    "endpoint_hash",
    "server_context",
    "start_server",
]
