"""TLS and client certificates, for statements and for marginals alike."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry

import tacit_client
from proxy.engine.engine import Engine
from proxy.wire.tls import TlsIdentity
from tests.support.certificates import LOOPBACK, Authority
from tests.support.serving import serving


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def ca(authority: Authority, tmp_path: Path) -> Path:
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.certificate)
    return file


@pytest.fixture
def address(engine: Engine, authority: Authority) -> Iterator[str]:
    own = authority.sign("tacit", alternatives=LOOPBACK)
    with serving(engine, TlsIdentity(own.certificate, own.key)) as address:
        yield address


def test_statements_and_marginals_go_over_tls(address: str, ca: Path) -> None:
    with tacit_client.connect(f"grpc+tls://{address}", tls_root_certs=ca) as connection:
        assert connection.sql("SELECT 1").fetchall() == [(1,)]
        assert connection.marginals("people", [["city"]], budget=0.1).data.num_rows == 4


def test_the_dialect_goes_over_tls(address: str, ca: Path) -> None:
    registry.register("tacit", "tacit_client.sqlalchemy_dialect", "TacitDialect")
    engine = sa.create_engine(f"tacit://{address}/?tls_root_certs={ca}")
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
    engine.dispose()


def test_an_unknown_authority_is_not_trusted(address: str, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(Authority("Another").certificate)
    with tacit_client.connect(address, tls_root_certs=other) as connection:
        for ask in (
            lambda: connection.sql("SELECT 1"),
            lambda: connection.marginals("people", [["city"]], budget=0),
        ):
            with pytest.raises(tacit_client.OperationalError):
                ask()
