"""A real server on a free loopback port for the length of a `with` block."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from proxy.answers import QueryEngine
from proxy.server import TlsIdentity, start_server


@contextmanager
def serving(engine: QueryEngine, tls: TlsIdentity | None = None) -> Iterator[str]:
    server, address = start_server(engine, "127.0.0.1:0", tls)
    try:
        yield address
    finally:
        server.stop(None).wait()


@contextmanager
def channel_to(engine: QueryEngine) -> Iterator[grpc.Channel]:
    with serving(engine) as address, grpc.insecure_channel(address) as channel:
        yield channel
