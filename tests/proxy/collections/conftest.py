"""A service of collections, with its ledger and its file of counts."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from proxy.collections.service import CollectionService


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger") as opened:
        yield opened


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    return tmp_path / "ledger.collections"


@pytest.fixture
def service(ledger: Ledger, counts: Path) -> Iterator[CollectionService]:
    with closing(CollectionService(ledger, counts)) as made:
        yield made
