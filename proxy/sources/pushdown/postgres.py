"""A table in PostgreSQL that stays there: an ordinary or partitioned table, or a materialised view.

Every look is a transaction of its own, read-only, of one snapshot. Rows are written by transactions
with rising numbers, and are never written again: so rows that are all older than a snapshot, and as
many as were in it, are the rows that were in it (accountant/proofs/refinement.md). What else may
change what a row means is in the catalog, and looked up each time; unless nobody wrote anything on
the whole server since it was, which one look at the snapshot says.
"""

import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from proxy.sources.pushdown.engine import EngineError, Failure, Identity
from proxy.sources.pushdown.postgres_sql import PostgresSql
from proxy.sources.pushdown.trees import text
from proxy.sources.source_column import SourceColumn

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor

SETTINGS: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL row_security = off",  # a policy would be an error, not fewer rows
)
# What a transaction sees: the server, and which transactions were over.
SNAPSHOT: Final = """
SELECT pg_snapshot_xmin(s)::text AS newest, pg_snapshot_xmax(s)::text AS following,
       pg_postmaster_start_time()::text AS server, pg_is_in_recovery() AS is_a_copy
FROM pg_current_snapshot() AS s
"""
# The table, and whatever changes what its rows are, or what a statement finds in them.
TABLE: Final = """
SELECT c.oid::bigint AS number, n.nspname::text AS folder, c.relname::text AS name,
       c.relkind::text AS kind, current_setting('server_encoding') AS encoding,
       concat_ws(' ', pg_postmaster_start_time(), c.oid, c.relkind, c.relhassubclass,
           (SELECT string_agg(p.relid::oid::text, ',' ORDER BY p.relid::oid)
            FROM pg_partition_tree(c.oid) p)) AS mark,
       c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'SELECT') AS may_be_locked,
       c.relkind <> 'p' AND (c.relhassubclass OR h.amname IS DISTINCT FROM 'heap') OR EXISTS (
           SELECT FROM pg_partition_tree(c.oid) p
           JOIN pg_class l ON l.oid = p.relid LEFT JOIN pg_am a ON a.oid = l.relam
           WHERE p.isleaf AND (l.relkind <> 'r' OR a.amname <> 'heap')) AS is_elsewhere
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am h ON h.oid = c.relam
WHERE c.oid = to_regclass({name})
"""
COLUMNS: Final = """
SELECT a.attname::text AS name, coalesce(b.typname, t.typname)::text AS kind,
       coalesce(b.typtype, t.typtype) = 'e' AS is_enum,
       (CASE WHEN b.oid IS NULL THEN a.atttypmod ELSE t.typtypmod END)::bigint AS modifier,
       concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attgenerated, t.typbasetype,
           (SELECT string_agg(quote_literal(e.enumlabel) || e.oid, ',' ORDER BY e.oid)
            FROM pg_enum e WHERE e.enumtypid = coalesce(b.oid, t.oid))) AS mark
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON b.oid = t.typbasetype
WHERE a.attrelid = {number} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
ORDER BY a.attnum
"""
KINDS: Final = frozenset("rpm")  # ordinary, partitioned, materialised
TYPES: Final = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "bpchar": "VARCHAR",
    "name": "VARCHAR",
    "uuid": "VARCHAR",
}
DECIMAL_DIGITS: Final = 38
UNDER_MODIFIER: Final = 4  # PostgreSQL's offset of a type's digits
N_TRANSACTIONS: Final = 2**32  # after as many, their short numbers begin anew
LATE: Final = "57014"
REFUSED: Final = ("42", "3F", "28", "3D")
CODE: Final = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")


class Postgres:
    """A table that PostgreSQL reads.

    Parameters
    ----------
    table : str
        Its name in PostgreSQL's SQL.
    label : str
        Its name in messages.
    timeout : float
        How long one statement may take, in seconds.
    parameters : callable
        The parameters of a connection, with its password: a secret.
    """

    def __init__(
        self, table: str, label: str, timeout: float, parameters: Callable[[], str]
    ) -> None:
        self.dialect = PostgresSql()
        self.label = label
        self._table = table
        self._timeout = timeout
        self._parameters = parameters
        self._last: _Facts | None = None  # as good as ever at the same moment
        self._idle: list[Connection] = []  # kept, as connecting takes tenths of a second
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def reading(self) -> Iterator["_Reading"]:
        """Begin a look at the table; EngineError."""
        try:
            from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - an extra
        except ImportError:
            raise EngineError(Failure.NOT_INSTALLED) from None
        connection = self._kept_connection()
        if connection is None:
            try:
                connection = dbapi.connect(self._parameters())
            except dbapi.Error:
                raise EngineError(Failure.UNREACHABLE) from None
        is_over = False
        try:
            with connection.cursor() as cursor:
                asking = _Asking(cursor, self.dialect)
                if self._last is None:
                    # Which table that is has to be known before it is locked.
                    self._begin(asking)
                    connection.rollback()
                yield self._begin(asking)
            with suppress(dbapi.Error):
                connection.rollback()  # the next transaction begins with the next statement
                is_over = True
        finally:
            if is_over and not self._idle:
                self._idle.append(connection)
            else:
                _close(connection)

    def _begin(self, asking: "_Asking") -> "_Reading":
        """A look that begins with the lock, if the table was found to be one that can be locked."""
        last, self._last = self._last, None
        reading = _Reading(asking, self._table, self._timeout, last)
        self._last = reading.facts
        return reading

    def _kept_connection(self) -> "Connection | None":
        """The connection of an earlier look, if it is still there."""
        with suppress(IndexError):
            connection = self._idle.pop()
            try:
                with connection.cursor() as cursor:
                    cursor.execute(SETTINGS[0])
            except connection.Error:
                _close(connection)
            else:
                return connection
        return None


