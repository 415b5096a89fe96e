"""One ledger for all tests of the auditor: it is read, and never changed."""

from pathlib import Path

import pytest

from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_reader
from tests.support.audited import write_ledger


@pytest.fixture(scope="session")
def ledger_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audited") / "people.ledger"
    write_ledger(path)
    return path


@pytest.fixture(scope="session")
def entries(ledger_path: Path) -> tuple[Entry, ...]:
    reader = open_reader(str(ledger_path))
    try:
        return tuple(reader.entries_after(0))
    finally:
        reader.close()
