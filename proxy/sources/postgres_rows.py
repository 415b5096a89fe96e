"""Rows of PostgreSQL as a relation in the database that encodes them: streamed, never all at once.

One read-only transaction at REPEATABLE READ, and so one snapshot, gives the declared columns and no
others, through ADBC. Values are cast there to what arrives whole: see `_read_as`. The driver's text
may quote a row, and is dropped: what is said is what kind of failure its SQLSTATE names.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cube.refusals import ConfigurationInvalid, InvalidRequest
from proxy.sources.axis_sql import TEXT, ZONED, SourceColumn
from proxy.sources.closed import Connection, Flow, name_sql
from proxy.sources.files import Relation
from proxy.sources.location import PostgresRows

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

STREAM: Final = "streamed"
KIND: Final = b"POSTGRESQL:type"  # the driver's type of a column; for a domain, its base type
MODIFIER: Final = b"POSTGRESQL:typmod"
ONE_SNAPSHOT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
DECIMAL_DIGITS_MAX: Final = 38
LATEST, EARLIEST = "10000-01-01", "0002-01-01 BC"  # outside of every level; infinite ones are, too

WHOLE: Final = {"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT"}
PLAIN: Final = WHOLE | {"float4": "FLOAT", "float8": "DOUBLE", "bool": "BOOLEAN"}
MOMENTS: Final = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamptz": ZONED}
NO_TEXT: Final = frozenset(("json", "jsonb", "xml"))  # arrive as text, and are no categories
CODE: Final = re.compile(r"SQLSTATE: ([0-9A-Z]{5})")
LOST: Final = ("08", "57P", "53")  # classes of SQLSTATE for a connection that is gone, or not there

PRIMARY_KEY: Final = (
    "SELECT CAST(a.attname AS text) FROM pg_catalog.pg_index AS i "
    "JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
    "WHERE i.indisprimary AND i.indrelid = pg_catalog.to_regclass({table}) ORDER BY a.attnum"
)

SAID: Final = {
    "22000": "reading a row fails; the server's log says why",
    "22003": "a number in it is beyond what a double holds",
    "25006": "source_query writes, which a read-only transaction refuses",
    "42501": "the user may not read it",
    "42601": "source_query is not one SELECT in PostgreSQL's SQL",
    "42703": "it names a column that is not there",
    "42883": "it names a function that is not there, or with values of other types",
    "42P01": "there is no such table or view",
    "3F000": "there is no such schema",
    "57014": "it took longer than the server lets statements run, or was cancelled there",
}
AMID_ROWS: Final = {"canceling statement": "57014", "ERROR:": "22000"}
CANNOT_CONNECT: Final = "the server cannot be reached, or does not let the user in"
HINT: Final = (
    "Try it with psql, with the same location. A password comes from password_file, PGPASSWORD, or "
    "libpq's password file."
)


class ConnectionLost(ConfigurationInvalid):
    """The connection was lost while rows were read: nothing was kept, and it may be tried again."""


@contextmanager
def opened(rows: PostgresRows, wanted: Sequence[str], connection: Connection) -> Iterator[Relation]:
    """The declared columns as a relation to select from, once, while this context lasts.

    Parameters
    ----------
    wanted : sequence of str
        The names of the columns to read, in any letter case; what is absent is left out.
    connection : Connection
        Where the relation is to be.

    Raises
    ------
    ConfigurationInvalid
        If the driver is not installed, or the rows cannot be read; ConnectionLost if they could not
        be read to the end.
    """
    with _connected(rows) as cursor:
        try:
            columns = _wanted(rows, _all_columns(rows, cursor), wanted)
            cast = ", ".join(f"{_read_as(one)} AS {name_sql(one.name)}" for one in columns)
            cursor.execute(f"SELECT {cast or '1'} FROM {_source(rows)}")  # noqa: S608 - quoted names
            stream = cursor.fetch_record_batch()
        except Exception as error:  # noqa: BLE001 - whatever it is, its text may quote a row
            raise refusal(rows, error) from None
        flow = Flow(_refusing(rows, stream))
        connection.register(STREAM, flow.reader(stream.schema))
        described = {one.name.casefold(): _column(one) for one in columns}
        try:
            yield Relation(STREAM, columns=described)
        except Exception:
            flow.raise_failure()
            raise
        finally:
            connection.unregister(STREAM)


def described(rows: PostgresRows) -> list[tuple[str, str]]:
    """The name of each column and its type, as DuckDB calls what arrives; no row is read.

    Raises
    ------
    ConfigurationInvalid
        If the driver is not installed, or the server does not say.
    """
    with _connected(rows) as cursor:
        try:
            columns = _all_columns(rows, cursor)
        except Exception as error:  # noqa: BLE001 - the driver's text is dropped
            raise refusal(rows, error) from None
    return [(one.name, _column(one).type_name) for one in columns]


def primary_key(rows: PostgresRows) -> list[str]:
    """The columns of a table's PRIMARY KEY, in their order; none of a view or a query.

    Raises
    ------
    ConfigurationInvalid
        If the driver is not installed, or the server does not say.
    """
    if rows.table is None:
        return []
    with _connected(rows) as cursor:
        try:
            cursor.execute(PRIMARY_KEY.format(table=_literal(rows.table)))
            found = cursor.fetch_arrow_table()
        except Exception as error:  # noqa: BLE001 - the driver's text is dropped
            raise refusal(rows, error) from None
    names: list[str] = found.column(0).to_pylist()
    return names


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _all_columns(rows: PostgresRows, cursor: "Cursor") -> pa.Schema:
    cursor.execute(f"SELECT * FROM {_source(rows)} LIMIT 0")  # noqa: S608 - the owner's
    return cursor.fetch_arrow_table().schema


@contextmanager
def _connected(rows: PostgresRows) -> "Iterator[Cursor]":
    """A cursor in a transaction that reads one snapshot, and writes nothing."""
    try:
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - an extra that not everybody installs
    except ImportError:
        raise ConfigurationInvalid(
            f"{rows.label} needs a driver that is not installed.",
            hint="pip install 'tacit-dp[postgres]'",
        ) from None
    try:
        connection = dbapi.connect(conninfo(rows))
    except Exception as error:  # noqa: BLE001 - the driver's text is dropped
        raise refusal(rows, error, is_connecting=True) from None
    try:
        with connection.cursor() as cursor:
            try:
                cursor.execute(ONE_SNAPSHOT)
            except Exception as error:  # noqa: BLE001 - the driver's text is dropped
                raise refusal(rows, error) from None
            yield cursor
    finally:
        connection.close()


def conninfo(rows: PostgresRows) -> str:
    """The connection's parameters for libpq, with the password if a file has it.

    Raises
    ------
    ConfigurationInvalid
        If that file cannot be read.
    """
    given = {
        **dict(rows.server.parameters),
        "client_encoding": "UTF8",
        "fallback_application_name": "tacit",
    }
    if rows.password_file is not None:
        given["password"] = _password(rows.password_file)
    return " ".join(f"{name}={_quoted(value)}" for name, value in given.items())


def _password(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationInvalid(
            f"The password file {path} cannot be read.",
            hint="It should hold the database's password as one line of text.",
        ) from None


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _source(rows: PostgresRows) -> str:
    """What follows FROM."""
    # The line's end ends a comment that the query may end with.
    relation = rows.table if rows.query is None else f"(\n{rows.query.strip().rstrip(';')}\n)"
    return f"{relation} AS source"


def _wanted(rows: PostgresRows, schema: pa.Schema, wanted: Sequence[str]) -> list[pa.Field]:
    """The columns of a relation that are declared."""
    folded = {name.casefold() for name in wanted}
    found = [one for one in schema if one.name.casefold() in folded]
    if len({one.name.casefold() for one in found}) != len(found):
        raise InvalidRequest(
            f"{rows.label} has two columns whose names differ in letter case only."
        )
    return found


def _kind(one: pa.Field) -> str:
    """PostgreSQL's name of a column's type."""
    found: bytes = (one.metadata or {}).get(KIND, b"")
    return found.decode()


def _digits(one: pa.Field) -> tuple[int, int] | None:
    """The digits of a NUMERIC(p, s), all and behind the point; None if a DECIMAL cannot hold it."""
    modifier = int((one.metadata or {}).get(MODIFIER, b"-1")) - 4
    if modifier < 0:
        return None
    digits, places = modifier >> 16, modifier & 0x7FF
    return (digits, places) if places <= digits <= DECIMAL_DIGITS_MAX else None


def _read_as(one: pa.Field) -> str:
    """SQL for a column, in PostgreSQL, as a type that arrives whole.

    Moments beyond year 9999, and infinite ones, arrive as ones that no level has. A NUMERIC(p, s)
    is text on its way; without p it is a double. CHAR(n) is without the blanks that fill it up, as
    PostgreSQL compares it.
    """
    name, kind = f"source.{name_sql(one.name)}", _kind(one)
    if kind in PLAIN:
        return name
    if kind in MOMENTS:
        zone = " UTC" if kind == "timestamptz" else ""
        least, most = f"{kind} '{EARLIEST}{zone}'", f"{kind} '{LATEST}{zone}'"
        if kind == "timestamptz":
            least = "timestamptz '0002-01-01 00:00:00+00 BC'"
            most = "timestamptz '10000-01-01 00:00:00+00'"
        # Of a NULL, each of the two would make its other argument.
        return f"CASE WHEN {name} IS NOT NULL THEN greatest({least}, least({most}, {name})) END"
    if kind == "numeric" and _digits(one) is None:
        return f"CAST({name} AS float8)"
    return f"CAST({name} AS text)"


def _column(one: pa.Field) -> SourceColumn:
    """A column as it arrived, in DuckDB."""
    name, kind = f"source.{name_sql(one.name)}", _kind(one)
    if kind in PLAIN | MOMENTS:
        return SourceColumn(name, (PLAIN | MOMENTS)[kind], False)
    digits = _digits(one)
    if kind == "numeric" and digits is None:
        return SourceColumn(name, "DOUBLE", False)
    if kind == "numeric" and digits is not None:
        # NaN is a value, and no DECIMAL.
        decimal = f"TRY_CAST({name} AS DECIMAL{digits})"
        return SourceColumn(decimal, "DECIMAL", False, digits[1], f"{name} IS NULL", digits[0])
    is_text = one.type == pa.string() and kind not in NO_TEXT
    return SourceColumn(name, TEXT if is_text or kind == "uuid" else kind.upper(), False)


def _refusing(rows: PostgresRows, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of a stream; what stops it is a refusal without the driver's text."""
    try:
        yield from stream
    except Exception as error:  # noqa: BLE001 - whatever it is, its text may quote a row
        raise refusal(rows, error) from None


def refusal(
    rows: PostgresRows, error: Exception, *, is_connecting: bool = False
) -> ConfigurationInvalid:
    """What to tell the owner of a failure, by its SQLSTATE alone."""
    if isinstance(error, ConfigurationInvalid | InvalidRequest):
        return ConfigurationInvalid(str(error))
    code = str(getattr(error, "sqlstate", None) or "") or _code_in(str(error))
    if is_connecting:
        return ConfigurationInvalid(f"{rows.label} cannot be read: {CANNOT_CONNECT}.", hint=HINT)
    if not code or code.startswith(LOST):
        return ConnectionLost(
            f"{rows.label} cannot be read: the connection was lost, or the server is out of space.",
            hint=HINT,
        )
    said = SAID.get(code, f"PostgreSQL refuses (SQLSTATE {code})")
    return ConfigurationInvalid(f"{rows.label} cannot be read: {said}.")


def _code_in(text: str) -> str:
    """The SQLSTATE in a driver's text, which has none if it is of an error amid the rows."""
    found = CODE.search(text)
    if found:
        return found[1]
    return next((code for words, code in AMID_ROWS.items() if words in text), "")
