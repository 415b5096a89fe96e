"""Opening a ledger by the name of its place: a file, or a database that several servers share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from accountant.entries import Entry
from accountant.ledger import Ledger
from accountant.stores.key_file import fingerprint_key, key_beside
from accountant.stores.postgres import open_postgres, open_postgres_reader, open_postgres_store
from accountant.stores.postgres_location import is_postgres
from accountant.stores.sqlite_store import SqliteReader, SqliteStore
from accountant.stores.store import Store


class Reader(Protocol):
    """A ledger's entries, at one moment, for somebody who can change nothing."""

    name: str

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every entry with a higher number, in order."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def open_ledger(path: Path) -> Ledger:
    """The ledger in an SQLite file, and its key beside it; both made if there is nothing.

    Raises
    ------
    LedgerCorrupt, CannotStart
        If it cannot be used, or its key is missing.
    """
    store = SqliteStore(path)
    try:
        may_create = next(store.entries_after(0), None) is None
        key = fingerprint_key(key_beside(store.path), may_create=may_create)
    except BaseException:
        store.close()
        raise
    return Ledger(store, key)


def open_shared_ledger(url: str, key: Path) -> Ledger:
    """The ledger in a PostgreSQL database, and its key, of which every server has a copy."""
    return Ledger(*open_postgres(url, key))


def open_store(location: str) -> Store:
    """The store of a ledger, without its key: for who copies entries and serves nothing."""
    return open_postgres_store(location) if is_postgres(location) else SqliteStore(Path(location))


def open_reader(location: str) -> Reader:
    """A ledger's entries for an auditor, also beside a running server."""
    return open_postgres_reader(location) if is_postgres(location) else SqliteReader(Path(location))
