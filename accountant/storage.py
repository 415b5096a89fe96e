"""The files a ledger consists of: an SQLite database, a lock, and the key of its fingerprints.

    PATH        the entries, append-only, WAL, every commit synced before it counts
    PATH.lock   held for as long as a process has the ledger open for writing
    PATH.key    32 random bytes; the data fingerprints in the ledger are HMACs under it

The key exists because a ledger is made to be audited. A plain hash of the data in it would let any
reader test a guess at the whole table; an HMAC can only be tested by who also holds the key.

Nothing here knows what an entry means.
"""

import contextlib
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from accountant.entries import Entry
from cube.refusals import CannotStart, LedgerCorrupt, LedgerLocked

APPLICATION_ID = 0x54414349  # "TACI" in the file header: this is a ledger and not somebody's data
KEY_BYTES = 32
PRIVATE_MODE = 0o600  # noisy values are releasable, who asked what is not
BUSY_SECONDS = 2  # an auditor's tool may hold the file for a moment, not for longer

CREATE = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, table_name TEXT NOT NULL,
    body TEXT NOT NULL, digest TEXT NOT NULL
) STRICT;
CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER entries_are_never_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
COMMIT;
"""
INSERT = "INSERT INTO entries (seq, at, kind, table_name, body, digest) VALUES (?, ?, ?, ?, ?, ?)"
SELECT = "SELECT seq, at, kind, table_name, body, digest FROM entries ORDER BY seq"


def lock(path: Path) -> int:
    """Hold the ledger at `path` for this process; the descriptor to close when done.

    The kernel releases the lock when the process ends, however it ends.
    """
    descriptor = _opened(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise LedgerLocked(
            f"The ledger {path} is in use by another process.",
            hint="Stop that server first; `tacit audit verify` may read the ledger meanwhile.",
        ) from None
    return descriptor


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger for appending, after creating it if there is nothing at `path`.

    The connection may be used by several threads, one at a time.
    """
    if path.is_dir():
        raise LedgerCorrupt(f"The ledger {path} is a directory.")
    os.close(_opened(path, os.O_RDWR | os.O_CREAT))
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        if _is_empty(connection):
            _refuse_to_forget(path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(CREATE)
        check_database(connection, path)
        _make_durable(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _refusal(path, error) from None
    except CannotStart:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The ledger, opened for reading only, in one consistent snapshot."""
    if not path.is_file():
        raise LedgerCorrupt(f"There is no ledger at {path}.")
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as connection:
            connection.execute("BEGIN")
            check_database(connection, path)
            yield connection
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from None


def entries(connection: sqlite3.Connection, path: Path) -> Iterator[Entry]:
    """Every entry in order."""
    try:
        for row in connection.execute(SELECT):
            yield Entry(*row)
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from None


def check_database(connection: sqlite3.Connection, path: Path) -> None:
    """Raise LedgerCorrupt unless this is an undamaged ledger database."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID:
        raise LedgerCorrupt(
            f"{path} is not a Tacit ledger.", hint="Name another path; nothing was changed there."
        )
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise unreadable(path, verdict)


def fingerprint_key(path: Path, *, may_create: bool) -> bytes:
    """The key of the data fingerprints, made at the first opening of a ledger."""
    key_path = path.with_name(path.name + ".key")
    if not key_path.exists():
        if not may_create:
            raise LedgerCorrupt(
                f"The key file {key_path} is missing, so the data cannot be recognised.",
                hint="Restore it from a backup; it belongs to the ledger.",
            )
        _write_durably(key_path, secrets.token_bytes(KEY_BYTES))
    try:
        key = key_path.read_bytes()
    except OSError as error:
        raise CannotStart(f"The key file {key_path} cannot be read: {error.strerror}.") from None
    if len(key) != KEY_BYTES:
        raise LedgerCorrupt(
            f"The key file {key_path} does not hold {KEY_BYTES} bytes.",
            hint="Restore it from a backup.",
        )
    return key


def unreadable(path: Path, problem: object) -> LedgerCorrupt:
    """The refusal for a damaged ledger; nothing is ever repaired silently."""
    return LedgerCorrupt(
        f"The ledger {path} is damaged or was altered: {problem}.",
        hint=f"`tacit audit verify {path}` shows the first bad entry; nothing was changed. "
        "Restore the ledger from a backup.",
    )


def _refusal(path: Path, error: sqlite3.DatabaseError) -> CannotStart:
    if isinstance(error, sqlite3.OperationalError):  # locked, read-only, no room: not damage
        return CannotStart(
            f"The ledger {path} cannot be used just now: {error}.",
            hint="See that no other program has it open and that its disk has room.",
        )
    return unreadable(path, error)


def _opened(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, PRIVATE_MODE)
    except OSError as error:
        raise CannotStart(
            f"The ledger file {path} cannot be opened for writing: {error.strerror}.",
            hint="It needs an existing directory that this process may write to.",
        ) from None


def _is_empty(connection: sqlite3.Connection) -> bool:
    (n_objects,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    return bool(n_objects == 0)


def _refuse_to_forget(path: Path) -> None:
    """A key without a ledger means that a ledger was lost, and what was spent with it."""
    key_path = path.with_name(path.name + ".key")
    if key_path.exists():
        raise LedgerCorrupt(
            f"The ledger {path} is gone or empty, but its key file {key_path} is there.",
            hint="A new ledger would forget what was spent: restore it from a backup, or remove "
            "the key file too if the budget is truly to begin again.",
        )


def _make_durable(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the disk there
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    if (mode, synchronous) != ("wal", 2):
        raise CannotStart(
            f"The ledger {path} cannot be written durably where it is.",
            hint="Put it on a local disk; network file systems do not support what it needs.",
        )


def _write_durably(path: Path, content: bytes) -> None:
    """Create a file that is either whole or absent after a crash."""
    draft = path.with_name(path.name + ".new")
    descriptor = _opened(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
