"""A private table in memory: encoded once as positions of levels, then only ever counted.

The table, or what the owner's view gives, is read when the source opens, and the outside world is
closed behind it: no files, no extensions, no settings. What stays holds no column that was not
declared and no value, only positions. Only the accountant's gate may call `measure`.

Counts of scopes asked before are kept beside it: they are as private as the table, are locked, and
leave by `measure` alone. The table never changes, so they are as good as counted again.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping

import duckdb
import numpy as np

from accountant.source import CellCounts
from cube.refusals import ConfigurationInvalid, DataChanged, SourceUnavailable
from cube.schema import Schema
from planner.cache import BoundedCache
from proxy.config_problems import Problems
from proxy.sources import files, private_view
from proxy.sources.axis_sql import (
    LEFT_OUT,
    WRONG_TYPE,
    AxisSql,
    SourceColumn,
    axis_sql,
    can_read,
)
from proxy.sources.location import Location, PrivateView, SourceKind, SourceLocation

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
N_SCOPES_KEPT = 256
N_COUNTED_BYTES_MAX = 64 * 2**20

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
    location : SourceLocation or PrivateView
        The file, or the SQL over several.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read as it is declared. The message holds nothing of its rows.
    """

    def __init__(self, schema: Schema, location: Location) -> None:
        self._column = {axis.name: f"axis_{place}" for place, axis in enumerate(schema.axes)}
        self._location = location
        self._connection = duckdb.connect(config=CONNECTION_SETTINGS)
        self._counted: BoundedCache[tuple[str, ...], CellCounts] = BoundedCache(
            n_entries_max=N_SCOPES_KEPT, n_bytes_max=N_COUNTED_BYTES_MAX
        )
        unreadable = _unreadable(location)
        try:
            self._states = files.states_of(location.files)
            _load(schema, location, self._connection)
            changed = files.states_of(location.files) != self._states
        except (duckdb.Error, csv.Error, OSError, UnicodeError):
            # The original text may quote a row, so it goes no further.
            raise unreadable from None
        if changed:
            raise DataChanged(f"{location.label} changed while it was being read.")

    def fingerprint(self, key: bytes) -> str:
        """Which data this is, to who holds the key: HMAC-SHA256 in hexadecimal.

        Of a file, its bytes and which table in them; of a view also its text and its rows.
        """
        match self._location:
            case SourceLocation() as location:
                return files.fingerprint(location, key, self._states[location.path])
            case PrivateView() as view:
                return private_view.fingerprint(view, key, self._states, self._rows())

    def _rows(self) -> Iterator[bytes]:
        """All that is held, as bytes that no order of rows or of declared columns changes."""
        columns = [self._column[name] for name in sorted(self._column)]
        try:
            with self._connection.cursor() as cursor:
                for batch in cursor.sql(_counting_sql(columns)).to_arrow_reader():
                    arrays = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
                    yield np.column_stack(arrays).astype("<i8").tobytes()
        except duckdb.Error:
            raise SourceUnavailable("The private table could not be read.") from None

    def measure(self, scope: tuple[str, ...]) -> CellCounts:
        """Exact counts of the cells of `scope` that are not empty, in the order of positions."""
        known = self._counted.get(scope)
        if known is None:
            known = self._count(scope)
            n_bytes = 8 * known.counts.size * (len(scope) + 1)
            self._counted.put(scope, known, n_bytes=n_bytes)
        return known

    def _count(self, scope: tuple[str, ...]) -> CellCounts:
        columns = [self._column[name] for name in scope]
        try:
            # One connection serves one thread at a time; a cursor is a connection of its own.
            with self._connection.cursor() as cursor:
                found = cursor.sql(_counting_sql(columns)).to_arrow_table()
        except duckdb.Error:
            raise SourceUnavailable("The private table could not be read.") from None
        arrays = [column.to_numpy().astype(np.int64) for column in found.columns]
        for array in arrays:
            array.setflags(write=False)
        return CellCounts(levels=tuple(arrays[:-1]), counts=arrays[-1])


def _counting_sql(columns: Iterable[str]) -> str:
    named = ", ".join(columns)
    if not named:
        return "SELECT count(*) AS n_records FROM cells"
    return f"SELECT {named}, count(*) AS n_records FROM cells GROUP BY ALL ORDER BY ALL"  # noqa: S608 - generated names only


