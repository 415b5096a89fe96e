"""A context for TLS from the owner's files, and what SCRAM binds a login to."""

import datetime as dt
import hashlib
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID

from cube.refusals import ConfigurationInvalid
from proxy.wire.tls import endpoint_hash, server_context
from tests.support.certificates import LOOPBACK, Authority


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return Authority().sign("server", alternatives=LOOPBACK).written(tmp_path, "server")


def test_nothing_older_than_tls_1_2_is_spoken(files: tuple[Path, Path]) -> None:
    context = server_context(*files, None)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_NONE


def test_with_an_authority_a_certificate_is_needed(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(Authority().certificate)
    assert server_context(*files, authority).verify_mode == ssl.CERT_REQUIRED


def test_files_that_cannot_be_used_are_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, key = files
    (tmp_path / "text").write_text("no PEM")
    _, other = Authority().sign("other").written(tmp_path, "other")
    for chosen in ((tmp_path / "text", key), (certificate, other), (tmp_path / "none", key)):
        with pytest.raises(ConfigurationInvalid, match="TLS files cannot be used"):
            server_context(*chosen, None)
    with pytest.raises(ConfigurationInvalid, match="TLS files cannot be used"):
        server_context(certificate, key, tmp_path / "text")


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    key = serialization.load_pem_private_key(files[1].read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"a passphrase"),
        )
    )
    with pytest.raises(ConfigurationInvalid, match="TLS files cannot be used"):
        server_context(files[0], locked, None)


def test_the_hash_of_a_certificate_is_that_of_its_signature(files: tuple[Path, Path]) -> None:
    text = files[0].read_bytes()
    der = x509.load_pem_x509_certificate(text).public_bytes(serialization.Encoding.DER)
    assert endpoint_hash(text) == hashlib.sha256(der).digest()
    assert endpoint_hash(text + Authority().certificate) == hashlib.sha256(der).digest()


def own(key: Any, algorithm: Any, scheme: Any = None) -> bytes:
    """A certificate that its own key signed."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
    )
    signed = builder.sign(key, algorithm, rsa_padding=scheme)
    return signed.public_bytes(serialization.Encoding.PEM)


def test_a_stronger_hash_is_kept_and_what_has_none_binds_nothing() -> None:
    text = own(ec.generate_private_key(ec.SECP384R1()), hashes.SHA384())
    der = ssl.PEM_cert_to_DER_cert(text.decode())
    assert endpoint_hash(text) == hashlib.sha384(der).digest()
    assert endpoint_hash(own(ed25519.Ed25519PrivateKey.generate(), None)) is None
    key = rsa.generate_private_key(65537, 2048)
    assert endpoint_hash(own(key, hashes.SHA256())) is not None
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
    assert endpoint_hash(own(key, hashes.SHA256(), pss)) is None
