"""Why no connection came about: whether the two sides disagree about TLS, and on what.

gRPC says of every failed connection only that the server is unavailable. So the handshake is made
again, alone, and nothing is sent on it: no credential and no statement.
"""

import socket
import ssl
from pathlib import Path
from typing import Final

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
    host : str
    port : int
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
            f"The server at {address} speaks TLS, and was asked without. "
            "Give the certificate of its authority with --tls-ca FILE."
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
    """What stops a handshake that verifies the server; None if it succeeds, or nobody is there."""
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
    """Whether a server answers to TLS, whoever it is."""
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
