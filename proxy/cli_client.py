"""The command line's side of `tacit.v1`: messages in, plain values out, errors with a code.

No terminal here and no privacy decision; the server makes those.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa

from proxy.config_server import DEFAULT_LISTEN
from proxy.interceptors import CODE_KEY
from proxy.protocol import tacit_pb2, tacit_pb2_grpc

SERVER_VARIABLE = "TACIT_SERVER"
CHANNEL_OPTIONS = (("grpc.max_receive_message_length", 64 * 2**20),)


class Declined(Exception):
    """The server said no, in its own words and with its own code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Unreachable(Exception):
    """No Tacit server answers at the address."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where the server is, and the CA certificate (PEM) to trust if it speaks TLS."""

    address: str
    tls_ca: Path | None = None

    @classmethod
    def chosen(cls, address: str | None, tls_ca: Path | None) -> "ServerAddress":
        """The address given, else the environment's, else the default."""
        found = address or os.environ.get(SERVER_VARIABLE) or DEFAULT_LISTEN
        return cls(address=found, tls_ca=tls_ca)


@dataclass(frozen=True, slots=True)
class Answer:
    """A result, and its receipt unless the statement was an EXPLAIN PRIVACY."""

    data: pa.Table
    receipt: tacit_pb2.Receipt | None


def target_of(
    half_width: float | None, confidence: float | None, epsilon: str | None
) -> tacit_pb2.Target:
    """The target named on the command line; the server checks it and fills in the rest."""
    return tacit_pb2.Target(half_width=half_width, confidence=confidence, epsilon=epsilon)


def query(server: ServerAddress, sql: str, target: tacit_pb2.Target) -> Answer:
    """Ask one SELECT."""
    pieces: list[bytes] = []
    receipt = None
    with _calling(server) as stub:
        for reply in stub.Query(tacit_pb2.QueryRequest(sql=sql, target=target)):
            pieces.append(reply.ipc)
            if reply.HasField("receipt"):
                receipt = reply.receipt
    return Answer(_table(b"".join(pieces)), receipt)


def explain(
    server: ServerAddress, sql: str, target: tacit_pb2.Target
) -> tuple[pa.Table, tacit_pb2.ExplainReply]:
    """What a SELECT would cost; charges nothing."""
    with _calling(server) as stub:
        reply = stub.Explain(tacit_pb2.ExplainRequest(sql=sql, target=target))
    return _table(reply.ipc), reply


def plan(
    server: ServerAddress, sql: str, target: tacit_pb2.Target, *, buy: bool
) -> tuple[pa.Table, tacit_pb2.PlanReply]:
    """What a file of statements costs, planned together; measured if `buy`."""
    with _calling(server) as stub:
        reply = stub.Plan(tacit_pb2.PlanRequest(sql=sql, target=target, buy=buy))
    return _table(reply.ipc), reply


def list_tables(server: ServerAddress) -> list[tacit_pb2.Table]:
    """The public schema of every table."""
    with _calling(server) as stub:
        return list(stub.ListTables(tacit_pb2.ListTablesRequest()).tables)


def get_budgets(server: ServerAddress, table: str) -> list[tacit_pb2.Budget]:
    """The budget of one table, or of every table if the name is empty."""
    with _calling(server) as stub:
        return list(stub.GetBudget(tacit_pb2.GetBudgetRequest(table=table)).budgets)


@contextmanager
def _calling(server: ServerAddress) -> Iterator[tacit_pb2_grpc.TacitStub]:
    """A stub whose errors are `Declined` and `Unreachable`."""
    with _channel(server) as channel:
        try:
            yield tacit_pb2_grpc.TacitStub(channel)
        except grpc.RpcError as error:
            raise _translated(error, server.address) from None


def _channel(server: ServerAddress) -> grpc.Channel:
    if server.tls_ca is None:
        return grpc.insecure_channel(server.address, options=CHANNEL_OPTIONS)
    try:
        authority = server.tls_ca.read_bytes()
    except OSError as error:
        raise Declined("tls", f"{server.tls_ca} cannot be read: {error.strerror}.") from None
    credentials = grpc.ssl_channel_credentials(authority)
    return grpc.secure_channel(server.address, credentials, options=CHANNEL_OPTIONS)


def _translated(error: Any, address: str) -> Declined | Unreachable:
    trailers = dict(error.trailing_metadata() or ())
    code = trailers.get(CODE_KEY)
    details = error.details() or ""
    if code is not None:
        return Declined(str(code), details.removeprefix(f"[{code}] "))
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return Unreachable(address)
    return Declined(error.code().name.lower(), details)


def _table(stream: bytes) -> pa.Table:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()
