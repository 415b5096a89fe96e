"""A ledger's entries in an SQLite database: one file, WAL, every commit synced before it counts.

Several processes of one machine may have it open: SQLite lets one of them write at a time, and
readers never wait. `SqliteReader` is the same for an auditor, who can change nothing.

Nothing here knows what an entry means. Proof: proofs/gate.md, "Many at once".
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from accountant.ledger.entries import Entry
from accountant.ledger.stores.durable_file import opened
from accountant.ledger.stores.key_file import key_beside
from accountant.ledger.stores.mark import mark_beside
from accountant.ledger.stores.store import SCHEMA_VERSION, unreadable
from cube.refusals import CannotStart, LedgerCorrupt, LedgerLost, LedgerUnavailable, TacitError

APPLICATION_ID: Final = 0x54414349  # "TACI" in the file header: a ledger and not somebody's data
BUSY_SECONDS: Final = 10.0  # other writers hold the file for milliseconds each
N_ROWS_READ: Final = 1000  # at a time
N_WAL_PAGES: Final = 64  # in the WAL alone; then they are copied into the file itself

# Script number n migrates a database from version n to n + 1; the first begins with nothing.
MIGRATIONS: Final = (
    f"""
    PRAGMA application_id = {APPLICATION_ID};
    CREATE TABLE entries (
        seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, table_name TEXT NOT NULL,
        body TEXT NOT NULL, digest TEXT NOT NULL
    ) STRICT;
    CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
    CREATE TRIGGER entries_are_never_deleted BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
    """,
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
    INSERT INTO meta VALUES ('n_probes', 0);
    """,
)
INSERT: Final = (
    "INSERT INTO entries (seq, at, kind, table_name, body, digest) VALUES (?, ?, ?, ?, ?, ?)"
)
SELECT: Final = (
    "SELECT seq, at, kind, table_name, body, digest FROM entries WHERE seq > ? ORDER BY seq LIMIT ?"
)
# After these errors nothing was written; after any other error of the disk that is not known.
HARMLESS: Final = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_LOCKED")


class SqliteReader:
    """A ledger's entries, read only, while others may write.

    Raises
    ------
    LedgerCorrupt
        If `path` is not a ledger database, or its pages are damaged.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise LedgerCorrupt(f"There is no ledger at {path}.")
        self.name = str(path)
        try:
            address = f"{path.resolve().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(address, uri=True, isolation_level=None)
            check_database(self._connection, path)
            self._connection.execute("BEGIN")  # one consistent snapshot
        except sqlite3.DatabaseError as error:
            raise _cannot_open(path, error) from None

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every entry with a higher number, in order."""
        try:
            yield from _rows(self._connection, seq)
        except sqlite3.DatabaseError as error:
            raise _cannot_open(Path(self.name), error) from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class SqliteStore:
    """A `Store` in one file.

    Parameters
    ----------
    path : Path
        Created if there is no file and no key or mark of an earlier ledger.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()  # one name for one file
        self.name = str(path)
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._is_lost = False
        self._writer = connect(self.path)
        self._reader = connect(self.path)
        self._reader.execute("PRAGMA query_only = ON")

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every durable entry with a higher number, in order. Waits for no writer."""
        while True:
            with self._read_lock, self.explained():
                rows = self._reader.execute(SELECT, (seq, N_ROWS_READ)).fetchall()
            if not rows:
                return
            for row in rows:
                yield Entry(*row)
            seq = rows[-1][0]

    @contextlib.contextmanager
    def writing(self) -> Iterator["_Appender"]:
        """A transaction that only one process and thread has at a time."""
        with self._write_lock:
            with self.explained():
                self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield _Appender(self._writer, self)
            except BaseException:
                self._roll_back()
                raise
            self._commit()

    def probe(self) -> None:
        """Write something that is not an entry, durably, to test whether writing is possible."""
        with self.writing(), self.explained():
            self._writer.execute("UPDATE meta SET value = value + 1 WHERE name = 'n_probes'")

    def close(self) -> None:
        """Close the file. Closing twice does no harm."""
        with self._write_lock, self._read_lock:
            with contextlib.suppress(sqlite3.Error):  # closed before, or the disk is in trouble
                checkpoint(self._writer)
            self._writer.close()
            self._reader.close()

    def _commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if not _is_harmless(error):
                # Only reading the disk again could show whether the commit is on it, and a system
                # that failed to write may return data that is not on the disk.
                self._is_lost = True
            self._roll_back()
            raise self._unavailable(error) from None

    def _roll_back(self) -> None:
        with contextlib.suppress(sqlite3.DatabaseError):  # on some errors SQLite has done it
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of SQLite into `LedgerUnavailable`."""
        if self._is_lost:
            raise self._unavailable(None)
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: sqlite3.DatabaseError | None) -> LedgerUnavailable:
        if self._is_lost:
            return LedgerLost(
                "Writing the ledger failed, and it is unknown what is on the disk.",
                hint="The server's owner has to repair the disk and start the server again.",
            )
        return LedgerUnavailable(
            f"The ledger cannot be used at the moment: {_reason(error)}.",
            hint="Nothing can be charged until the server's owner has repaired its disk. "
            "Queries that the history can answer still work, and are free.",
        )


class _Appender:
    """One open transaction."""

    def __init__(self, connection: sqlite3.Connection, store: SqliteStore) -> None:
        self._connection = connection
        self._store = store

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Entries with a higher number, in order, as this transaction sees them."""
        with self._store.explained():
            yield from _rows(self._connection, seq)

    def insert(self, entries: Iterable[Entry]) -> None:
        """Append entries; they count once the transaction is committed."""
        rows = [(one.seq, one.at, one.kind, one.table, one.body, one.digest) for one in entries]
        with self._store.explained():
            self._connection.executemany(INSERT, rows)


