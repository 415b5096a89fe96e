"""A ledger's entries in PostgreSQL, read only: for an auditor, who can change nothing.

The server may be a standby.
"""

from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg import sql

from accountant.ledger.entries import Entry
from accountant.ledger.stores import postgres_database as postgres_schema
from accountant.ledger.stores.postgres_database import connect, explained_at_start
from accountant.ledger.stores.postgres_location import PostgresLocation

N_ROWS_READ: Final = 1000  # at a time
SELECT: Final = """
    SELECT seq, at, kind, table_name, body, digest FROM {entries}
    WHERE seq > %s ORDER BY seq LIMIT %s
"""


class PostgresReader:
    """A ledger's entries, read only, in one consistent snapshot, while others may write.

    Raises
    ------
    LedgerCorrupt
        If there is no ledger at the location.
    CannotStart
        If its database cannot be read.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self.name = location.name
        self._entries = sql.Identifier(location.schema, "entries")
        with explained_at_start(self.name):
            self._connection = connect(location)
            try:
                self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                postgres_schema.identity(self._connection, location.schema, self.name)
            except BaseException:
                self._connection.close()
                raise

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every entry with a higher number, in order."""
        with explained_at_start(self.name):
            yield from read_entries(self._connection, self._entries, seq)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def read_entries(
    connection: psycopg.Connection, table: sql.Identifier, seq: int
) -> Iterator[Entry]:
    """Entries with a higher number, in order."""
    while found := read_some(connection, table, seq):
        yield from found
        seq = found[-1].seq


def read_some(
    connection: psycopg.Connection, table: sql.Identifier, seq: int, limit: int = N_ROWS_READ
) -> list[Entry]:
    """The first of these entries; empty only if there are none."""
    rows = connection.execute(sql.SQL(SELECT).format(entries=table), [seq, limit])
    return [Entry(*row) for row in rows]
