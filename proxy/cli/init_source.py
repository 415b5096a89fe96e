"""What `tacit init` looks at: the names and types of a source's columns, and rows only if asked.

Nothing here decides what a draft says of them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import duckdb

from cube.refusals import ConfigurationInvalid
from proxy.sources import postgres_rows
from proxy.sources.base_table import SCHEMA, check_base_table
from proxy.sources.closed import name_sql, text_sql
from proxy.sources.files import OUTSIDE
from proxy.sources.location import PostgresRows, SourceKind, SourceLocation

Drafted: TypeAlias = SourceLocation | PostgresRows
READ = "rows_read"
# What a table of a database may take in memory, and nothing of it on disk.
COPY_BYTES_MAX = 2 * 2**30


@dataclass(frozen=True, slots=True)
class Look:
    """A source that is looked at.

    Parameters
    ----------
    columns : sequence of (str, str)
        Their names, and their types as DuckDB calls them, without what stands in brackets.
    relation : str
        SQL for the rows; of a database, only if they were asked for.
    ask : callable
        Runs SQL on them.
    """

    columns: Sequence[tuple[str, str]]
    relation: str
    ask: Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def looked_at(location: Drafted, *, read_rows: bool) -> Iterator[Look]:
    """A source, as long as this context lasts.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read.
    """
    if isinstance(location, PostgresRows):
        with _looked_at_there(location, read_rows=read_rows) as look:
            yield look
        return
    with duckdb.connect(config={"temp_directory": ""}) as connection:
        ask = partial(_answer, connection)
        try:
            relation = _relation(location, connection)
            described = ask(f"DESCRIBE FROM {relation}")
            yield Look([(name, kind.split("(")[0]) for name, kind, *_ in described], relation, ask)
        except duckdb.Error:
            raise ConfigurationInvalid(
                f"{location.path} cannot be read as a {location.kind} file.",
                hint="Check the path, and for a .duckdb file the name of the table in it.",
            ) from None


@contextmanager
def _looked_at_there(location: PostgresRows, *, read_rows: bool) -> Iterator[Look]:
    """A table in a database, whose rows are copied if they are asked for.

    They come once, and are looked at column by column; so they are in memory, up to a bound.
    """
    columns = postgres_rows.described(location)
    settings: dict[str, Any] = {"temp_directory": "", "memory_limit": f"{COPY_BYTES_MAX}B"}
    with duckdb.connect(config=settings) as connection:
        try:
            if read_rows:
                _copy(location, [name for name, _ in columns], connection)
            yield Look(columns, READ, partial(_answer, connection))
        except duckdb.OutOfMemoryException:
            raise ConfigurationInvalid(
                f"The rows of {location.label} take more than {COPY_BYTES_MAX / 2**30:.3g} GiB "
                "of memory, so no levels can be read from them.",
                hint="Draft without --read-levels-from-data and write the levels down; or draft "
                "from a view with fewer columns, or of some rows.",
            ) from None
        except duckdb.Error:  # its text may quote a row
            raise ConfigurationInvalid(
                f"No levels can be read from the rows of {location.label}.",
                hint="Draft without --read-levels-from-data and write the levels down.",
            ) from None


def _answer(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def _copy(rows: PostgresRows, names: Sequence[str], connection: duckdb.DuckDBPyConnection) -> None:
    """Keep the rows of a database in memory."""
    with postgres_rows.opened(rows, names, connection) as relation:
        columns = relation.columns or {}
        read = ", ".join(f"{columns[name.casefold()].sql} AS {name_sql(name)}" for name in names)
        connection.execute(f"CREATE TABLE {READ} AS SELECT {read} FROM {relation.sql} AS source")  # noqa: S608 - quoted names


def _relation(location: SourceLocation, connection: duckdb.DuckDBPyConnection) -> str:
    path = text_sql(str(location.path.resolve()))
    match location.kind:
        case SourceKind.CSV:
            return f"read_csv({path}, header = true, delim = ',', quote = '\"', sample_size = -1)"
        case SourceKind.PARQUET:
            return f"read_parquet({path}, hive_partitioning = false)"
        case SourceKind.DUCKDB:
            connection.execute(f"ATTACH {path} AS {OUTSIDE} (READ_ONLY)")
            # Do not draft a table that could not be served.
            name = check_base_table(location, OUTSIDE, connection)
            return f"{OUTSIDE}.{SCHEMA}.{name_sql(name)}"
