"""The file of a ledger: damaged, lost, locked, full, of another version, or somebody else's."""

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.ledger.entries import BudgetSet
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores.store import SCHEMA_VERSION
from cube.refusals import (
    CannotStart,
    LedgerCorrupt,
    LedgerLost,
    LedgerUnavailable,
)
from tests.support.auditing import audited
from tests.support.short_ledger import OPENED, appended, write_short_ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_short_ledger(tmp_path / "people.ledger")


def overwrite(offset: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[offset : offset + 512] = b"\xff" * 512
        path.write_bytes(content)

    return damage


def test_the_files_are_for_their_owner_only(path: Path) -> None:
    for name in ("people.ledger", "people.ledger.key", "people.ledger.mark"):
        assert stat.S_IMODE(path.with_name(name).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "damage",
    [
        overwrite(0),
        overwrite(4096),
        lambda path: path.write_text("age,sex\n39,Male\n" * 500),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
    ],
    ids=["header", "page", "text", "cut"],
)
def test_a_damaged_file_is_refused_with_a_message(
    path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    with pytest.raises(LedgerCorrupt):
        open_ledger(path)
    with pytest.raises(LedgerCorrupt):
        audited(path)


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    before = path.read_bytes()
    for attempt in (open_ledger, audited):
        with pytest.raises(LedgerCorrupt, match="not a Tacit ledger"):
            attempt(path)
    assert path.read_bytes() == before


def test_places_where_no_ledger_can_be(tmp_path: Path) -> None:
    with pytest.raises(LedgerCorrupt, match="is a directory"):
        open_ledger(tmp_path)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "missing" / "ledger", tmp_path / "file" / "ledger"):
        with pytest.raises(CannotStart, match="cannot be opened for writing"):
            open_ledger(place)
        with pytest.raises(LedgerCorrupt, match="no ledger at"):
            audited(place)


def test_a_ledger_that_is_locked_in_sqlite_is_not_called_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accountant.ledger.stores.sqlite_store.BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CannotStart, match="cannot be used at the moment") as refused:
            open_ledger(path)
    assert refused.value.code == "cannot_start"


def test_a_lost_ledger_is_not_begun_again_while_its_key_is_there(path: Path) -> None:
    """An emptied or deleted ledger would start a fresh budget on the same data."""
    path.write_bytes(b"")
    with pytest.raises(LedgerCorrupt, match="missing or empty"):
        open_ledger(path)
    path.unlink()
    with pytest.raises(LedgerCorrupt, match="missing or empty"):
        open_ledger(path)
    path.with_name("people.ledger.key").unlink()
    with pytest.raises(LedgerCorrupt, match="missing or empty"):
        open_ledger(path)
    assert not path.with_name("people.ledger.key").exists()
    path.with_name("people.ledger.mark").unlink()
    with open_ledger(path) as ledger:
        assert ledger.history("people").opened is None


def test_a_ledger_without_its_key_is_refused(path: Path) -> None:
    key = path.with_name("people.ledger.key")
    key.write_bytes(key.read_bytes()[:31])
    with pytest.raises(LedgerCorrupt, match="32 bytes"):
        open_ledger(path)
    key.unlink()
    with pytest.raises(LedgerCorrupt, match=r"key file .* is missing"):
        open_ledger(path)


def test_a_full_disk_refuses_and_the_ledger_goes_on_once_there_is_room(path: Path) -> None:
    """A full disk, by SQLite's own means: it says that nothing was written."""
    with open_ledger(path) as ledger:
        writer = ledger._store._store._writer  # type: ignore[attr-defined]  # SQLite's own
        (n_pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {n_pages}")
        huge = replace(OPENED, schema_digest="x" * 1_000_000, data_fingerprint="other")
        with pytest.raises(LedgerUnavailable, match="full"):
            ledger.append("others", lambda _: huge)
        assert not ledger.is_writable
        assert ledger.history("others").opened is None
        writer.execute("PRAGMA max_page_count = 1000000")
        assert appended(ledger, BudgetSet(Fraction(2))) == 5
        assert ledger.is_writable
    assert audited(path).n_entries == 5


def test_after_a_disk_that_failed_under_a_commit_nothing_more_is_written(path: Path) -> None:
    class FailingDisk:
        """A connection whose commits meet an error of the disk."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection = connection

        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement == "COMMIT":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                raise error
            return self._connection.execute(statement, *values)

        def __getattr__(self, name: str) -> object:
            return getattr(self._connection, name)

    with open_ledger(path) as ledger:
        store = ledger._store._store  # type: ignore[attr-defined]  # below the mark
        store._writer = FailingDisk(store._writer)
        for _ in range(2):
            with pytest.raises(LedgerLost, match="it is unknown what is on the disk"):
                appended(ledger, BudgetSet(Fraction(2)))
        assert ledger.history("people").budget == Fraction(13, 7)
    with open_ledger(path) as ledger:
        assert appended(ledger, BudgetSet(Fraction(2))) == 5


def test_a_ledger_of_the_first_version_is_read_audited_and_brought_up_to_date(path: Path) -> None:
    """The first version had no number, no table of its own state, and the same entries."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE meta")
        connection.execute("PRAGMA user_version = 0")
    before = audited(path)
    assert (before.problem, before.n_entries) == (None, 4)
    with open_ledger(path) as ledger:
        assert ledger.position == (4, before.head)
        ledger.probe()
        assert appended(ledger, BudgetSet(Fraction(2))) == 5
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_a_ledger_of_a_later_version_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for attempt in (open_ledger, audited):
        with pytest.raises(LedgerCorrupt, match="newer Tacit"):
            attempt(path)
