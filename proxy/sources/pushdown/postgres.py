"""A table in PostgreSQL that stays there: an ordinary or partitioned table, or a materialised view.

Every look is a transaction of its own, read-only, of one snapshot, in PostgreSQL's words. Rows are
written by transactions with rising numbers, and are never written again: so rows that are all older
than a snapshot, and as many as were in it, are the rows that were in it
(accountant/proofs/refinement.md). What else may change what a row means is in the catalog, and
looked up each time, unless nothing was written on the whole server since the last time, which one
look at the snapshot shows.
"""

import datetime as dt
import math
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from sqlglot import exp

from proxy.sources.axis_sql import SourceColumn
from proxy.sources.pushdown.dialect import (
    BIG,
    DIGEST_DIGITS,
    DOUBLE,
    DOUBLE_MAX,
    PLACE,
    VALUE,
    Dialect,
    between,
    call,
    case,
    double,
    minus,
    plus,
    text,
    times,
    whole,
)
from proxy.sources.pushdown.engine import EngineError, Failure, Identity

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor


HOURS_A_DAY: Final = 24
MINUTES_AN_HOUR: Final = 60
LEAST: Final = "1e-300"  # PostgreSQL refuses to round a number to a double that is 0


class PostgresSql(Dialect):
    """What PostgreSQL says in its own words."""

    sqlglot_name = "postgres"
    n_edges_max = 2**20

    def text(self, column: exp.Expr) -> exp.Expr:
        """By its bytes; of a `char(n)` without the blanks that fill it up."""
        as_text = exp.cast(column.copy(), "TEXT")
        return exp.Collate(this=as_text, expression=exp.to_identifier("C", quoted=True))

    def is_finite(self, value: exp.Expr) -> exp.Expr:
        """NaN is above every double here."""
        return between(value, double(-DOUBLE_MAX), double(DOUBLE_MAX))

    def is_number(self, value: exp.Expr) -> exp.Expr:
        """A NUMERIC may be NaN, too."""
        return exp.NEQ(this=value.copy(), expression=exp.cast(text("NaN"), "DECIMAL"))

    def one_zero(self, value: exp.Expr) -> exp.Expr:
        """They are equal here."""
        return value.copy()

    def as_double(self, value: exp.Expr, *, is_unbounded: bool) -> exp.Expr:
        """A NUMERIC without a scale may be beyond every double, or between 0 and the least."""
        nearest = exp.cast(value.copy(), DOUBLE)
        if not is_unbounded:
            return nearest
        largest = exp.cast(text(repr(DOUBLE_MAX)), "DECIMAL")
        least = exp.cast(text(LEAST), "DECIMAL")
        is_beyond = exp.GT(this=call("abs", value), expression=largest)
        is_least = exp.LT(this=call("abs", value), expression=least)
        least_double = exp.cast(times(call("sign", value), least), DOUBLE)
        infinite = exp.cast(text("Infinity"), DOUBLE)
        return case(((is_beyond, infinite), (is_least, least_double)), nearest)

    def divided(self, value: exp.Expr, by: int) -> exp.Expr:
        """A whole number divided by another, cut towards 0."""
        return exp.Div(this=exp.paren(value.copy()), expression=whole(by), typed=True)

    def days_since(self, low: dt.date, day: exp.Expr) -> exp.Expr:
        """The days from one date to another."""
        return minus(day, exp.cast(text(low.isoformat()), "DATE"))

    def on_clock(self, zone: str, moment: exp.Expr) -> exp.Expr:
        """What the clock of a zone shows at a moment."""
        return call("timezone", text(zone), moment)

    def steps_since(self, low: dt.datetime, step: str, moment: exp.Expr) -> exp.Expr:
        """An interval between times is days, hours and minutes, whole numbers each."""
        since = minus(moment, exp.cast(text(str(low)), "TIMESTAMP"))
        days = call("date_part", text("day"), since)
        hours = plus(times(days, whole(HOURS_A_DAY)), call("date_part", text("hour"), since))
        minutes = plus(
            times(hours, whole(MINUTES_AN_HOUR)), call("date_part", text("minute"), since)
        )
        return exp.cast({"day": days, "hour": hours, "minute": minutes}[step], BIG)

    def place(self, value: exp.Expr, edges: Sequence[exp.Expr]) -> exp.Expr:
        """By a binary search of its own, which compares as `>=` does."""
        found = call("width_bucket", value, exp.Array(expressions=[one.copy() for one in edges]))
        return call("nullif", minus(found, whole(1)), whole(-1))

    def levels(self, values: Sequence[str], alias: str) -> exp.Expr:
        """One literal, whatever their number."""
        escaped = (one.replace("\\", "\\\\").replace('"', '\\"') for one in values)
        listed = exp.cast(text("{" + ",".join(f'"{one}"' for one in escaped) + "}"), "TEXT[]")
        rows = exp.Unnest(
            expressions=[listed],
            alias=exp.TableAlias(
                this=exp.to_identifier("listed"), columns=[exp.to_identifier(VALUE)]
            ),
            offset=exp.to_identifier("number"),
        )
        place = minus(exp.column("number"), whole(1)).as_(PLACE)
        return exp.select(exp.column(VALUE), place).from_(rows).subquery(alias)

    def digest_part(self, text: exp.Expr, part: int) -> exp.Expr:
        """Sixty bits of it, from its hexadecimal digits."""
        hexadecimal, utf8 = exp.Literal.string("hex"), exp.Literal.string("UTF8")
        digest = call("encode", call("sha256", call("convert_to", text, utf8)), hexadecimal)
        start = whole(part * DIGEST_DIGITS + 1)
        digits = call("substr", digest, start, whole(DIGEST_DIGITS))
        written = call("concat", exp.Literal.string("x"), digits)
        return exp.cast(exp.cast(written, f"BIT({4 * DIGEST_DIGITS})"), BIG)

    def writer_of_row(self) -> exp.Expr | None:
        """The number of the transaction that wrote a row is in it."""
        return exp.column("xmin")

    def age_of(self, writer: exp.Expr) -> exp.Expr:
        """PostgreSQL looks up the present number for it, which its parallel workers cannot."""
        return call("age", writer)

    def number_of(self, writer: exp.Expr) -> exp.Expr:
        """Its 32 bits, which begin anew after as many transactions."""
        return exp.cast(exp.cast(writer.copy(), "TEXT"), BIG)

    def is_among(self, writer: exp.Expr, numbers: Sequence[int]) -> exp.Expr:
        """By equality; many values are looked up in a hash table."""
        return exp.In(this=writer.copy(), expressions=[text(str(one)) for one in numbers])

    def bucket(self, value: exp.Expr, edges: Sequence[float], last: float) -> exp.Expr | None:
        """NaN is above every double here, so that one search says all."""
        ends = [*edges, math.nextafter(last, math.inf)]
        return call("width_bucket", value, exp.Array(expressions=[double(one) for one in ends]))

    def about_how_many(self, value: exp.Expr) -> exp.Expr | None:  # noqa: ARG002 - of every engine
        """A search takes it less time than grouping by thousands of values."""
        return None


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
        """Lock as a reader does: rows may be written meanwhile, but the table cannot be altered."""
        self.do(f"LOCK TABLE {self._dialect.sql(table)} IN ACCESS SHARE MODE")


@dataclass(frozen=True)
class _Facts:
    """The facts looked up about a table; with the moment, if nothing was being written then."""

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
