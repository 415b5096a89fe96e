"""Who comes in by PostgreSQL's own client library, and who hears one and the same no."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from cryptography import x509

from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.ledger import Ledger
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.issuing import Grant, issue_certificate, issue_token, revoke
from proxy.shared.tokens import new_token
from proxy.wire.tls import endpoint_hash, server_context
from tests.support.certificates import LOOPBACK, Authority, Identity
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.identities import credentials, soon, token_for
from tests.support.postgres_wire import postgres_serving

ANN = Grant(analyst="ann", tables=("people",))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with credentials(tmp_path) as opened:
        yield opened


@pytest.fixture
def address(ledger: Ledger) -> Iterator[str]:
    with postgres_serving(CannedEngine(), LedgerAuthenticator(ledger)) as served:
        yield served


def connected(address: str, user: str, **more: Any) -> "psycopg.Connection[Any]":
    """A connection by libpq; what is not named here is as if it had no configuration."""
    host, _, port = address.rpartition(":")
    options = {"host": host, "port": port, "dbname": "tacit", "sslmode": "disable", **more}
    return psycopg.connect(user=user, autocommit=True, connect_timeout=10, **options)


def counted(connection: "psycopg.Connection[Any]") -> Any:
    with connection:
        (row,) = connection.execute(COUNT_ALL).fetchall()
        return row[0]


def refusal(address: str, user: str, **more: Any) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        connected(address, user, **more)
    return str(caught.value)


def test_a_token_is_the_password(ledger: Ledger, address: str) -> None:
    token = token_for(ledger, "ann", "people")
    with connected(address, "ann", password=token) as connection:
        assert connection.pgconn.used_password
        assert connection.execute(COUNT_ALL).fetchone() is not None


def test_libpq_may_be_told_to_take_nothing_weaker(ledger: Ledger, address: str) -> None:
    token = token_for(ledger, "ann", "people")
    counted(connected(address, "ann", password=token, require_auth="scram-sha-256"))


def test_whoever_is_not_let_in_hears_the_same(ledger: Ledger, address: str) -> None:
    revoked, gone = issue_token(ledger, ANN, by="a test")
    revoke(ledger, revoked.id, by="a test")
    flight = Grant(analyst="ann", tables=("people",), on_postgres=False)
    _, other_wire = issue_token(ledger, flight, by="a test")
    bobs = token_for(ledger, "bob")
    failures = {
        refusal(address, user, password=password)
        for user, password in (
            ("ann", new_token()),
            ("ann", "password"),
            ("ann", gone),
            ("ann", other_wire),
            ("ann", bobs),
            ("nobody", bobs),
            ("nobody", new_token()),
        )
    }
    assert len(failures) == 1
    assert "The login failed. [not_authenticated]" in failures.pop()


def test_a_revoked_token_ends_what_is_open(ledger: Ledger, address: str) -> None:
    issued, token = issue_token(ledger, ANN, by="a test")
    with connected(address, "ann", password=token) as connection:
        connection.execute(COUNT_ALL)
        revoke(ledger, issued.id, by="a test")
        with pytest.raises(psycopg.Error, match="The login failed"):
            connection.execute(COUNT_ALL)


def test_without_credentials_only_who_has_no_token_is_anybody(ledger: Ledger) -> None:
    token = token_for(ledger, "ann", "people")
    authenticator = LedgerAuthenticator(ledger, allow_anonymous=True)
    engine = CannedEngine()
    with postgres_serving(engine, authenticator) as address:
        counted(connected(address, "somebody"))
        assert "no password supplied" in refusal(address, "ann")
        counted(connected(address, "ann", password=token))
    assert list(dict.fromkeys(one.caller.payer.analyst for one in engine.requests)) == [
        "anonymous",
        "ann",
    ]


# Under TLS.


class TlsWorld(NamedTuple):
    """An authority, a ledger, and files for a server and its clients."""

    authority: Authority
    ledger: Ledger
    folder: Path

    @property
    def verified(self) -> dict[str, str]:
        """How libpq makes sure of the server."""
        return {"sslmode": "verify-full", "sslrootcert": str(self.folder / "ca.pem")}

    def shown(self, identity: Identity) -> dict[str, str]:
        """How libpq shows a certificate."""
        certificate, key = identity.written(self.folder, "client")
        key.chmod(0o600)
        return {"sslcert": str(certificate), "sslkey": str(key)}

    @contextmanager
    def serving(self, *, wants_certificates: bool = False) -> Iterator[str]:
        server = self.authority.sign("server", alternatives=LOOPBACK)
        certificate, key = server.written(self.folder, "server")
        ca = self.folder / "ca.pem" if wants_certificates else None
        with postgres_serving(
            CannedEngine(),
            LedgerAuthenticator(self.ledger),
            tls=server_context(certificate, key, ca),
            endpoint_hash=endpoint_hash(server.certificate),
        ) as address:
            yield address


@pytest.fixture
def world(tmp_path: Path, ledger: Ledger) -> TlsWorld:
    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    return TlsWorld(authority, ledger, tmp_path)


def test_a_login_under_tls_is_bound_to_the_certificate(world: TlsWorld) -> None:
    token = token_for(world.ledger, "ann", "people")
    with world.serving() as address:
        for binding in ("require", "prefer", "disable"):
            counted(
                connected(address, "ann", password=token, channel_binding=binding, **world.verified)
            )
        assert "The login failed" in refusal(
            address, "ann", password=new_token(), channel_binding="require", **world.verified
        )


def test_where_there_is_a_certificate_nothing_is_served_without_it(world: TlsWorld) -> None:
    token = token_for(world.ledger, "ann", "people")
    with world.serving() as address:
        counted(connected(address, "ann", password=token, sslmode="require"))
        said = refusal(address, "ann", password=token, sslmode="disable")
        assert "accepts connections under TLS only" in said
        assert "SSL" in refusal(
            address,
            "ann",
            password=token,
            sslmode="require",
            ssl_max_protocol_version="TLSv1.1",
            ssl_min_protocol_version="TLSv1",
        )


def test_a_certificate_alone_says_who_it_is(world: TlsWorld) -> None:
    issue_certificate(world.ledger, ANN, "ann@example.org", by="a test")
    token_for(world.ledger, "bob")
    anns = world.authority.sign(alternatives=(x509.RFC822Name("ann@example.org"),))
    options = {**world.verified, **world.shown(anns)}
    with world.serving(wants_certificates=True) as address:
        with connected(address, "ann", **options) as connection:
            assert not connection.pgconn.used_password
            connection.execute(COUNT_ALL)
        assert "no password supplied" in refusal(address, "bob", **options)


@pytest.mark.parametrize("wide", [("*",), ("people", "pets")])
def test_a_token_beside_a_certificate_determines_what_is_open(
    world: TlsWorld, wide: tuple[str, ...]
) -> None:
    """As on the other wire; a client sends its token only if it is asked for it."""
    issue_certificate(world.ledger, replace(ANN, tables=wide), "ann", by="a test")
    anns = world.authority.sign("ann")
    options = {**world.verified, **world.shown(anns)}
    bobs = token_for(world.ledger, "bob")
    with world.serving(wants_certificates=True) as address:
        with connected(address, "ann", **options) as connection:
            assert not connection.pgconn.used_password
        _, token = issue_token(world.ledger, ANN, by="a test")  # opens people alone
        assert "no password supplied" in refusal(address, "ann", **options)
        with connected(address, "ann", password=token, **options) as connection:
            assert connection.pgconn.used_password
            connection.execute(COUNT_ALL)
        for wrong in (bobs, "0" * len(token)):
            assert "The login failed" in refusal(address, "ann", password=wrong, **options)


def test_a_token_that_opens_the_same_is_not_asked_for(world: TlsWorld) -> None:
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    issue_token(world.ledger, ANN, by="a test")
    options = {**world.verified, **world.shown(world.authority.sign("ann"))}
    with (
        world.serving(wants_certificates=True) as address,
        connected(address, "ann", **options) as connection,
    ):
        assert not connection.pgconn.used_password


def test_a_connection_by_certificate_ends_after_a_day(
    world: TlsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS looks at when a certificate ends only once."""
    monkeypatch.setattr("proxy.wire.postgres.connection.CERTIFIED_SECONDS_MAX", 0.5)
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    token = token_for(world.ledger, "ann", "people")
    options = {**world.verified, **world.shown(world.authority.sign("ann"))}
    with world.serving(wants_certificates=True) as address:
        connection = connected(address, "ann", **options)
        assert soon(lambda: _is_over(connection))
        connection.close()
    verified = world.verified
    with (
        world.serving() as address,
        connected(address, "ann", password=token, **verified) as lasting,
    ):
        time.sleep(1.0)
        assert not _is_over(lasting)


