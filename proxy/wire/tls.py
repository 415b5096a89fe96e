"""The server's certificate and key, for the wires.

gRPC takes the bytes; the PostgreSQL wire a context of Python's own, which is made here.
"""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import SignatureAlgorithmOID

from cube.refusals import ConfigurationInvalid

_WEAK = (hashes.MD5, hashes.SHA1)


@dataclass(frozen=True, slots=True)
class TlsIdentity:
    """The server's certificate chain and its key, both PEM.

    With `client_ca`, every client must present a certificate signed by one of these authorities.
    """

    certificate_chain: bytes
    private_key: bytes = field(repr=False)
    client_ca: bytes | None = None

    @classmethod
    def load(cls, certificate: Path, key: Path, client_ca: Path | None = None) -> "TlsIdentity":
        """Read the files."""
        try:
            authorities = None if client_ca is None else client_ca.read_bytes()
            return cls(certificate.read_bytes(), key.read_bytes(), authorities)
        except OSError as error:
            raise ConfigurationInvalid(
                f"The TLS file {error.filename} cannot be read: {error.strerror}."
            ) from None


def server_context(certificate: Path, key: Path, client_ca: Path | None) -> ssl.SSLContext:
    """A context for TLS 1.2 and newer; with `client_ca`, clients must show a certificate.

    Raises
    ------
    ConfigurationInvalid
        If the files cannot be read, or do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # With a passphrase to try, the library asks for none on the terminal.
        context.load_cert_chain(certificate, key, password="")
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError:  # an error of TLS is one
        raise ConfigurationInvalid(
            "The TLS files cannot be used.",
            hint="Are the certificates valid PEM, and does the key belong to the certificate?",
        ) from None
    return context


def endpoint_hash(certificate_chain: bytes) -> bytes | None:
    """What SCRAM binds a login to: the hash of the server's certificate (RFC 5929, section 4).

    By the hash of the certificate's signature, SHA-256 in place of weaker ones. None if clients
    would not find that hash: Ed25519 has none, and RSASSA-PSS has it among its parameters, where
    libpq before version 16 does not look.
    """
    certificate = x509.load_pem_x509_certificate(certificate_chain)
    algorithm = certificate.signature_hash_algorithm
    if algorithm is None or certificate.signature_algorithm_oid == SignatureAlgorithmOID.RSASSA_PSS:
        return None
    chosen = hashes.SHA256() if isinstance(algorithm, _WEAK) else algorithm
    digest = hashes.Hash(chosen)
    digest.update(certificate.public_bytes(Encoding.DER))
    return digest.finalize()
