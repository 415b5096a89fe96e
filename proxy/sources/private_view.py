"""Private views: the owner's SQL over private files, run once when the source opens.

It runs in a database of its own that can read the named files and reach nothing else. Its result is
copied to the source's database, row by row, and this database is closed. The SQL is trusted, as the
whole configuration is: the owner guarantees that each row is about one privacy unit and does not
depend on any other (`Schema.unit` checks that no unit has two rows).

What a view names that its sources do not have is said to the owner who wrote it. DuckDB's own
message is not shown, since it may quote a row: where the SQL reads a file by itself, its columns
are guessed from the rows. A name is taken from it only if the view's text holds it.
"""

import csv
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb

from cube.refusals import ConfigurationInvalid
from planner.sql import listed, suggestion
from proxy.sources import files
from proxy.sources.closed import Connection, Settings, closed_database, name_sql
from proxy.sources.location import PrivateView, SourceKind, SourceLocation
from proxy.sources.problems import key_path
from proxy.sources.text_format import fault_of

NAMED = (
    (r'Referenced column "(?P<name>[^"]+)" not found', "column"),
    (r'does not have a column named "(?P<name>[^"]+)"', "column"),
    (r'Referenced table "(?P<name>[^"]+)" not found', "table"),
    (r"Table with name (?P<name>\S+) does not exist", "table"),
    (r"Function with name (?P<name>\S+) does not exist", "function"),
    (r"No function matches the given name and argument types '(?P<name>\w+)\(", "function"),
    (r'column "(?P<name>[^"]+)" must appear in the GROUP BY clause', "group key"),
)
UNKNOWN = "names columns or tables that its sources do not have, or does not fit their types"


def what_is_wrong(
    message: str, sql: str, sources: Mapping[str, Sequence[str]]
) -> tuple[str, str | None]:
    """What is wrong with a view that DuckDB could not bind, and what there is instead.

    Parameters
    ----------
    message : str
        DuckDB's refusal, from before it ran the view.
    sql : str
        The view.
    sources : mapping of str to sequence of str
        The columns of each source, under the names that the view may use; none for a source whose
        columns may not be shown.
    """
    name, kind = _named(message, sql)
    match kind:
        case "column":
            every = [column for columns in sources.values() for column in columns]
            there = "; ".join(
                f"{source} has {listed(has)}" if has else f"{source} has what its first line says"
                for source, has in sources.items()
            )
            return f"names a column {name} that its sources do not have", _hint(name, every, there)
        case "table":
            there = f"Its sources are {listed(sources)}"
            return f"names a table {name} that is not among its sources", _hint(
                name, sources, there
            )
        case "function":
            return (
                f"calls {name}, which DuckDB does not have for arguments of these types",
                "Every column of a CSV file is text: CAST it first.",
            )
        case "group key":
            return (
                f"selects {name}, which is neither grouped by nor aggregated",
                f"Add it to GROUP BY, or write any_value({name}).",
            )
        case _:
            return UNKNOWN, None


def _named(message: str, sql: str) -> tuple[str, str]:
    """The name that a message is about, as far as the owner wrote it, and the kind of thing."""
    for pattern, kind in NAMED:
        found = re.search(pattern, message)
        if found is not None and found["name"].casefold() in sql.casefold():
            return found["name"], kind
    return "", ""


def _hint(name: str, names: Iterable[str], there: str) -> str:
    nearest = suggestion(name, names)
    return f"{there}." if nearest is None else f"{nearest} {there}."


SETTINGS: Settings = {
    "arrow_lossless_conversion": True,  # keep a sum of BIGINT as HUGEINT
    # A sum of doubles or an any_value() may depend on the order of rows, but not on threads.
    "threads": 1,
}
HINTS = {
    "sources": "A source is a CSV or Parquet file, or a base table of a .duckdb file at rest.",
    "view": "Run it in DuckDB on the files; every column of a CSV file is text there.",
}
LENGTH_BYTES = 8
SNAPSHOT = "snapshot"  # the view's result, until it is encoded


