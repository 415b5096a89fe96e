"""The PostgreSQL database of a ledger: a connection to it, and the tables that are found there.

A connection is renewed when it is lost. It is checked whenever it is made: the server must keep
what it commits, and it must still be the ledger with which this process began. A server's error
text may name hosts, roles and keys, so it never reaches an analyst: `reason` replaces it by a text
of ours, chosen by the error's code.

The tables are in a schema of their own, where they are created, checked and migrated:

    entries     the same as SQLite's table of that name; triggers refuse any change of a row
    tacit_meta  one row: the version of these tables, the identity of the ledger, a digest of its
                key, and the time of the last test whether it can be written

Everything about them happens inside the caller's transaction, under the lock that makes it the only
one.
"""

import contextlib
import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo

from accountant.ledger.stores.postgres_location import PostgresLocation, password
from accountant.ledger.stores.store import SCHEMA_VERSION
from cube.refusals import CannotStart, LedgerCorrupt, LedgerUnavailable

Result = TypeVar("Result")

# By the error code, or by its first two characters, which are its class.
_REASONS = {
    "55P03": "another process has held its lock for too long",
    "25P03": "this process took too long to write to it",
    "25006": "its database is read-only",
    "42501": "its database does not let this server write to it",
    "23505": "a program other than Tacit has written to it",
    "P0001": "its database refuses the change",
    "53": "its database has no space or no resources left",
    "57": "its database is stopping or starting",
    "58": "its database cannot use its disk",
}


class Link:
    """One connection, for one thread at a time.

    Parameters
    ----------
    location : PostgresLocation
    check : callable
        Is called with each new connection, and raises if it may not be used.
    """

    def __init__(
        self, location: PostgresLocation, check: Callable[[psycopg.Connection], None]
    ) -> None:
        self._location = location
        self._check = check
        self._connection: psycopg.Connection | None = None

    def run(self, act: Callable[[psycopg.Connection], Result]) -> Result:
        """The result of `act`, which is repeated once if the connection turns out to be lost.

        So `act` must be idempotent.
        """
        if self._connection is not None:
            try:
                return act(self._connection)
            except psycopg.Error as error:
                if not self._is_lost(error):
                    raise
                self.drop()
        if self._connection is None:
            self._connection = self._connected()
        return act(self._connection)

    def drop(self) -> None:
        """Close the connection; the next one will be new."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> psycopg.Connection:
        connection = connect(self._location)
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_lost(self, error: psycopg.Error) -> bool:
        is_closed = self._connection is None or self._connection.closed
        return is_closed or (error.sqlstate or "").startswith("57P")  # told to go away


def connect(location: PostgresLocation) -> psycopg.Connection:
    """A connection on which every statement is a transaction, unless BEGIN says otherwise."""
    address = make_conninfo(
        **dict(location.parameters),
        **password(),
        application_name="tacit",
        client_encoding="UTF8",
    )
    return psycopg.connect(address, autocommit=True, prepare_threshold=None)


def reason(error: psycopg.Error) -> str:
    """Why the database refused, in a text that every caller may see."""
    code = error.sqlstate
    if code is None:
        is_link = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return f"its database {'cannot be reached' if is_link else 'cannot store the entry'}"
    known = _REASONS.get(code) or _REASONS.get(code[:2])
    return known or f"its database says {code}"


@contextlib.contextmanager
def explained_at_start(name: str) -> Iterator[None]:
    """Errors while a ledger is opened are for its owner: with the server's own text."""
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        raise CannotStart(
            f"The ledger {name} cannot be used: {text}.",
            hint="Check that the database server runs, and that Tacit may connect to it.",
        ) from None
    except LedgerUnavailable as error:
        raise CannotStart(error.message, hint=error.hint) from None


# Each brings the tables to its version. Version 1 exists for SQLite only.
MIGRATIONS: Final = (
    (
        2,
        """
        CREATE TABLE {schema}.entries (
            seq bigint PRIMARY KEY, at text NOT NULL, kind text NOT NULL, table_name text NOT NULL,
            body text NOT NULL, digest text NOT NULL
        );
        CREATE TABLE {schema}.tacit_meta (
            is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
            version integer NOT NULL, ledger_id text NOT NULL, key_digest text,
            probed_at timestamptz
        );
        CREATE FUNCTION {schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'a ledger is append-only';
        END $$;
        CREATE TRIGGER entries_never_change BEFORE UPDATE OR DELETE OR TRUNCATE
            ON {schema}.entries FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_change();
        CREATE TRIGGER meta_stays BEFORE DELETE OR TRUNCATE OR UPDATE OF ledger_id
            ON {schema}.tacit_meta FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_change();
        """,
    ),
)


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """The identity of the ledger in a database, and the digest of its key, once it has one."""

    ledger_id: str
    key_digest: str | None


