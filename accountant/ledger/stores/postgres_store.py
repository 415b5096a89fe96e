"""A ledger's entries in a PostgreSQL database, for several replicas of the proxy on one ledger.

A commit counts once the server has it on its disk: `synchronous_commit` is set in each transaction,
and a server without `fsync` is not used. One writer at a time has an advisory lock, which ends with
its transaction: it is held until a commit's outcome is settled, even if its client is gone, so that
the next writer sees that outcome. The lock blocks no reader and no vacuum, and needs only the right
to use the tables, while LOCK TABLE would need the right to change entries. A writer without the
lock is stopped by the primary key, and detected by the chain of digests.

Nothing here knows what an entry means. Proof: proofs/gate.md, "Many at once".
"""

import contextlib
import hashlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from accountant.ledger.entries import Entry
from accountant.ledger.stores import postgres_database as postgres_schema
from accountant.ledger.stores.key_file import fingerprint_key
from accountant.ledger.stores.postgres_database import (
    LedgerIdentity,
    Link,
    explained_at_start,
    reason,
)
from accountant.ledger.stores.postgres_location import PostgresLocation
from accountant.ledger.stores.postgres_reader import read_entries, read_some
from cube.refusals import (
    CannotStart,
    LedgerCorrupt,
    LedgerLost,
    LedgerMismatch,
    LedgerUnavailable,
)

LOCK_SECONDS: Final = 10  # other writers hold the lock for milliseconds each
IDLE_SECONDS: Final = 60  # a writer that hangs in its transaction loses the lock after this

# BEGIN comes first and the lock last, so that every later statement sees all commits before it.
BEGIN: Final = """
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL synchronous_commit = on;
    SET LOCAL lock_timeout = '{lock_seconds}s';
    SET LOCAL idle_in_transaction_session_timeout = '{idle_seconds}s';
    SELECT pg_advisory_xact_lock({lock_key});
"""
INSERT: Final = """
    INSERT INTO {entries} (seq, at, kind, table_name, body, digest)
    SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
"""


