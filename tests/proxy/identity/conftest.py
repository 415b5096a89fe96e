"""Fixtures for tests of who may call: a ledger of credentials, and a canned engine behind it."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from accountant.ledger.ledger import Ledger
from proxy.identity.authenticate import LedgerAuthenticator
from tests.support.engine_fake import CannedEngine
from tests.support.identities import credentials
from tests.support.serving import serving


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with credentials(tmp_path) as opened:
        yield opened


@pytest.fixture
def engine() -> CannedEngine:
    return CannedEngine()


@pytest.fixture
def address(engine: CannedEngine, ledger: Ledger) -> Iterator[str]:
    with serving(engine, authenticator=LedgerAuthenticator(ledger)) as served:
        yield served


@pytest.fixture
def channel(address: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(address) as opened:
        yield opened
