"""Where a ledger's entries are stored: in a file, or in a database that several servers share.

`postgres_reader` and `postgres_store` are not shown here: they need psycopg, which is an extra.
"""

from accountant.ledger.stores.key_file import fingerprint_key, is_marked, key_beside, note_marked
from accountant.ledger.stores.mark import MarkedStore, MarkFile, Position, holds, mark_beside
from accountant.ledger.stores.postgres_location import DEFAULT_SCHEMA, PostgresLocation, is_postgres
from accountant.ledger.stores.sqlite_store import SqliteReader, SqliteStore
from accountant.ledger.stores.store import Store, unreadable

__all__ = [
    "DEFAULT_SCHEMA",
    "MarkFile",
    "MarkedStore",
    "Position",
    "PostgresLocation",
    "SqliteReader",
    "SqliteStore",
    "Store",
    "fingerprint_key",
    "holds",
    "is_marked",
    "is_postgres",
    "key_beside",
    "mark_beside",
    "note_marked",
    "unreadable",
]