def _is_over(connection: "psycopg.Connection[Any]") -> bool:
    try:
        connection.execute(COUNT_ALL)
    except psycopg.OperationalError:
        return True
    return False


def test_a_certificate_and_a_token_are_of_one_analyst(world: TlsWorld) -> None:
    issue_certificate(world.ledger, ANN, "ann", by="a test")
    bobs_token = token_for(world.ledger, "bob")
    strangers = world.authority.sign("stranger")
    anns = world.authority.sign("ann")
    with world.serving(wants_certificates=True) as address:
        for identity in (anns, strangers):
            options = {**world.verified, **world.shown(identity)}
            said = refusal(address, "bob", password=bobs_token, **options)
            assert "The login failed" in said


def test_without_a_certificate_of_the_authority_nobody_comes_in(world: TlsWorld) -> None:
    token = token_for(world.ledger, "ann", "people")
    others = Authority("Another").sign("ann")
    with world.serving(wants_certificates=True) as address:
        refusal(address, "ann", password=token, **world.verified)
        refusal(address, "ann", password=token, **world.verified, **world.shown(others))


def test_auditors_may_not_query(world: TlsWorld) -> None:
    auditor = Grant(analyst="eve", role=Role.AUDITOR, tables=(EVERY_TABLE,))
    issue_certificate(world.ledger, auditor, "eve", by="a test")
    options = {**world.verified, **world.shown(world.authority.sign("eve"))}
    with world.serving(wants_certificates=True) as address:
        assert "The role auditor may not query." in refusal(address, "eve", **options)