def connect(path: Path) -> sqlite3.Connection:
    """Open a ledger's database for appending; create or migrate it if needed.

    The connection may be used by several threads, one at a time.
    """
    if path.is_dir():
        raise LedgerCorrupt(f"The ledger {path} is a directory, not a file.")
    _create(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _migrate(connection, path)
        check_database(connection, path)
        _make_durable(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _cannot_open(path, error) from None
    except TacitError:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """An empty file that only its owner may read, unless there is one.

    An existing file is not opened: a process that closes any descriptor of a file loses all its
    locks on that file, including those of SQLite's connections.
    """
    with contextlib.suppress(FileExistsError):
        os.close(opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))


def check_database(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LedgerCorrupt unless this is an undamaged ledger database of a known version."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise LedgerCorrupt(
            f"{path} is not a Tacit ledger.", hint="Name another path. The file was not changed."
        )
    if _version(connection) > SCHEMA_VERSION:
        raise LedgerCorrupt(
            f"The ledger {path} was written by a newer Tacit.",
            hint="Use that version or a later one.",
        )
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise unreadable(path, verdict)


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the database to the latest version, each step whole or not at all."""
    # Check for them first: key and mark are created after their ledger.
    was_known = any(map(Path.exists, _companions(path)))
    if _is_empty(connection):
        if was_known:
            raise _forgetting(path)
        connection.execute("PRAGMA journal_mode = WAL")
    else:
        check_database(connection, path)
    for version, script in enumerate(MIGRATIONS):
        if _version(connection) <= version:
            # A second process waits here, and then finds the migration done.
            connection.execute("BEGIN IMMEDIATE")
            if _version(connection) <= version:
                for statement in sqlite_statements(script):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")


def sqlite_statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger contains semicolons and stays whole."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _version(connection: sqlite3.Connection) -> int:
    """The version of the database; version 1 does not store its number."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version) or (0 if _is_empty(connection) else 1)


def _is_empty(connection: sqlite3.Connection) -> bool:
    (n_objects,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    return bool(n_objects == 0)


def _forgetting(path: Path) -> LedgerCorrupt:
    """The refusal of a key or mark without a ledger: a ledger was lost, with what it spent."""
    names = " or ".join(map(str, _companions(path)))
    return LedgerCorrupt(
        f"The ledger {path} is missing or empty, but its key or its mark still exists ({names}).",
        hint="A new ledger would forget what was spent. Restore the ledger from a backup; "
        "or, if the budget is really meant to start again, remove these files too.",
    )


def _companions(path: Path) -> tuple[Path, Path]:
    key = key_beside(path)
    return key, mark_beside(key)


def _make_durable(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the disk there
    connection.execute(f"PRAGMA wal_autocheckpoint = {N_WAL_PAGES}")
    checkpoint(connection)
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    if (mode, synchronous) != ("wal", 2):
        raise CannotStart(
            f"The ledger {path} cannot be written durably on its file system.",
            hint="Put it on a local disk: network file systems do not support the write "
            "guarantees that it needs.",
        )


def checkpoint(connection: sqlite3.Connection) -> None:
    """Copy the WAL into the file, as far as other connections allow."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _rows(connection: sqlite3.Connection, seq: int) -> Iterator[Entry]:
    while rows := connection.execute(SELECT, (seq, N_ROWS_READ)).fetchall():
        for row in rows:
            yield Entry(*row)
        seq = rows[-1][0]


def _is_harmless(error: sqlite3.DatabaseError) -> bool:
    return (getattr(error, "sqlite_errorname", None) or "").startswith(HARMLESS)


def _reason(error: sqlite3.DatabaseError | None) -> str:
    """SQLite's own text for its state; it contains nothing of an entry."""
    return "the reason is unknown" if error is None else str(error)


def _cannot_open(path: Path, error: sqlite3.DatabaseError) -> CannotStart:
    if isinstance(error, sqlite3.OperationalError):  # locked, read-only, no room: not damage
        return CannotStart(
            f"The ledger {path} cannot be used at the moment: {error}.",
            hint="Check that no other program has it open and that its disk has space.",
        )
    return unreadable(path, error)
