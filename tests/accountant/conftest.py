"""Fixtures for tests of the gate: an empty ledger, and a table of seven people."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from tests.support.fakes import KnownTable
from tests.support.seven_people import RECORDS, SCHEMA


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "people.ledger") as ledger:
        yield ledger


@pytest.fixture
def table() -> KnownTable:
    return KnownTable(SCHEMA, RECORDS)
