"""The names in a client's certificate, read from the certificate itself.

gRPC provides the names it found as well, but cuts them at a zero byte: a certificate that a
careless authority issued for "ann", a zero byte and anything else would pass as Ann's. TLS has
already verified that the certificate is to be trusted.
"""

from functools import lru_cache
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

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
