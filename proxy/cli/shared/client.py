"""The command line's client of `tacit.v1`: messages in, plain values out, errors with a code.

No terminal here and no privacy decision; the server makes those.

If no connection came about: why, whether the two sides disagree about TLS, and on what. gRPC says
of every failed connection only that the server is unavailable. So the handshake is made again,
alone, and nothing is sent on it: no credential and no statement.
"""

import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import grpc
import pyarrow as pa

from cube.refusals import ConfigurationInvalid
from proxy.cli.shared.failures import Declined, Unreachable
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.shared.address import DEFAULT_LISTEN, host_of, is_loopback
from proxy.shared.refusal_details import CODE_KEY, detail_in
from proxy.shared.tokens import is_token

SECONDS_MAX: Final = 3.0  # for each step, after gRPC has given up
HTTP_2: Final = "h2"
# OpenSSL's codes of a failed verification, as in <openssl/x509_vfy.h>.
NOT_YET_VALID: Final = 9
EXPIRED: Final = 10
HOSTNAME_MISMATCH: Final = 62
IP_ADDRESS_MISMATCH: Final = 64


def disagreement(
    host: str, port: int, tls_ca: Path | None, identity: tuple[Path, Path] | None
) -> str | None:
    """What the client and the server disagree about; None if it is not TLS.

    Parameters
    ----------
    tls_ca : Path, optional
        The certificate of the authority that the client trusts; None for a client without TLS.
    identity : tuple of Path, optional
        The client's certificate and its key.
    """
    address = f"{host}:{port}"
    if tls_ca is None:
        if not _speaks_tls(host, port):
            return None
        return (
            f"The server at {address} speaks TLS, but was asked without it. Give the certificate "
            "of its authority with --tls-ca FILE."
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols([HTTP_2])
    try:
        context.load_verify_locations(tls_ca)
    except (ssl.SSLError, OSError):
        return f"{tls_ca} holds no certificate in PEM."
    if identity is not None:
        try:
            context.load_cert_chain(*identity)
        except (ssl.SSLError, OSError):
            return f"{identity[0]} and {identity[1]} are not a certificate in PEM and its key."
    return _refusal(context, host, port, tls_ca)


def _refusal(context: ssl.SSLContext, host: str, port: int, tls_ca: Path) -> str | None:
    """Why a handshake that verifies the server fails; None if it succeeds, or no server answers."""
    address = f"{host}:{port}"
    try:
        plain = socket.create_connection((host, port), SECONDS_MAX)
    except OSError:
        return None
    with plain:
        try:
            wrapped = context.wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            return _unverified(address, error, tls_ca)
        except OSError as error:
            return _no_tls(address, error)
        with wrapped:
            return None if _goes_on(wrapped) else _wants_certificate(address)


def _goes_on(wrapped: ssl.SSLSocket) -> bool:
    """Whether a server speaks after the handshake, which a missing certificate does not stop."""
    try:
        return wrapped.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def _wants_certificate(address: str) -> str:
    return (
        f"The server at {address} requires a client certificate of an authority that it knows. "
        "Give it with --tls-cert and --tls-key."
    )


def _no_tls(address: str, error: OSError) -> str | None:
    """The server hung up during the handshake: it wants a certificate, or does not speak TLS."""
    if isinstance(error, TimeoutError):
        return None
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return _wants_certificate(address)
    return f"The server at {address} does not speak TLS. Ask it without --tls-ca."


def _unverified(address: str, error: ssl.SSLCertVerificationError, tls_ca: Path) -> str:
    """What is wrong with the server's certificate."""
    match error.verify_code:
        case code if code == EXPIRED:
            return f"The certificate of the server at {address} has expired. Its owner renews it."
        case code if code == NOT_YET_VALID:
            return f"The certificate of the server at {address} is not valid yet. Check the clock."
        case code if code in {HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH}:
            return (
                f"The certificate of the server at {address} is for another name. Use a name that "
                "it holds with --server."
            )
        case _:
            return (
                f"The certificate of the server at {address} is not signed by the authority in "
                f"{tls_ca}. Give the certificate of its own authority with --tls-ca."
            )


def _speaks_tls(host: str, port: int) -> bool:
    """Whether any server answers to TLS, verified or not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent, and nothing that it says is used
    context.set_alpn_protocols([HTTP_2])
    try:
        with (
            socket.create_connection((host, port), SECONDS_MAX) as plain,
            context.wrap_socket(plain),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


SERVER_VARIABLE: Final = "TACIT_SERVER"
ReplyT = TypeVar("ReplyT", tacit_pb2.ExplainReply, tacit_pb2.PlanReply)

TOKEN_VARIABLE: Final = "TACIT_TOKEN"  # noqa: S105 - the name of a variable
CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 64 * 2**20),
    ("grpc.enable_http_proxy", 0),  # plain text to this machine must not leave it
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """The address of the server, and the credentials to present.

    Parameters
    ----------
    address : str
        ``host:port``.
    tls_ca : Path, optional
        The CA certificate (PEM) to trust; if given, TLS is used.
    tls_cert, tls_key : Path, optional
        The client's own certificate and its key (PEM).
    channel : grpc.Channel, optional
        What calls go over, if several of them are to be one session; see `kept_open`.

    Raises
    ------
    ConfigurationInvalid
        If the token would cross a network in plain text, or a certificate lacks its key or TLS.
    """

    address: str
    tls_ca: Path | None = None
    token: str | None = field(default=None, repr=False)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    channel: grpc.Channel | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        host = host_of(self.address)
        if self.token is not None and self.tls_ca is None and not (host and is_loopback(host)):
            raise ConfigurationInvalid(
                f"The token would be sent to {self.address} in plain text.",
                hint="Use TLS: give the CA certificate to trust with --tls-ca.",
            )
        if len({self.tls_cert is None, self.tls_key is None}) > 1:
            raise ConfigurationInvalid("--tls-cert and --tls-key go together.")
        if self.tls_cert is not None and self.tls_ca is None:
            raise ConfigurationInvalid("A client certificate needs TLS.", hint="Add --tls-ca.")

    @classmethod
    def chosen(
        cls,
        address: str | None = None,
        tls_ca: Path | None = None,
        token_file: Path | None = None,
        tls_cert: Path | None = None,
        tls_key: Path | None = None,
    ) -> "ServerAddress":
        """The values from the command line, or address and token from the environment."""
        return cls(
            address=address or os.environ.get(SERVER_VARIABLE) or DEFAULT_LISTEN,
            tls_ca=tls_ca,
            token=_token(token_file),
            tls_cert=tls_cert,
            tls_key=tls_key,
        )

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of every call."""
        return () if self.token is None else (("authorization", f"Bearer {self.token}"),)

    def disagreement(self) -> str | None:
        """What the server and this client disagree about, if that is TLS; asks the server."""
        host, (_, _, port) = host_of(self.address), self.address.rpartition(":")
        if host is None:
            return None
        own = (self.tls_cert, self.tls_key)
        identity = None if own[0] is None or own[1] is None else (own[0], own[1])
        return disagreement(host, int(port), self.tls_ca, identity)


@dataclass(frozen=True, slots=True)
class ReceivedResult:
    """A result, and its receipt unless the statement was an EXPLAIN PRIVACY."""

    data: pa.Table
    receipt: tacit_pb2.Receipt | None


@dataclass(frozen=True, slots=True)
class ReceivedPrice(Generic[ReplyT]):
    """What statements cost, or would cost: a table of it, and the server's whole reply."""

    data: pa.Table
    reply: ReplyT


def target_of(  # noqa: PLR0913 - one parameter per option
    half_width: float | None,
    confidence: float | None,
    epsilon: str | None,
    *,
    relative: float | None = None,
    at_least: float | None = None,
    fallback: str | None = None,
) -> tacit_pb2.Target:
    """The target given on the command line; the server checks it and fills in the rest."""
    return tacit_pb2.Target(
        half_width=half_width,
        confidence=confidence,
        epsilon=epsilon,
        relative=relative,
        at_least=at_least,
        fallback=fallback,
    )


def query(
    server: ServerAddress,
    sql: str,
    target: tacit_pb2.Target,
    parameters: Sequence[tacit_pb2.Parameter] = (),
) -> ReceivedResult:
    """Answer one SELECT."""
    pieces: list[bytes] = []
    receipt = None
    with calling(server) as stub:
        request = tacit_pb2.QueryRequest(sql=sql, target=target, parameters=parameters)
        for reply in stub.Query(request, metadata=server.metadata):
            pieces.append(reply.ipc)
            if reply.HasField("receipt"):
                receipt = reply.receipt
    return ReceivedResult(ipc_table(b"".join(pieces)), receipt)


def explain(
    server: ServerAddress,
    sql: str,
    target: tacit_pb2.Target,
    parameters: Sequence[tacit_pb2.Parameter] = (),
) -> ReceivedPrice[tacit_pb2.ExplainReply]:
    """What a SELECT would cost; charges nothing."""
    with calling(server) as stub:
        request = tacit_pb2.ExplainRequest(sql=sql, target=target, parameters=parameters)
        reply = stub.Explain(request, metadata=server.metadata)
    return ReceivedPrice(ipc_table(reply.ipc), reply)


def plan(
    server: ServerAddress, sql: str, target: tacit_pb2.Target, *, buy: bool
) -> ReceivedPrice[tacit_pb2.PlanReply]:
    """What a file of statements costs, planned together; measured if `buy`."""
    with calling(server) as stub:
        request = tacit_pb2.PlanRequest(sql=sql, target=target, buy=buy)
        reply = stub.Plan(request, metadata=server.metadata)
    return ReceivedPrice(ipc_table(reply.ipc), reply)


def list_tables(server: ServerAddress) -> list[tacit_pb2.Table]:
    """The public schema of every table."""
    with calling(server) as stub:
        reply = stub.ListTables(tacit_pb2.ListTablesRequest(), metadata=server.metadata)
    return list(reply.tables)


def get_budgets(server: ServerAddress, table: str) -> list[tacit_pb2.Budget]:
    """The budget of one table, or of every table if the name is empty."""
    with calling(server) as stub:
        request = tacit_pb2.GetBudgetRequest(table=table)
        reply = stub.GetBudget(request, metadata=server.metadata)
    return list(reply.budgets)


@contextmanager
def calling(server: ServerAddress) -> Iterator[tacit_pb2_grpc.TacitStub]:
    """A stub whose errors are `Declined` and `Unreachable`."""
    with _calling_over(server) as channel:
        yield tacit_pb2_grpc.TacitStub(channel)


@contextmanager
def responding(server: ServerAddress) -> Iterator[tacit_pb2_grpc.RespondentsStub]:
    """The same for respondents, whose calls take no credential."""
    with _calling_over(server) as channel:
        yield tacit_pb2_grpc.RespondentsStub(channel)


@contextmanager
def _calling_over(server: ServerAddress) -> Iterator[grpc.Channel]:
    with nullcontext(server.channel) if server.channel is not None else _channel(server) as channel:
        try:
            yield channel
        except grpc.RpcError as error:
            raise _translated(error, server) from None


@contextmanager
def kept_open(server: ServerAddress) -> Iterator[ServerAddress]:
    """The server with one channel for all calls, so that they are one session."""
    with _channel(server) as channel:
        yield replace(server, channel=channel)


def _channel(server: ServerAddress) -> grpc.Channel:
    if server.tls_ca is None:
        return grpc.insecure_channel(server.address, options=CHANNEL_OPTIONS)
    try:
        credentials = grpc.ssl_channel_credentials(
            server.tls_ca.read_bytes(),
            private_key=None if server.tls_key is None else server.tls_key.read_bytes(),
            certificate_chain=None if server.tls_cert is None else server.tls_cert.read_bytes(),
        )
    except OSError as error:
        raise Declined("tls", f"{error.filename} cannot be read: {error.strerror}.") from None
    return grpc.secure_channel(server.address, credentials, options=CHANNEL_OPTIONS)


def _token(file: Path | None) -> str | None:
    """The token from a file or the environment; never from the command line, which others see."""
    if file is None:
        text, where = os.environ.get(TOKEN_VARIABLE), TOKEN_VARIABLE
    else:
        where = str(file)
        try:
            text = file.read_text(encoding="ascii")
        except OSError as error:
            raise ConfigurationInvalid(f"{file} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            text = "?"
    if text is None:
        return None
    if not is_token(text.strip()):
        raise ConfigurationInvalid(
            f"There is no token in {where}.", hint="`tacit token issue` prints one."
        )
    return text.strip()


def _translated(error: Any, server: ServerAddress) -> Declined | Unreachable:
    trailers = dict(error.trailing_metadata() or ())
    code = trailers.get(CODE_KEY)
    details = error.details() or ""
    if code is not None:
        return Declined(str(code), details.removeprefix(f"[{code}] "), detail_in(trailers))
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return Unreachable(server.address, server.disagreement())
    return Declined(error.code().name.lower(), details)


def ipc_table(stream: bytes) -> pa.Table:
    """The table that an Arrow IPC stream holds."""
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_all()