class PostgresStore:
    """A `Store` in one schema of a database.

    Parameters
    ----------
    location : PostgresLocation
        The database and schema; the tables are created if the schema is empty.

    Raises
    ------
    LedgerCorrupt
        If the schema holds something else, or a ledger of a newer Tacit.
    CannotStart
        If the database cannot be used, or does not keep what it commits.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self.name = location.name
        self._location = location
        self._entries = sql.Identifier(location.schema, "entries")
        self._meta = sql.Identifier(location.schema, "tacit_meta")
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._identity: LedgerIdentity | None = None
        self._last: Entry | None = None  # with the highest number that is known to be durable
        self._lost: str | None = None
        self._writer = Link(location, self._check_connection)
        self._reader = Link(location, self._check_connection)
        try:
            with explained_at_start(self.name):
                self._identity = self._prepared()
        except BaseException:
            self._writer.drop()
            raise

    def fingerprint_key(self, path: Path) -> bytes:
        """The key of the ledger's data fingerprints, in a file that every replica has a copy of.

        It is created for a new ledger; from then on the ledger holds a digest of its key.

        Raises
        ------
        LedgerMismatch
            If it is the key of another ledger.
        LedgerCorrupt
            If it is missing, or exists although the ledger is new.
        """
        with explained_at_start(self.name), self.writing() as appender:
            connection = appender.connection
            known = postgres_schema.identity(connection, self._location.schema, self.name)
            is_new = known.key_digest is None and next(appender.entries_after(0), None) is None
            if is_new and path.exists():
                raise LedgerCorrupt(
                    f"The ledger {self.name} is new, but its key file {path} already exists.",
                    hint="Restore the ledger from a backup: a new ledger would forget what "
                    "was spent. If the ledger is meant to be new, name a key file "
                    "that does not exist yet.",
                )
            key = fingerprint_key(path, may_create=is_new)
            digest = postgres_schema.digest_of_key(key)
            if known.key_digest is None:
                postgres_schema.bind_key(connection, self._location.schema, digest)
            elif known.key_digest != digest:
                raise LedgerMismatch(
                    f"The key file {path} does not belong to the ledger {self.name}.",
                    hint="Give this server a copy of the key with which the ledger was created.",
                )
        return key

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Every durable entry with a higher number, in order. Waits for no writer."""
        while found := self._some_after(seq):
            yield from found
            seq = found[-1].seq

    @contextlib.contextmanager
    def writing(self) -> Iterator["_Appender"]:
        """A transaction that only one process and thread has at a time.

        After LedgerUnavailable, an unfinished commit may or may not have succeeded. The next
        writer waits until that is settled; so it must read new entries before it writes.
        """
        with self._write_lock:
            with self.explained():
                connection = self._writer.run(self._begin)
            appender = _Appender(connection, self._entries, self)
            try:
                yield appender
            except BaseException:
                self._roll_back(connection)
                raise
            self._commit(connection)
            self._saw(appender.inserted)

    def probe(self) -> None:
        """Write something that is not an entry, durably, to test whether writing is possible."""
        update = sql.SQL("UPDATE {} SET probed_at = now()").format(self._meta)
        with self.writing() as appender, self.explained():
            appender.connection.execute(update)

    def close(self) -> None:
        """Close the connections. Closing twice does no harm."""
        with self._write_lock, self._read_lock:
            self._lost = self._lost or "is closed"
            self._writer.drop()
            self._reader.drop()

    def _some_after(self, seq: int) -> list[Entry]:
        with self._read_lock, self.explained():
            found = self._reader.run(lambda connection: read_some(connection, self._entries, seq))
            self._saw(found)
        return found

    def _prepared(self) -> LedgerIdentity:
        connection = self._writer.run(self._begin)
        try:
            found = postgres_schema.prepare(connection, self._location.schema, self.name)
        except BaseException:
            self._roll_back(connection)
            raise
        self._commit(connection)
        return found

    def _begin(self, connection: psycopg.Connection) -> psycopg.Connection:
        lock_key = _lock_key(self._location.schema)
        begin = BEGIN.format(
            lock_seconds=LOCK_SECONDS, idle_seconds=IDLE_SECONDS, lock_key=lock_key
        )
        try:
            connection.execute(begin.encode())  # one round trip: all of it or an error
        except psycopg.Error:
            self._roll_back(connection)
            raise
        return connection

    def _commit(self, connection: psycopg.Connection) -> None:
        """Commit, or raise; nothing counts as committed unless the server confirms it."""
        try:
            # In a transaction with a failed statement, COMMIT rolls back without an error.
            said = connection.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            self._writer.drop()
            raise self._unavailable(error) from error
        except BaseException:
            self._writer.drop()
            raise
        if said != "COMMIT":
            raise self._unavailable(None)

    def _roll_back(self, connection: psycopg.Connection) -> None:
        """Roll back a transaction whose COMMIT was not sent; else the server would do so later."""
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self._writer.drop()

    def _check_connection(self, connection: psycopg.Connection) -> None:
        """Raise unless the server is fit for a ledger, and has the ledger we began with."""
        postgres_schema.check_server(connection, self.name)
        if self._identity is None:
            return
        try:
            found = postgres_schema.identity(connection, self._location.schema, self.name)
        except LedgerCorrupt:
            found = None
        if found is None or found.ledger_id != self._identity.ledger_id:
            self._lost = "is not the ledger that this process started with"
        elif not self._holds_last(connection):
            self._lost = "has lost entries that it held before"
        if self._lost is not None:
            raise self._unavailable(None)

    def _holds_last(self, connection: psycopg.Connection) -> bool:
        last = self._last  # read once: another thread may commit meanwhile
        return last is None or read_some(connection, self._entries, last.seq - 1, limit=1) == [last]

    def _saw(self, entries: list[Entry]) -> None:
        # The writer's thread and a reader's may both be here; an older entry is valid, too.
        last = self._last
        if entries and (last is None or entries[-1].seq > last.seq):
            self._last = entries[-1]

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the database into `LedgerUnavailable`."""
        if self._lost is not None:
            raise self._unavailable(None)
        try:
            yield
        except psycopg.Error as error:
            raise self._unavailable(error) from error
        except CannotStart as error:
            # Found when a connection was renewed: the details are only for the owner.
            raise _unavailable(
                "this server may not use its database as the database is set up now"
            ) from error

    def _unavailable(self, error: psycopg.Error | None) -> LedgerUnavailable:
        if self._lost is not None:
            return LedgerLost(
                f"The ledger {self._lost}.",
                hint="The server's owner has to repair the ledger and start the server again.",
            )
        return _unavailable("its database rolled back" if error is None else reason(error))


class _Appender:
    """One open transaction."""

    def __init__(
        self, connection: psycopg.Connection, table: sql.Identifier, store: PostgresStore
    ) -> None:
        self._connection = connection
        self._table = table
        self._store = store
        self.inserted: list[Entry] = []

    @property
    def connection(self) -> psycopg.Connection:
        """The connection, while its transaction is open: afterwards it has no lock."""
        if self._connection.info.transaction_status == TransactionStatus.IDLE:
            raise RuntimeError("an appender is used after its transaction has ended")
        return self._connection

    def entries_after(self, seq: int) -> Iterator[Entry]:
        """Entries with a higher number, in order, as this transaction sees them."""
        with self._store.explained():
            yield from read_entries(self.connection, self._table, seq)

    def insert(self, entries: Iterable[Entry]) -> None:
        """Append entries; they count once the transaction is committed."""
        added = list(entries)
        rows = [(one.seq, one.at, one.kind, one.table, one.body, one.digest) for one in added]
        statement = sql.SQL(INSERT).format(entries=self._table)
        with self._store.explained():
            if rows:
                columns = [list(column) for column in zip(*rows, strict=True)]
                self.connection.execute(statement, columns)
        self.inserted += added


def _lock_key(schema: str) -> int:
    """A number for the lock, which belongs to a database: one for each schema in it."""
    digest = hashlib.sha256(f"tacit ledger {schema}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _unavailable(why: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"The ledger cannot be used at the moment: {why}.",
        hint="Nothing can be charged until the server's owner has repaired its database. "
        "Queries that the history can answer still work, and are free.",
    )
