"""A client and a server that disagree about TLS: the message names what it is, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509

from proxy.wire.tls import TlsIdentity
from tests.support.certificates import LOOPBACK, Authority
from tests.support.commands import Ended, Run
from tests.support.engine_fake import CannedEngine
from tests.support.serving import serving

ELSEWHERE = (x509.DNSName("elsewhere.example"),)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "other.pem").write_bytes(Authority("Another").certificate)
    return authority


@contextmanager
def speaking_tls(
    authority: Authority, folder: Path, *, names: tuple[x509.GeneralName, ...] = LOOPBACK,
    over: bool = False, with_clients: bool = False,
) -> Iterator[str]:  # fmt: skip
    identity = authority.sign("server", alternatives=names, over=over)
    certificate, key = identity.written(folder, "server")
    client_ca = folder / "ca.pem" if with_clients else None
    with serving(CannedEngine(), TlsIdentity.load(certificate, key, client_ca)) as address:
        yield address


def failed(ended: Ended) -> str:
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("error [tls]: ")
    return ended.err.removeprefix("error [tls]: ")


def test_a_client_without_tls_is_told_that_the_server_speaks_it(
    run: Run, authority: Authority, tmp_path: Path
) -> None:
    with speaking_tls(authority, tmp_path) as address:
        said = failed(run("tables", "--server", address))
        assert said.startswith(f"The server at {address} speaks TLS, but was asked without it.")
        assert "--tls-ca" in said
        assert run("tables", "--server", address, "--tls-ca", tmp_path / "ca.pem").code == 0


def test_a_client_with_tls_is_told_that_the_server_speaks_none(
    run: Run, authority: Authority, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    with serving(CannedEngine()) as address:
        said = failed(run("tables", "--server", address, "--tls-ca", tmp_path / "ca.pem"))
    assert said.startswith(f"The server at {address} does not speak TLS.")


@pytest.mark.parametrize(
    ("made", "trusted", "said"),
    [
        ({}, "other.pem", "is not signed by the authority in"),
        ({"over": True}, "ca.pem", "has expired"),
        ({"names": ELSEWHERE}, "ca.pem", "is for another name"),
        ({}, "broken.pem", "holds no certificate in PEM"),
        ({"with_clients": True}, "ca.pem", "requires a client certificate"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_named(  # noqa: PLR0913, PLR0917 - fixtures and a case
    run: Run, authority: Authority, tmp_path: Path, made: dict[str, bool], trusted: str, said: str
) -> None:
    (tmp_path / "broken.pem").write_text("no certificate")
    with speaking_tls(authority, tmp_path, **made) as address:  # type: ignore[arg-type]
        assert said in failed(run("tables", "--server", address, "--tls-ca", tmp_path / trusted))


def test_a_key_of_another_certificate_is_named(
    run: Run, authority: Authority, tmp_path: Path
) -> None:
    mine, _ = authority.sign("ann").written(tmp_path, "ann")
    _, other = authority.sign("bob").written(tmp_path, "bob")
    own = ("--tls-cert", mine, "--tls-key", other)
    with speaking_tls(authority, tmp_path, with_clients=True) as address:
        ended = run("tables", "--server", address, "--tls-ca", tmp_path / "ca.pem", *own)
    assert "are not a certificate in PEM and its key" in failed(ended)


def test_where_nobody_is_it_is_not_tls(run: Run, authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    for options in ((), ("--tls-ca", tmp_path / "ca.pem")):
        ended = run("tables", "--server", "127.0.0.1:1", *options)
        assert (ended.code, "[server_unreachable]" in ended.err) == (3, True)
