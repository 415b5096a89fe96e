"""Certificates made for one test: an authority, and what it signs."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

A_DAY = dt.timedelta(days=1)
LOOPBACK = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


class Identity(NamedTuple):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def written(self, folder: Path, name: str) -> tuple[Path, Path]:
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "Test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named((name,))
        self.certificate = _pem(
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def sign(
        self, *common_names: str, alternatives: Sequence[x509.GeneralName] = (), over: bool = False
    ) -> Identity:
        """An identity; one that is `over` ended yesterday."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_named(common_names), key.public_key(), over=over)
        if alternatives:
            names = x509.SubjectAlternativeName(alternatives)
            builder = builder.add_extension(names, critical=not common_names)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Identity(_pem(builder.sign(self._key, hashes.SHA256())), private)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, over: bool = False
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        ends = now - A_DAY if over else now + A_DAY
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * A_DAY)
            .not_valid_after(ends)
        )


def _named(common_names: Sequence[str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common_names])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
