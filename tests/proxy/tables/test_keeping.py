"""Keeping a ledger's state while a server runs: whatever fails is logged once, and nothing ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from proxy.tables import upkeep
from proxy.tables.upkeep import Keeping
from tests.support.short_ledger import write_short_ledger


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setattr(upkeep, "N_ENTRIES_MORE", 1)
    with open_ledger(write_short_ledger(tmp_path / "a.ledger")) as found:
        yield found


def test_a_long_ledger_is_kept(ledger: Ledger, tmp_path: Path) -> None:
    Keeping(ledger).look()
    assert list(tmp_path.glob("*.checkpoint"))


def test_a_state_that_cannot_be_written_is_logged_once(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in ledger.tables():
        vars(ledger.history(table))["declaration"] = object()
    one = Keeping(ledger)
    one.look()
    one.look()
    assert "".join(capsys.readouterr()).count("checkpoint_not_written") == 1
    assert not list(tmp_path.glob("*.checkpoint"))
