"""Ledgers in PostgreSQL: imports psycopg only when one is opened.

Everything else about them is in the modules whose names begin with `postgres_`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from accountant.ledger.stores.postgres_location import PostgresLocation
from cube.refusals import CannotStart

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
