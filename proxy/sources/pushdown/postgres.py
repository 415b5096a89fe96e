"""A table in PostgreSQL that stays there: an ordinary or partitioned table, or a materialised view.

Every look is a transaction of its own, read-only, of one snapshot. Rows are written by transactions
with rising numbers, and are never written again: so rows that are all older than a snapshot, and as
many as were in it, are the rows that were in it (accountant/proofs/refinement.md). What else may
change what a row means is in the catalog, and looked up each time.
"""

import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
# The table, and whatever changes what its rows are, or what a statement finds in them.
TABLE: Final = """
SELECT c.oid::bigint AS number, n.nspname::text AS folder, c.relname::text AS name,
       c.relkind::text AS kind, current_setting('server_encoding') AS encoding,
       pg_snapshot_xmin(pg_current_snapshot())::text AS newest,
       concat_ws(' ', pg_postmaster_start_time(), c.oid, c.relkind, c.relhassubclass,
           (SELECT string_agg(p.relid::oid::text, ',' ORDER BY p.relid::oid)
            FROM pg_partition_tree(c.oid) p)) AS mark,
       c.relhassubclass AND c.relkind <> 'p' AS has_children
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
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
                yield _Reading(_Asking(cursor, self.dialect), self._table, self._timeout)
            with suppress(dbapi.Error):
                connection.rollback()  # the next transaction begins with the next statement
                is_over = True
        finally:
            if is_over and not self._idle:
                self._idle.append(connection)
            else:
                _close(connection)

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


class _Reading:
    """A look at a table: all of its statements see one snapshot."""

    def __init__(self, asking: _Asking, table: str, timeout: float) -> None:
        self._asking = asking
        for setting in (*SETTINGS, f"SET LOCAL statement_timeout = {round(timeout * 1000)}"):
            asking.do(setting)
        found = asking.ask(TABLE.format(name=asking.literal(table))).to_pylist()
        if len(found) != 1 or found[0]["kind"] not in KINDS or found[0]["has_children"]:
            raise EngineError(Failure.NO_TABLE)
        (this,) = found
        if this["encoding"] != "UTF8":
            raise EngineError(Failure.NO_TABLE)
        columns = asking.ask(COLUMNS.format(number=this["number"])).to_pylist()
        # No function or operator of the user's is to be found before PostgreSQL's own.
        asking.do("SET LOCAL search_path = pg_catalog")
        names = (exp.to_identifier(this[part], quoted=True) for part in ("name", "folder"))
        self.table: exp.Expr = exp.Table(**dict(zip(("this", "db"), names, strict=True)))
        self.columns: Mapping[str, SourceColumn] = {
            one["name"].casefold(): _column(one) for one in columns
        }
        marks = (this["mark"], *(one["mark"] for one in columns))
        self.identity = Identity(marks, int(this["newest"]))

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