class _Asking:
    """The statements of one transaction, one after the other."""

    def __init__(self, cursor: "Cursor", dialect: PostgresSql) -> None:
        self._cursor = cursor
        self._dialect = dialect

    def do(self, statement: str) -> None:
        with _without_texts():
            self._cursor.execute(statement)

    def ask(self, statement: str) -> pa.Table:
        with _without_texts():
            self._cursor.execute(statement)
            return self._cursor.fetch_arrow_table()

    def literal(self, value: str) -> str:
        return self._dialect.sql(text(value))

    def lock(self, table: exp.Expr) -> None:
        """As whoever reads does: rows may be written meanwhile, but no whole table."""
        self.do(f"LOCK TABLE {self._dialect.sql(table)} IN ACCESS SHARE MODE")


@dataclass(frozen=True)
class _Facts:
    """What was looked up of a table, and at what moment, if nobody was writing then."""

    table: exp.Expr
    columns: Mapping[str, SourceColumn]
    marks: tuple[str, ...]
    may_be_locked: bool
    moment: str | None = None


def _looked_up(asking: _Asking, name: str) -> _Facts:
    """The table as it is now."""
    found = asking.ask(TABLE.format(name=asking.literal(name))).to_pylist()
    if len(found) != 1 or found[0]["kind"] not in KINDS or found[0]["is_elsewhere"]:
        raise EngineError(Failure.NO_TABLE)
    (this,) = found
    if this["encoding"] != "UTF8":
        raise EngineError(Failure.NO_TABLE)
    columns = asking.ask(COLUMNS.format(number=this["number"])).to_pylist()
    names = (exp.to_identifier(this[part], quoted=True) for part in ("name", "folder"))
    return _Facts(
        exp.Table(**dict(zip(("this", "db"), names, strict=True))),
        {one["name"].casefold(): _column(one) for one in columns},
        (this["mark"], *(one["mark"] for one in columns)),
        this["may_be_locked"],
    )


class _Reading:
    """A look at a table: all of its statements see one snapshot."""

    def __init__(self, asking: _Asking, name: str, timeout: float, last: _Facts | None) -> None:
        self._asking = asking
        for setting in (*SETTINGS, f"SET LOCAL statement_timeout = {round(timeout * 1000)}"):
            asking.do(setting)
        # Before the snapshot: then nothing is done to the table that snapshots do not undo.
        locked = None if last is None or not last.may_be_locked else last.table
        if locked is not None:
            asking.lock(locked)
        (seen,) = asking.ask(SNAPSHOT).to_pylist()
        moment = None
        if locked is not None and not seen["is_a_copy"] and seen["newest"] == seen["following"]:
            moment = f"{seen['server']} {seen['following']}"
        is_locked = True
        if last is not None and moment is not None and moment == last.moment:
            self.facts = last
        else:
            found = _looked_up(asking, name)
            is_locked = found.table == locked
            self.facts = replace(found, moment=moment if is_locked else None)
        # No function or operator of the user's is to be found before PostgreSQL's own.
        asking.do("SET LOCAL search_path = pg_catalog")
        following = int(seen["following"]) if is_locked else None
        self.identity = Identity(
            self.facts.marks, int(seen["newest"]), following, self.facts.moment
        )

    @property
    def table(self) -> exp.Expr:
        """What follows FROM."""
        return self.facts.table

    @property
    def columns(self) -> Mapping[str, SourceColumn]:
        """The table's columns by their names in lower case."""
        return self.facts.columns

    def rows(self, query: exp.Expr) -> pa.Table:
        """What a statement gives; EngineError."""
        return self._asking.ask(PostgresSql().sql(query))

    def age_of(self, transaction: int) -> int:
        """How many transactions began since one; EngineError."""
        short = self._asking.literal(str(transaction % N_TRANSACTIONS))
        (found,) = self._asking.ask(f"SELECT age({short}::xid) AS age").to_pylist()
        return int(found["age"])


def _close(connection: "Connection") -> None:
    # Of a lost connection, not even the end is heard.
    with suppress(connection.Error):
        connection.close()


def _close_all(connections: "list[Connection]") -> None:
    for connection in connections:
        _close(connection)


@contextmanager
def _without_texts() -> Iterator[None]:
    """Raise EngineError for whatever fails: PostgreSQL's text may quote a row."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is
        raise EngineError(_failure(error)) from None


def _failure(error: Exception) -> Failure:
    found = CODE.search(str(error))
    code = str(getattr(error, "sqlstate", None) or "") or (found[1] if found else "")
    if code == LATE:
        return Failure.LATE
    return Failure.REFUSED if code.startswith(REFUSED) else Failure.BROKEN


def _column(one: Mapping[str, Any]) -> SourceColumn:
    """A column by PostgreSQL's name of its type; what has no name here fits no axis."""
    name, kind, modifier = one["name"], one["kind"], one["modifier"] - UNDER_MODIFIER
    if one["is_enum"]:
        return SourceColumn(name, "ENUM", False)
    if kind == "numeric":
        digits, places = modifier >> 16, modifier & 0x7FF
        is_bounded = modifier >= 0 and places <= digits <= DECIMAL_DIGITS
        return SourceColumn(name, "DECIMAL", False, places if is_bounded else None)
    return SourceColumn(name, TYPES.get(kind, kind.upper()), False)