def materialise(
    view: PrivateView,
    table: str,
    states: Mapping[Path, files.FileState],
    into: Connection,
) -> files.Relation:
    """Run a view and keep its result as a table of another database.

    Parameters
    ----------
    table : str
        The private table that the view defines.
    states : mapping of Path to FileState
        The state of each file that it reads.
    into : Connection
        The other database.

    Raises
    ------
    ConfigurationInvalid
        With the stage that failed. The driver's message may quote a row, and is dropped.
    """
    with closed_database(files.reachable(states), SETTINGS) as connection:
        try:
            _open_sources(view, states, connection)
        except (duckdb.Error, csv.Error, OSError, UnicodeError):
            what, hint = _what_is_wrong(view) or (
                "cannot be read as the files that they name",
                None,
            )
            raise _refusal(table, "sources", what, hint) from None
        try:
            result = connection.sql(_one_select(view.sql, table))
            names = [name.casefold() for name in result.columns]
        except (duckdb.ParserException, duckdb.SyntaxException):
            raise _refusal(table, "view", "is not SQL that DuckDB can parse") from None
        except duckdb.Error as error:
            what, hint = what_is_wrong(str(error), view.sql, _columns(view, connection))
            raise _refusal(table, "view", what, hint) from None
        if len(set(names)) != len(names):
            raise _refusal(table, "view", "gives two columns with the same name")
        try:
            into.register("result", result.to_arrow_reader())
            into.execute(f"CREATE TABLE {SNAPSHOT} AS FROM result")
            into.unregister("result")
        except duckdb.Error:
            what, hint = _what_is_wrong(view) or ("fails on the rows of its sources", None)
            raise _refusal(table, "view", what, hint) from None
    return files.Relation(SNAPSHOT)


def _what_is_wrong(view: PrivateView) -> tuple[str, str] | None:
    """What is wrong with the first file of text that cannot be read as it is declared."""
    for _name, location in view.sources:
        for path in location.files if location.kind is SourceKind.CSV else ():
            found = fault_of(path, location.text_format)
            if found is not None:
                return f"{path} {found[0]}", found[1]
    return None


def _open_sources(
    view: PrivateView,
    states: Mapping[Path, files.FileState],
    connection: Connection,
) -> None:
    """Make the sources available under the names that the view uses."""
    attached: dict[Path, str] = {}
    for name, location in view.sources:
        outside = files.OUTSIDE
        if isinstance(location, SourceLocation):
            # A database file can be attached once, however many of its tables are sources.
            path = states[location.path].path
            outside = attached.setdefault(path, f"{files.OUTSIDE}_{len(attached)}")
        relation = files.opened(location, states, connection, outside)
        connection.execute(f"CREATE VIEW {name_sql(name)} AS FROM {relation.named}")


def _columns(view: PrivateView, connection: Connection) -> dict[str, list[str]]:
    """The columns of each source, as far as its file declares them.

    What a CSV file calls its columns is its first line, which may be a person's row.
    """
    return {
        name: []
        if location.kind is SourceKind.CSV
        else connection.sql(f"FROM {name_sql(name)}").columns
        for name, location in view.sources
    }


def _one_select(sql: str, table: str) -> str:
    """The text of the view, provided that it is one statement that only reads."""
    statements = duckdb.extract_statements(sql)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        raise _refusal(table, "view", "is not one SELECT statement")
    query: str = statements[0].query
    return query


def _refusal(table: str, key: str, what: str, hint: str | None = None) -> ConfigurationInvalid:
    where = key_path(("tables", table, key))
    return ConfigurationInvalid(f"{where}: {what}.", hint=hint or HINTS[key])


def fingerprint(
    view: PrivateView,
    key: bytes,
    opened: Mapping[Path, files.FileState],
    rows: Iterable[bytes],
) -> str:
    """HMAC-SHA256 of a view's text, its sources and its rows, in hexadecimal.

    The text and the sources do not determine the rows: a view may read the date or a random number,
    and another release of DuckDB may add doubles in another order. Every server of the same ledger
    must hold the same rows, or noise that is refined later would not be the noise that was drawn.

    Parameters
    ----------
    view : PrivateView
        The view that was run.
    key : bytes
        The ledger's secret key.
    opened : mapping of Path to FileState
        The state of each file when it was read.
    rows : iterable of bytes
        The rows as they are served, in canonical order.
    """
    code = hmac.new(key, digestmod=hashlib.sha256)
    parts = [view.sql.strip()]
    for name, location in sorted(view.sources, key=lambda source: source[0].casefold()):
        parts += [name.casefold(), files.fingerprint(location, key, opened)]
    for part in parts:
        encoded = part.encode()
        # Each part is preceded by its length, so that different lists never give the same bytes.
        code.update(len(encoded).to_bytes(LENGTH_BYTES, "big"))
        code.update(encoded)
    for some in rows:
        code.update(some)
    return code.hexdigest()
