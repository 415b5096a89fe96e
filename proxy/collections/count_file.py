"""The SQLite file that counts of collections are in: created, opened, and checked.

A file that is damaged, or contradicts itself, is refused and never repaired. What is written there
is `store`'s business.
"""

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from cube.refusals import CannotStart, TacitError

APPLICATION_ID: Final = 0x54414343  # "TACC" in the file's header
VERSION: Final = 1
BUSY_SECONDS: Final = 10.0
N_WAL_PAGES: Final = 64  # in the WAL alone; then they are copied into the file itself
N_WAL_BYTES: Final = 2 * N_WAL_PAGES * 4096  # a WAL that is longer all the same is cut: `traces`
SCHEMA: Final = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    (
        "CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
        " n_respondents INTEGER NOT NULL, is_closed INTEGER NOT NULL) STRICT"
    ),
    (
        "CREATE TABLE answered (collection INTEGER, combination INTEGER, n INTEGER NOT NULL,"
        " PRIMARY KEY (collection, combination)) STRICT, WITHOUT ROWID"
    ),
    (
        "CREATE TABLE counts (collection INTEGER, combination INTEGER, chunk INTEGER,"
        " counts BLOB NOT NULL, PRIMARY KEY (collection, combination, chunk)) STRICT, WITHOUT ROWID"
    ),
    # Without row numbers, which would tell the order of answers. A page has what came last where it
    # was put down, though, until the file is laid out anew: see `traces`.
    (
        "CREATE TABLE spent (collection INTEGER, token BLOB,"
        " PRIMARY KEY (collection, token)) STRICT, WITHOUT ROWID"
    ),
    f"PRAGMA user_version = {VERSION}",
)


def opened_counts(path: Path) -> sqlite3.Connection:
    """A connection to a file that is as it should be; created if there is none.

    The connection may be used by several threads, one at a time.

    Raises
    ------
    CannotStart
        If it is no such file, is damaged, or cannot be written.
    """
    try:
        with contextlib.suppress(FileExistsError):  # what is new, its owner alone may read
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except (OSError, sqlite3.Error) as error:
        raise _cannot_open(path, str(error)) from None
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the disk
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {N_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {N_WAL_BYTES}")
        _create(connection)
        _check(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _cannot_open(path, str(error)) from None
    except TacitError:
        connection.close()
        raise
    return connection


def reading_counts(path: Path) -> sqlite3.Connection:
    """Another connection to a file that `opened_counts` has opened, of who only reads.

    Raises
    ------
    CannotStart
    """
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise _cannot_open(path, str(error)) from None
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")  # a second process waits here, and finds it done
    if connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (0,):
        for statement in SCHEMA:
            connection.execute(statement)
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Raise CannotStart unless the file is one of counts, whole, and agrees with itself."""
    found = [
        connection.execute(f"PRAGMA {one}").fetchone()[0]
        for one in ("application_id", "user_version", "journal_mode")
    ]
    if found != [APPLICATION_ID, VERSION, "wal"]:
        raise _cannot_open(path, "it is no file of counts that this Tacit can use")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise _cannot_open(path, "it is damaged")
    contradicting = connection.execute(
        "SELECT 1 FROM collections WHERE n_respondents <>"
        " (SELECT COUNT(*) FROM spent WHERE spent.collection = collections.id)"
    ).fetchone()
    if contradicting is not None:
        raise _cannot_open(path, "it has another number of answers than of tokens")


def _cannot_open(path: Path, why: str) -> CannotStart:
    return CannotStart(
        f"The answers in {path} cannot be used: {why}.",
        hint="Nothing was changed. Restore the file from a backup, or see that its disk has room.",
    )