def _unreadable(location: Location) -> ConfigurationInvalid:
    match location:
        case SourceLocation(path=path, kind=kind):
            return ConfigurationInvalid(
                f"{path} cannot be read as a {kind} file.", hint=HINTS[kind]
            )
        case PrivateView():
            return ConfigurationInvalid(
                f"{location.label} cannot be read: a file is missing, or is not what its name says."
            )


def _load(schema: Schema, location: Location, connection: duckdb.DuckDBPyConnection) -> None:
    """Read the table into the table `cells`, then close everything but that table."""
    problems = Problems(location.label)
    relation = _opened(schema, location, connection)
    _encode(schema, relation, problems, connection)
    if relation.teardown:
        connection.execute(relation.teardown)
    _check_types(schema, problems, connection)
    problems.raise_if_any()
    # Left out of the whole table, so that every total agrees with the sum of its parts.
    kept = " AND ".join(f"axis_{place} > {LEFT_OUT}" for place in range(len(schema.axes)))
    connection.execute(f"CREATE TABLE cells AS SELECT * FROM encoded WHERE {kept}")  # noqa: S608 - generated names only
    connection.execute("DROP TABLE encoded")
    for setting in LOCK_DOWN:
        connection.execute(setting)
    _check_size(schema, location, connection)


def _encode(
    schema: Schema,
    relation: files.Relation,
    problems: Problems,
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """Make the table `encoded` of positions; note where rows and units do not match one to one."""
    columns = relation.columns
    if columns is None:
        described = connection.execute(f"DESCRIBE FROM {relation.sql}").fetchall()
        columns = files.typed_columns(described)
    encodings = _encodings(schema, columns, problems)
    unit = _unit(schema, columns, problems)
    problems.raise_if_any()
    for encoding in encodings:
        _set_up(encoding, connection)
    named = ", ".join(f"{sql.position} AS axis_{place}" for place, sql in enumerate(encodings))
    joins = " ".join(sql.join for sql in encodings)
    connection.execute(
        f"CREATE TABLE encoded AS SELECT {named} FROM {relation.sql} AS source {joins}"  # noqa: S608 - from the public schema and quoted names
    )
    if unit is not None:
        (found,) = connection.execute(
            f"SELECT count(*) > count({unit.sql}), count({unit.sql}) > count(DISTINCT {unit.sql}) "  # noqa: S608 - a quoted name
            f"FROM {relation.sql} AS source"
        ).fetchall()
        _note_unit(schema, found, problems)


def _opened(
    schema: Schema, location: Location, connection: duckdb.DuckDBPyConnection
) -> files.Relation:
    """The private table as something to select from."""
    match location:
        case PrivateView() as view:
            return private_view.materialise(view, schema.table, connection, "snapshot")
        case SourceLocation() as file:
            relation = files.relation_of(file)
            if relation.setup:
                connection.execute(relation.setup)
            return relation


def _unit(
    schema: Schema, columns: Mapping[str, SourceColumn], problems: Problems
) -> SourceColumn | None:
    """The column that says whom a row is about; if the source has none such, that is a problem."""
    if schema.unit is None:
        return None
    column = columns.get(schema.unit.casefold())
    if column is None:
        problems.add(("tables", schema.table, "unit"), f"the source has no column {schema.unit}")
    return column


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


def _note_unit(schema: Schema, found: tuple[bool, bool], problems: Problems) -> None:
    """Note rows without a unit and units with several rows; which, and how many, is private."""
    for is_wrong, what in zip(found, ("NULL", "a value twice"), strict=True):
        if is_wrong:
            keys = ("tables", schema.table, "unit")
            problems.add(keys, f"the source holds {what}; it should have one row for each unit")


def _check_size(schema: Schema, location: Location, connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse a table with more records than declared; the count stays in the database."""
    ((too_many,),) = connection.execute(
        f"SELECT count(*) > {schema.n_records_max} FROM cells"  # noqa: S608 - a declared number
    ).fetchall()
    if too_many:
        raise ConfigurationInvalid(
            f"{location.label} holds more records than tables.{schema.table}.n_records_max allows.",
            hint="Declare a public upper bound that is surely true.",
        )
