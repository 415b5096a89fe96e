"""Addresses and credentials: what is understood, and what is not sent."""

from pathlib import Path

import pytest

import tacit_client
from tacit_client.accuracy import Accuracy, exact_text
from tacit_client.address import Address, address_of

SHOWN = "tacit_x"
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def address(server: str | None = None, **given: object) -> Address:
    names = ("token", "user", "tls", "tls_root_certs", "tls_cert", "tls_key")
    return address_of(server, **{name: given.get(name) for name in names})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("localhost:1", "grpc://localhost:1"),
        ("grpc://localhost:1", "grpc://localhost:1"),
        ("grpc+tcp://localhost:1/", "grpc://localhost:1"),
        ("grpc+tls://example.org:1", "grpc+tls://example.org:1"),
        ("[::1]:1", "grpc://[::1]:1"),
        (None, "grpc://127.0.0.1:31337"),
    ],
)
def test_addresses_are_read(text: str | None, uri: str) -> None:
    assert address(text).uri == uri


@pytest.mark.parametrize("text", ["localhost", "localhost:x", "http://a:1", "a:1/b", ":1"])
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(tacit_client.InterfaceError):
        address(text)


def test_a_token_does_not_cross_a_network_in_plain_text() -> None:
    with pytest.raises(tacit_client.InterfaceError, match="plain text"):
        address("example.org:1", token=SHOWN)
    assert address("127.0.0.1:1", token=SHOWN).options == {
        "adbc.flight.sql.authorization_header": f"Bearer {SHOWN}"
    }
    sent = address("grpc+tls://example.org:1", token=SHOWN, tls_root_certs=PEM).options
    assert sent["adbc.flight.sql.client_option.tls_root_certs"] == PEM
    assert SHOWN not in repr(address("127.0.0.1:1", token=SHOWN))


def test_certificates_come_as_text_or_by_the_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(PEM)
    for given in (PEM, tmp_path / "ca.pem", str(tmp_path / "ca.pem")):
        assert address("a:1", tls_root_certs=given).tls_root_certs == PEM
        assert address("a:1", tls_root_certs=given).tls
    with pytest.raises(tacit_client.InterfaceError, match="cannot be read"):
        address("a:1", tls_root_certs=tmp_path / "none.pem")
    with pytest.raises(tacit_client.InterfaceError, match="given together"):
        address("a:1", tls_cert=PEM)
    with pytest.raises(tacit_client.InterfaceError, match="needs a token"):
        address("127.0.0.1:1", user="ann")


def test_a_user_is_sent_beside_the_token() -> None:
    sent = address("127.0.0.1:1", user="ann", token=SHOWN).options
    assert sent == {"username": "ann", "password": SHOWN}


def test_accuracy_is_headers() -> None:
    asked = Accuracy(half_width=50, epsilon="0.1", fallback="history").headers
    prefix = "adbc.flight.sql.rpc.call_header.tacit-"
    assert asked == {
        f"{prefix}half-width": "50",
        f"{prefix}epsilon": "0.1",
        f"{prefix}fallback": "history",
    }


def test_numbers_are_written_so_that_they_come_back() -> None:
    for number in (0.1, 1e-12, 3.0, 1e300, 2.0**-40, 5 + 3 * 2.0**-40):
        assert float(exact_text(number)) == number
        assert "e" not in exact_text(number) or number not in {2.0**-40, 5 + 3 * 2.0**-40}