def prepare(connection: Connection, schema: str, name: str) -> LedgerIdentity:
    """The identity of the ledger in `schema`, which is created if the schema is empty.

    Raises
    ------
    LedgerCorrupt
        If the schema holds something else, or a ledger of a newer Tacit.
    """
    relations = _relations(connection, schema)
    if not relations:
        _create_schema(connection, schema)
    version = _version(connection, schema, name) if relations else 0
    for number, script in MIGRATIONS:
        if version < number:
            connection.execute(sql.SQL(script).format(schema=sql.Identifier(schema)))
            _record(connection, schema, number, is_new=version == 0)
            version = number
    return identity(connection, schema, name)


def identity(connection: Connection, schema: str, name: str) -> LedgerIdentity:
    """The identity of the ledger in `schema`, which must exist and have a known version."""
    if not _relations(connection, schema):
        raise LedgerCorrupt(f"There is no ledger at {name}.")
    _version(connection, schema, name)
    query = sql.SQL("SELECT ledger_id, key_digest FROM {meta}")
    row = connection.execute(query.format(meta=sql.Identifier(schema, "tacit_meta"))).fetchone()
    if row is None:
        raise _foreign(name)
    return LedgerIdentity(*row)


def bind_key(connection: Connection, schema: str, digest: str) -> None:
    """Record the key with which the ledger's data fingerprints are made."""
    update = sql.SQL("UPDATE {meta} SET key_digest = %s WHERE key_digest IS NULL")
    connection.execute(update.format(meta=sql.Identifier(schema, "tacit_meta")), [digest])


def digest_of_key(key: bytes) -> str:
    """The digest of the key for the database: 32 random bytes cannot be guessed from it."""
    return hashlib.sha256(b"tacit ledger key\0" + key).hexdigest()


def check_server(connection: Connection, name: str) -> None:
    """Raise CannotStart unless the server keeps what it reports as committed."""
    row = connection.execute(
        "SELECT current_setting('fsync'), current_setting('full_page_writes'),"
        " current_setting('server_encoding'), pg_is_in_recovery()"
    ).fetchone()
    fsync, full_page_writes, encoding, is_standby = row or (None, None, None, None)
    if is_standby:
        raise CannotStart(
            f"The server of the ledger {name} is a standby, which does not accept writes.",
            hint="Name the primary server, or name all hosts with target_session_attrs=read-write.",
        )
    for setting, value in (("fsync", fsync), ("full_page_writes", full_page_writes)):
        if value != "on":
            raise CannotStart(
                f"The server of the ledger {name} runs with {setting} = {value}, so it "
                "could lose recorded spending when its machine stops.",
                hint=f"Set {setting} = on, or use another server.",
            )
    if encoding != "UTF8":
        raise CannotStart(
            f"The database of the ledger {name} uses the encoding {encoding}, not UTF8.",
            hint="Create it with ENCODING 'UTF8'.",
        )


def _relations(connection: Connection, schema: str) -> set[str]:
    rows = connection.execute(
        "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
        " WHERE nspname = %s",
        [schema],
    )
    return {relation for (relation,) in rows}


def _create_schema(connection: Connection, schema: str) -> None:
    # IF NOT EXISTS would need the right to create a schema even where the owner has created it.
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema])
    if found.fetchone() is None:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))


def _version(connection: Connection, schema: str, name: str) -> int:
    if not {"entries", "tacit_meta"} <= _relations(connection, schema):
        raise _foreign(name)
    query = sql.SQL("SELECT version FROM {meta}")
    row = connection.execute(query.format(meta=sql.Identifier(schema, "tacit_meta"))).fetchone()
    if row is None:
        raise _foreign(name)
    if row[0] > SCHEMA_VERSION:
        raise LedgerCorrupt(
            f"The ledger {name} was written by a newer Tacit.",
            hint="Use that version or a later one.",
        )
    return int(row[0])


def _record(connection: Connection, schema: str, version: int, *, is_new: bool) -> None:
    meta = sql.Identifier(schema, "tacit_meta")
    if is_new:
        insert = sql.SQL("INSERT INTO {meta} (version, ledger_id) VALUES (%s, %s)")
        connection.execute(insert.format(meta=meta), [version, secrets.token_hex(16)])
    else:
        connection.execute(sql.SQL("UPDATE {meta} SET version = %s").format(meta=meta), [version])


def _foreign(name: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"The schema of {name} is not a Tacit ledger.",
        hint="Name another schema with ?schema=. The schema was not changed.",
    )
