"""Mutual TLS with real certificates: whose it is, and whom the handshake already turns away."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import adbc_driver_manager
import grpc
import pytest
from adbc_driver_flightsql import dbapi
from cryptography import x509

from accountant.ledger.ledger import Ledger
from proxy.cli.shared.client import ServerAddress, list_tables
from proxy.cli.shared.failures import Declined, Unreachable
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.issuing import Grant, issue_certificate
from proxy.wire.tls import TlsIdentity
from tests.support.certificates import LOOPBACK, Authority, Identity
from tests.support.engine_fake import ANSWERS, COUNT_BY_SEX, CannedEngine
from tests.support.identities import REFUSED, credentials, refusal, tables_seen, token_for
from tests.support.serving import serving

ANN = Grant(analyst="ann", tables=("people",))
SPIFFE = "spiffe://example/ann"


class World(NamedTuple):
    authority: Authority
    ledger: Ledger
    address: str
    ca: Path

    @contextmanager
    def channel(self, client: Identity | None) -> Iterator[grpc.Channel]:
        trust = grpc.ssl_channel_credentials(
            self.authority.certificate,
            private_key=None if client is None else client.key,
            certificate_chain=None if client is None else client.certificate,
        )
        with grpc.secure_channel(self.address, trust) as opened:
            yield opened


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    authority = Authority()
    server = authority.sign("server", alternatives=LOOPBACK)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.certificate)
    tls = TlsIdentity(server.certificate, server.key, client_ca=authority.certificate)
    with (
        credentials(tmp_path) as ledger,
        serving(CannedEngine(), tls, LedgerAuthenticator(ledger)) as address,
    ):
        yield World(authority, ledger, address, ca)


@pytest.mark.parametrize(
    ("known_as", "client"),
    [
        ("ann", {"common": ("ann",)}),
        ("ann@example.org", {"alternatives": (x509.RFC822Name("ann@example.org"),)}),
        (SPIFFE, {"common": ("x",), "alternatives": (x509.UniformResourceIdentifier(SPIFFE),)}),
        ("ann.example", {"alternatives": (x509.DNSName("a.b"), x509.DNSName("ann.example"))}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_name_in_a_certificate_says_who_calls(
    world: World, known_as: str, client: dict[str, Any]
) -> None:
    issue_certificate(world.ledger, ANN, known_as, by="a test")
    identity = world.authority.sign(
        *client.get("common", ()), alternatives=client.get("alternatives", ())
    )
    with world.channel(identity) as channel:
        assert tables_seen(channel, None) == ["people"]


@pytest.mark.parametrize(
    ("common", "alternatives"),
    [
        ("bob", ()),
        ("ann", (x509.DNSName("bob.example"),)),  # a common name beside others does not count
        ("ann\0.example", ()),
        ("Ann", ()),
    ],
)
def test_a_certificate_with_another_name_is_nobodys(
    world: World, common: str, alternatives: tuple[x509.GeneralName, ...]
) -> None:
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    with world.channel(world.authority.sign(common, alternatives=alternatives)) as channel:
        told = refusal(lambda: tables_seen(channel, None))
    assert told == (grpc.StatusCode.UNAUTHENTICATED, REFUSED)


def test_a_client_without_a_certificate_or_with_a_strangers_does_not_get_that_far(
    world: World,
) -> None:
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    token = token_for(world.ledger, "ann")
    elsewhere = Authority("Another authority").sign("ann")
    for client in (None, elsewhere, world.authority.sign("ann", over=True)):
        with world.channel(client) as channel:
            assert refusal(partial(tables_seen, channel, token))[0] is grpc.StatusCode.UNAVAILABLE


def test_a_token_beside_it_is_of_the_same_analyst(world: World) -> None:
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    same, another = token_for(world.ledger, "ann", "ad_hoc"), token_for(world.ledger, "bob")
    with world.channel(world.authority.sign("ann")) as channel:
        assert tables_seen(channel, same) == ["ad_hoc"]
        told = refusal(lambda: tables_seen(channel, another))
    assert told == (grpc.StatusCode.UNAUTHENTICATED, REFUSED)


def test_a_token_does_not_make_up_for_a_certificate_nobody_knows(world: World) -> None:
    with world.channel(world.authority.sign("ann")) as channel:
        token = token_for(world.ledger, "ann")
        told = refusal(lambda: tables_seen(channel, token))
    assert told == (grpc.StatusCode.UNAUTHENTICATED, REFUSED)


def test_adbc_comes_in_with_its_certificate(world: World) -> None:
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    client = world.authority.sign("ann")
    options = {
        "adbc.flight.sql.client_option.tls_root_certs": world.authority.certificate.decode(),
        "adbc.flight.sql.client_option.mtls_cert_chain": client.certificate.decode(),
        "adbc.flight.sql.client_option.mtls_private_key": client.key.decode(),
    }
    where = f"grpc+tls://{world.address}"
    with (
        dbapi.connect(where, db_kwargs=options, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(COUNT_BY_SEX)
        assert cursor.fetch_arrow_table().to_pylist() == ANSWERS[COUNT_BY_SEX].to_pylist()
    del options["adbc.flight.sql.client_option.mtls_private_key"]
    del options["adbc.flight.sql.client_option.mtls_cert_chain"]
    with (
        pytest.raises(adbc_driver_manager.Error),
        dbapi.connect(where, db_kwargs=options, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(COUNT_BY_SEX)


def test_the_command_line_shows_its_certificate(world: World, tmp_path: Path) -> None:
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    certificate, key = world.authority.sign("ann").written(tmp_path, "ann")
    server = ServerAddress(
        address=world.address, tls_ca=world.ca, tls_cert=certificate, tls_key=key
    )
    assert [table.name for table in list_tables(server)] == ["people"]
    with pytest.raises(Unreachable):
        list_tables(ServerAddress(address=world.address, tls_ca=world.ca))
    stranger, key = world.authority.sign("bob").written(tmp_path, "bob")
    with pytest.raises(Declined) as declined:
        list_tables(
            ServerAddress(address=world.address, tls_ca=world.ca, tls_cert=stranger, tls_key=key)
        )
    assert declined.value.code == "not_authenticated"
