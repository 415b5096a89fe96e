"""A private table in memory: encoded once as positions of levels, then only ever counted.

The table is read when the source opens and the outside world is closed behind it: no files, no
extensions, no settings. What stays holds no column that was not declared and no value, only
positions. Only the accountant's gate may call `measure`.
"""

import csv
from collections.abc import Iterable, Mapping

import duckdb
import numpy as np

from accountant.source import CellCounts
from cube.refusals import ConfigurationInvalid, DataChanged, SourceUnavailable
from cube.schema import Schema
from proxy.config_problems import Problems
from proxy.sources import files
from proxy.sources.axis_sql import (
    LEFT_OUT,
    WRONG_TYPE,
    AxisSql,
    SourceColumn,
    axis_sql,
    can_read,
)
from proxy.sources.location import SourceKind, SourceLocation

CONNECTION_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",  # never spill private rows to a file
}
LOCK_DOWN = (
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)
HINTS = {
    SourceKind.CSV: "It must be UTF-8 with commas, double quotes and lines of equal length.",
    SourceKind.PARQUET: "It must be one Parquet file.",
    SourceKind.DUCKDB: "It must hold source_table, and no process may be writing it.",
}


class DuckDbSource:
    """The rows of one private table whose every declared column has a level.

    Parameters
    ----------
    schema : Schema
        The public columns. Others that the file has are not read.
    location : SourceLocation
        The file.

    Raises
    ------
    ConfigurationInvalid
        If the file cannot be read as it is declared. The message holds nothing of its rows.
    """

    def __init__(self, schema: Schema, location: SourceLocation) -> None:
        self._column = {axis.name: f"axis_{place}" for place, axis in enumerate(schema.axes)}
        self._location = location
        self._connection = duckdb.connect(config=CONNECTION_SETTINGS)
        unreadable = ConfigurationInvalid(
            f"{location.path} cannot be read as a {location.kind} file.",
            hint=HINTS[location.kind],
        )
        try:
            self._state = files.FileState.of(location.path)
            _load(schema, location, self._connection)
            changed = files.FileState.of(location.path) != self._state
        except (duckdb.Error, csv.Error, OSError, UnicodeError):
            # The original text may quote a row, so it goes no further.
            raise unreadable from None
        if changed:
            raise DataChanged(f"{location.path} changed while it was being read.")

    def fingerprint(self, key: bytes) -> str:
        """Which bytes and which table in them, to who holds the key: HMAC-SHA256 in hexadecimal."""
        return files.fingerprint(self._location, key, self._state)

    def measure(self, scope: tuple[str, ...]) -> CellCounts:
        """Exact counts of the cells of `scope` that are not empty, in the order of positions."""
        columns = [self._column[name] for name in scope]
        try:
            # One connection serves one thread at a time; a cursor is a connection of its own.
            with self._connection.cursor() as cursor:
                found = cursor.sql(_counting_sql(columns)).to_arrow_table()
        except duckdb.Error:
            raise SourceUnavailable("The private table could not be read.") from None
        arrays = [column.to_numpy().astype(np.int64) for column in found.columns]
        return CellCounts(levels=tuple(arrays[:-1]), counts=arrays[-1])


def _counting_sql(columns: Iterable[str]) -> str:
    named = ", ".join(columns)
    if not named:
        return "SELECT count(*) AS n_records FROM cells"
    return f"SELECT {named}, count(*) AS n_records FROM cells GROUP BY ALL ORDER BY ALL"  # noqa: S608 - generated names only


def _load(schema: Schema, location: SourceLocation, connection: duckdb.DuckDBPyConnection) -> None:
    """Read the file into the table `cells`, then close everything but that table."""
    problems = Problems(location.path)
    relation = files.relation_of(location)
    if relation.setup:
        connection.execute(relation.setup)
    columns = relation.columns
    if columns is None:
        described = connection.execute(f"DESCRIBE FROM {relation.sql}").fetchall()
        columns = files.typed_columns(described)
    encodings = _encodings(schema, columns, problems)
    problems.raise_if_any()
    for encoding in encodings:
        _set_up(encoding, connection)
    named = ", ".join(f"{sql.position} AS axis_{place}" for place, sql in enumerate(encodings))
    joins = " ".join(sql.join for sql in encodings)
    connection.execute(
        f"CREATE TABLE encoded AS SELECT {named} FROM {relation.sql} AS source {joins}"  # noqa: S608 - from the public schema and quoted names
    )
    if location.kind is SourceKind.DUCKDB:
        connection.execute(f"DETACH {files.OUTSIDE}")
    _check_types(schema, problems, connection)
    problems.raise_if_any()
    # Left out of the whole table, so that every total agrees with the sum of its parts.
    kept = " AND ".join(f"axis_{place} > {LEFT_OUT}" for place in range(len(encodings)))
    connection.execute(f"CREATE TABLE cells AS SELECT * FROM encoded WHERE {kept}")  # noqa: S608 - generated names only
    connection.execute("DROP TABLE encoded")
    for setting in LOCK_DOWN:
        connection.execute(setting)
    _check_size(schema, location, connection)


def _encodings(
    schema: Schema, columns: Mapping[str, SourceColumn], problems: Problems
) -> list[AxisSql]:
    """How each axis is encoded; columns that are absent or of another type are problems."""
    encodings = []
    for place, axis in enumerate(schema.axes):
        column = columns.get(axis.name.casefold())
        keys = ("tables", schema.table, "columns", axis.name)
        if column is None:
            problems.add(keys, "the source has no such column")
        elif not can_read(axis, column):
            kind = f"{column.type_name} in the source"
            problems.add(keys, f"is {kind}, which does not fit the declared kind")
        else:
            encodings.append(axis_sql(axis, column, place))
    return encodings


def _set_up(encoding: AxisSql, connection: duckdb.DuckDBPyConnection) -> None:
    """Make the type or table of levels that an encoding refers to."""
    if encoding.setup:
        connection.register("listed", encoding.listed)
        connection.execute(encoding.setup)
        connection.unregister("listed")


def _check_types(schema: Schema, problems: Problems, connection: duckdb.DuckDBPyConnection) -> None:
    """Note each column that holds a value of another type; which, and how many, is private."""
    flags = ", ".join(
        f"coalesce(bool_or(axis_{place} = {WRONG_TYPE}), false)"
        for place in range(len(schema.axes))
    )
    (found,) = connection.execute(f"SELECT {flags} FROM encoded").fetchall()  # noqa: S608 - generated names only
    for axis, is_wrong in zip(schema.axes, found, strict=True):
        if is_wrong:
            keys = ("tables", schema.table, "columns", axis.name)
            problems.add(keys, f"the source holds a value that is no {axis.sql_type}")


def _check_size(
    schema: Schema, location: SourceLocation, connection: duckdb.DuckDBPyConnection
) -> None:
    """Refuse a table with more records than declared; the count stays in the database."""
    ((too_many,),) = connection.execute(
        f"SELECT count(*) > {schema.n_records_max} FROM cells"  # noqa: S608 - a declared number
    ).fetchall()
    if too_many:
        raise ConfigurationInvalid(
            f"{location.path} holds more records than tables.{schema.table}.n_records_max allows.",
            hint="Declare a public upper bound that is surely true.",
        )
