"""The credentials that a call presents: a header and, under mutual TLS, a certificate.

Nothing here knows whether a credential is in force. A token is hashed where it is read, so that the
values returned here could be printed without harm.

The names in a client's certificate are read from the certificate itself. gRPC provides the names it
found as well, but cuts them at a zero byte: a certificate that a careless authority issued for
"ann", a zero byte and anything else would pass as Ann's. TLS has already verified that the
certificate is to be trusted.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import grpc
from cryptography import x509
from cryptography.x509.oid import NameOID

from proxy.shared.tokens import is_token, token_hash

N_CERTIFICATES_REMEMBERED: Final = 1024  # each call of a connection presents the same one
_UNREADABLE: Final = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
_KINDS: Final = (x509.DNSName, x509.RFC822Name, x509.UniformResourceIdentifier)


@lru_cache(maxsize=N_CERTIFICATES_REMEMBERED)
def names_in(certificate: bytes) -> frozenset[str]:
    """The DNS names, e-mail addresses and URIs in a PEM certificate's alternative names.

    The common name counts only where a certificate has no alternative names. The result is empty if
    there is no usable name, or if the certificate cannot be read.
    """
    try:
        read = x509.load_pem_x509_certificate(certificate)
        alternatives = _alternatives(read)
        names = _common_names(read) if alternatives is None else alternatives
    except _UNREADABLE:
        return frozenset()
    return frozenset(name for name in names if name and name.isprintable())


def _alternatives(certificate: x509.Certificate) -> list[str] | None:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return None
    return [str(name.value) for name in extension.value if isinstance(name, _KINDS)]


def _common_names(certificate: x509.Certificate) -> list[str]:
    """The common name; none if there are several, since it is unclear which is meant."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [str(found[0].value)] if len(found) == 1 else []


HEADER: Final = "authorization"
BEARER: Final = "bearer"
BASIC: Final = "basic"
_CERTIFICATE: Final = "x509_pem_cert"  # gRPC's name for it among the properties that TLS verified


class Malformed(Exception):
    """An authorization header that is not in a form that clients of this server send."""


@dataclass(frozen=True, slots=True)
class PresentedCredentials:
    """The credentials that one call presents.

    Parameters
    ----------
    token_hash : str, optional
        The hash of the token in its header.
    analyst : str, optional
        The user's name, if the token was sent as a password.
    certificate : frozenset of str, optional
        The names in the client's certificate; None if the client presented none.
    """

    token_hash: str | None = None
    analyst: str | None = None
    certificate: frozenset[str] | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether the call presents no credential at all."""
        return self.token_hash is None and self.certificate is None


def presented_by(context: grpc.ServicerContext, *, may_be_basic: bool) -> PresentedCredentials:
    """The credentials that a call presents.

    Raises
    ------
    Malformed
        If its header is neither ``Bearer TOKEN`` nor, where that is allowed, ``Basic`` with a name
        and a token; or if the header is there twice.
    """
    certificate = _certificate(context.auth_context())
    header = _header(context)
    if header is None:
        return PresentedCredentials(certificate=certificate)
    analyst, token = _credentials(header, may_be_basic=may_be_basic)
    return PresentedCredentials(token_hash(token), analyst, certificate)


def presented_token(context: grpc.ServicerContext) -> str | None:
    """The token in a call's header, unhashed; for the one reply that returns it."""
    header = _header(context)
    return None if header is None else _credentials(header, may_be_basic=True)[1]


def _header(context: grpc.ServicerContext) -> str | None:
    found = [value for key, value in context.invocation_metadata() or () if key == HEADER]
    if len(found) > 1:
        raise Malformed
    if not found:
        return None
    return found[0] if isinstance(found[0], str) else found[0].decode("ascii", errors="replace")


def _credentials(header: str, *, may_be_basic: bool) -> tuple[str | None, str]:
    """The user's name, if the header has one, and the token."""
    scheme, _, value = header.partition(" ")
    analyst: str | None = None
    token = value.strip(" ")
    if scheme.lower() == BASIC and may_be_basic:
        padded = token + "=" * (-len(token) % 4)  # some clients, ADBC among them, omit the padding
        try:
            text = base64.b64decode(padded, validate=True).decode("utf-8")
        except (binascii.Error, ValueError):
            raise Malformed from None
        analyst, colon, token = text.rpartition(":")  # a token has no colon; a name may have
        if not colon:
            raise Malformed
    elif scheme.lower() != BEARER:
        raise Malformed
    if not is_token(token):
        raise Malformed
    return analyst, token


def _certificate(auth_context: Mapping[str, object]) -> frozenset[str] | None:
    shown = auth_context.get(_CERTIFICATE)
    if not isinstance(shown, list | tuple) or not shown:
        return None
    return names_in(shown[0])
