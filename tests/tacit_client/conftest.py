"""A real server for every test of the client: private, public and synthetic tables."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

import tacit_client
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from tests.support.serving import serving
from tests.support.synthetic import CITIES, synthetic_engine


@pytest.fixture(autouse=True)
def _server_logs_elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("TACIT_TOKEN", raising=False)
    monkeypatch.delenv("TACIT_SERVER", raising=False)
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with synthetic_engine(tmp_path) as engine:
        yield engine


@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    with serving(engine, synthetic=engine.synthetic, public=(CITIES,)) as address:
        yield address


@pytest.fixture
def connection(address: str) -> Iterator[tacit_client.Connection]:
    with tacit_client.connect(address, half_width=100) as opened:
        yield opened
