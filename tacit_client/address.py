"""Describes a server and the caller: the driver's options, and a gRPC channel to `tacit.v1`.

The options are those of the Flight SQL driver; the channel is for the calls that the driver cannot
make. A token does not cross a network in plain text: without TLS only this machine gets it.
"""

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from adbc_driver_manager import AdbcStatusCode

from tacit_client.errors import InterfaceError

SERVER_VARIABLE: Final = "TACIT_SERVER"
TOKEN_VARIABLE: Final = "TACIT_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_SERVER: Final = "127.0.0.1:31337"
PLAIN_SCHEMES: Final = frozenset({"", "grpc", "grpc+tcp"})
TLS_SCHEME: Final = "grpc+tls"
_OPTION: Final = "adbc.flight.sql."


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, and the credentials to present to it.

    Parameters
    ----------
    host : str
    port : int
    tls : bool
    token : str, optional
    user : str, optional
        The analyst's name; the server refuses a token that is not theirs.
    tls_root_certs, tls_cert, tls_key : str, optional
        PEM texts: the CA to trust, the client's own certificate and its key.
    """

    host: str
    port: int
    tls: bool = False
    token: str | None = field(default=None, repr=False)
    user: str | None = None
    tls_root_certs: str | None = field(default=None, repr=False)
    tls_cert: str | None = field(default=None, repr=False)
    tls_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.token is not None and not self.tls and not _is_loopback(self.host):
            raise refused(
                f"The token would be sent to {self.host} in plain text. Use TLS: connect to "
                f"{TLS_SCHEME}://{self.target}. Pass tls_root_certs= if the server's "
                "certificate is from a CA of your own."
            )
        if self.user is not None and self.token is None:
            raise refused("A user needs a token. Pass it as token= or set TACIT_TOKEN.")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise refused("tls_cert= and tls_key= must be given together.")

    @property
    def target(self) -> str:
        """Host and port as gRPC names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def uri(self) -> str:
        """As the driver wants it."""
        return f"{TLS_SCHEME if self.tls else 'grpc'}://{self.target}"

    @property
    def options(self) -> dict[str, str]:
        """The driver's options."""
        found = {
            f"{_OPTION}client_option.tls_root_certs": self.tls_root_certs,
            f"{_OPTION}client_option.mtls_cert_chain": self.tls_cert,
            f"{_OPTION}client_option.mtls_private_key": self.tls_key,
        }
        if self.user is not None:
            found |= {"username": self.user, "password": self.token}
        elif self.token is not None:
            found[f"{_OPTION}authorization_header"] = f"Bearer {self.token}"
        return {name: value for name, value in found.items() if value is not None}


def address_of(  # noqa: PLR0913 - one parameter for each of `connect`'s
    server: str | None,
    *,
    token: str | None,
    user: str | None,
    tls: bool | None,
    tls_root_certs: str | Path | None,
    tls_cert: str | Path | None,
    tls_key: str | Path | None,
) -> Address:
    """The address that these name, or the environment where they name none."""
    text = server or os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER
    parts = urlsplit(text if "://" in text else f"//{text}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.path not in {"", "/"}:
        raise refused(
            f"{text!r} is not a server address. Write HOST:PORT or {TLS_SCHEME}://HOST:PORT."
        )
    if parts.scheme not in PLAIN_SCHEMES | {TLS_SCHEME}:
        raise refused(f"The scheme {parts.scheme!r} is not supported. Use grpc or {TLS_SCHEME}.")
    has_tls = parts.scheme == TLS_SCHEME or tls_root_certs is not None or tls_cert is not None
    found = token or os.environ.get(TOKEN_VARIABLE) or None
    return Address(
        host=host,
        port=port,
        tls=has_tls if tls is None else tls,
        token=None if found is None else found.strip(),
        user=user,
        tls_root_certs=_pem(tls_root_certs),
        tls_cert=_pem(tls_cert),
        tls_key=_pem(tls_key),
    )


def refused(message: str) -> InterfaceError:
    """A mistake in the call itself, which no server was asked about."""
    return InterfaceError(message, status_code=AdbcStatusCode.INVALID_ARGUMENT)


def _pem(given: str | Path | None) -> str | None:
    """PEM text, given as such or by a file's name."""
    if given is None or (isinstance(given, str) and given.lstrip().startswith("-----BEGIN")):
        return given
    try:
        return Path(given).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise refused(f"{given} cannot be read: {error}.") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


MESSAGE_BYTES_MAX: Final = 64 * 2**20


def channel_to(grpc: Any, address: Address) -> Any:
    """A channel to a server, by the module that makes them; to be closed."""
    options = [
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.enable_http_proxy", 0),  # plain text to this machine must not leave it
    ]
    if not address.tls:
        return grpc.insecure_channel(address.target, options=options)
    pems = (address.tls_root_certs, address.tls_key, address.tls_cert)
    credentials = grpc.ssl_channel_credentials(
        *(None if pem is None else pem.encode() for pem in pems)
    )
    return grpc.secure_channel(address.target, credentials, options=options)


def credentials_of(address: Address) -> list[tuple[str, str]]:
    """The metadata that presents the token, if there is one."""
    return [] if address.token is None else [("authorization", f"Bearer {address.token}")]
