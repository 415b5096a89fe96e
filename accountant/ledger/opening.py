"""Opening a ledger by its location: a file, or a database that several servers share.

psycopg is imported only when a ledger in PostgreSQL is opened. All else about such ledgers is in
the modules of stores/ whose names begin with `postgres_`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from accountant.ledger.checkpoint import Checkpoint, checkpoint_beside
from accountant.ledger.clock import ClockGuard
from accountant.ledger.entries import Entry
from accountant.ledger.ledger import Ledger
from accountant.ledger.stores import (
    MarkedStore,
    MarkFile,
    Position,
    PostgresLocation,
    SqliteReader,
    SqliteStore,
    Store,
    fingerprint_key,
    is_marked,
    is_postgres,
    key_beside,
    mark_beside,
    note_marked,
)
from cube.refusals import CannotStart, LedgerLost, LedgerSetBack, LedgerUnavailable

if TYPE_CHECKING:
    from accountant.ledger.stores.postgres_reader import PostgresReader
    from accountant.ledger.stores.postgres_store import PostgresStore


def open_postgres(text: str, key_path: Path) -> "tuple[PostgresStore, bytes]":
    """The store at a location, and the key of its data fingerprints; both are created if new.

    Raises
    ------
    CannotStart
        If the location is invalid, psycopg is not installed, or the ledger cannot be used.
    """
    store = open_postgres_store(text)
    try:
        return store, store.fingerprint_key(key_path)
    except BaseException:
        store.close()
        raise


def open_postgres_store(text: str) -> "PostgresStore":
    """The store at a location, created if new; for callers without a key, such as an import."""
    location = _location(text)
    _need_psycopg()
    from accountant.ledger.stores.postgres_store import PostgresStore  # noqa: PLC0415 - needs psycopg

    return PostgresStore(location)


def open_postgres_reader(text: str) -> "PostgresReader":
    """The entries at a location, for reading only."""
    location = _location(text)
    _need_psycopg()
    from accountant.ledger.stores.postgres_reader import PostgresReader  # noqa: PLC0415 - needs psycopg

    return PostgresReader(location)


def _location(text: str) -> PostgresLocation:
    try:
        return PostgresLocation.parse(text)
    except ValueError as error:
        # Without the text, which may contain a password that should not get into a log.
        raise CannotStart(f"The location of the ledger {error}.") from None


def _need_psycopg() -> None:
    try:
        import psycopg  # noqa: F401, PLC0415 - an extra: Tacit works without it
    except ImportError:
        raise CannotStart(
            "A ledger in PostgreSQL needs the package psycopg, which is not installed.",
            hint="Run pip install 'tacit-dp[postgres-ledger]'.",
        ) from None


class Reader(Protocol):
    """A ledger's entries, at one moment, read only."""

    name: str

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every entry with a higher number, in order."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


def open_ledger(path: Path, guard: ClockGuard | None = None) -> Ledger:
    """The ledger in an SQLite file, with its key and its mark next to it; created if new.

    Parameters
    ----------
    path : Path
    guard : ClockGuard, optional
        Decides how far ahead the clock may be.

    Raises
    ------
    LedgerCorrupt, CannotStart
        If it cannot be used, or its key is missing.
    LedgerSetBack
        If it lacks entries that its mark vouches for, or its mark is missing.
    """
    return _marked(*open_unmarked(str(path), None), guard)


def open_shared_ledger(url: str, key: Path, guard: ClockGuard | None = None) -> Ledger:
    """The ledger in a PostgreSQL database; its key, and a mark, are files of each server."""
    return _marked(*open_unmarked(url, key), guard)


def open_unmarked(location: str, key: Path | None) -> tuple[Store, bytes, Path]:
    """The store of a ledger, its key, and the key's path, without checking the mark.

    Parameters
    ----------
    location : str
    key : Path, optional
        For a ledger in a database; the key of a ledger in a file is next to it.
    """
    if key is not None:
        return *open_postgres(location, key), key
    store = SqliteStore(Path(location))
    try:
        may_create = next(store.entries_after(0), None) is None
        beside = key_beside(store.path)
        return store, fingerprint_key(beside, may_create=may_create), beside
    except BaseException:
        store.close()
        raise


def _marked(store: Store, key: bytes, key_path: Path, guard: ClockGuard | None) -> Ledger:
    """The ledger, if it holds what its mark vouches for; the mark is kept up from now on.

    The mark is checked last: if a ledger is damaged, the damage is what is reported.
    """
    mark = MarkFile(mark_beside(key_path))
    marked = MarkedStore(store, mark)
    checkpoint = Checkpoint(checkpoint_beside(key_path), key)
    ledger = Ledger(marked, key, guard=guard, checkpoint=checkpoint)
    try:
        if not mark.exists() and not is_marked(key_path):  # a new ledger, or one from before marks
            mark.make(Position(*ledger.position))
        marked.begin(Position(*ledger.position))
        note_marked(key_path)
    except LedgerLost as error:
        ledger.close()
        raise LedgerSetBack(error.message, hint=error.hint) from None
    except LedgerUnavailable as error:
        ledger.close()
        raise CannotStart(error.message, hint=error.hint) from None
    except BaseException:
        ledger.close()
        raise
    return ledger


def open_store(location: str) -> Store:
    """The store of a ledger, without its key: for copying entries, not for serving."""
    return open_postgres_store(location) if is_postgres(location) else SqliteStore(Path(location))


def open_reader(location: str) -> Reader:
    """A ledger's entries for an auditor, also while a server runs."""
    return open_postgres_reader(location) if is_postgres(location) else SqliteReader(Path(location))
