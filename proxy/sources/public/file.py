"""Reading public tables from CSV and Parquet files, once, when the server starts.

A file of text has the same format as a private one: UTF-8, commas, double quotes and one header
line unless other is said, and an empty field for NULL. The type of a column is decided by all of
its fields, not by a sample: it is the first of BOOLEAN, BIGINT, DOUBLE and DATE in whose usual
notation all fields are written, else VARCHAR. A whole number with a leading zero is a code, and
therefore text.

Nothing private is opened here; the driver's messages are not shown even so.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from cube.refusals import ConfigurationInvalid
from planner.sql import listed
from proxy.sources.axis_sql import number_text
from proxy.sources.closed import closed_database, name_sql
from proxy.sources.files import FileState, Relation, decoded, opened, reachable
from proxy.sources.location import SourceKind, SourceLocation
from proxy.sources.problems import Problems
from proxy.sources.public.table import (
    N_BYTES_MAX,
    N_ROWS_MAX,
    TYPE_NAMES,
    Key,
    PublicTable,
    key_columns,
    n_combinations,
)
from proxy.sources.reading import wrong_with
from proxy.sources.text_format import TextFormat

# The pattern that a field must match, and the cast that must then succeed. A DOUBLE keeps at least
# fifteen digits before the point exactly.
CSV_TYPES = (
    ("BOOLEAN", "(?i:true|false)"),
    ("BIGINT", "-?(0|[1-9][0-9]{0,17})"),
    ("DOUBLE", r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?"),
    ("DATE", "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSettings:
    """One public table: its name, its file, and the columns that are its key, if it has one."""

    name: str
    path: Path
    key: Key = None
    text: TextFormat | None = None

    @property
    def location(self) -> SourceLocation:
        """Its file, and how that is read."""
        return SourceLocation(path=self.path, text=self.text)


def load_public_tables(declared: Iterable[PublicSettings]) -> tuple[PublicTable, ...]:
    """Every public table of a configuration.

    Raises
    ------
    ConfigurationInvalid
        With the problems of each file that cannot be served.
    """
    loaded: list[PublicTable] = []
    refused: list[str] = []
    for settings in declared:
        try:
            loaded.append(load_public_table(settings))
        except ConfigurationInvalid as refusal:
            refused.append(refusal.explain())
    if refused:
        raise ConfigurationInvalid("\n".join(refused))
    return tuple(loaded)


def load_public_table(settings: PublicSettings) -> PublicTable:
    """One public table, read whole and checked."""
    problems = Problems(settings.path)
    try:
        data = _read(settings, problems)
    except (duckdb.Error, csv.Error, OSError, UnicodeError):
        raise _unreadable(settings.location) from None
    problems.raise_if_any()
    key = _key(settings, data, problems)
    problems.raise_if_any()
    return PublicTable(settings.name, key, data)


def read_texts(location: SourceLocation, column: str) -> tuple[str, ...]:
    """The texts in a column of a public file, in the order of the rows, each once, without NULL.

    Raises
    ------
    ConfigurationInvalid
        If the file cannot be read, or has no such column of text.
    """
    try:
        states = {location.path: FileState.of(location.path)}
        with (
            decoded([location], states) as readable,
            closed_database(reachable(readable)) as connection,
        ):
            relation = opened(location, readable, connection)
            described = connection.execute(f"DESCRIBE FROM {relation.named}").fetchall()
            types = {name: sql_type for name, sql_type, *_ in described}
            if types.get(column) != "VARCHAR":
                what = f"is {types[column]}, not text" if column in types else "is not there"
                raise ConfigurationInvalid(
                    f"{column} {what} in {location.path}.", hint=f"It has {listed(types)}."
                )
            rows = connection.execute(
                f"SELECT {name_sql(column)} FROM {relation.named} LIMIT {N_ROWS_MAX}"  # noqa: S608 - quoted names
            ).fetchall()
    except (duckdb.Error, csv.Error, OSError, UnicodeError):
        raise _unreadable(location) from None
    return tuple(dict.fromkeys(text for (text,) in rows if text is not None))


def _read(settings: PublicSettings, problems: Problems) -> pa.Table:
    """The rows as Arrow; possibly none if there is a problem with them."""
    keys = ("public", settings.name)
    location, state = settings.location, FileState.of(settings.path)
    if state.size > N_BYTES_MAX:
        problems.add((*keys, "source"), f"has more than {N_BYTES_MAX} bytes")
        problems.raise_if_any()
    with (
        decoded([location], {settings.path: state}) as readable,
        closed_database(reachable(readable)) as connection,
    ):
        relation = opened(location, readable, connection)
        limited = f"SELECT * FROM {relation.sql} LIMIT {N_ROWS_MAX + 1}"  # noqa: S608 - a quoted path
        connection.execute(f"CREATE TEMP TABLE source AS {limited}")
        if location.kind is SourceKind.CSV:
            selected = _typed_fields(relation, connection)
        else:
            described = connection.execute("DESCRIBE source").fetchall()
            selected = _known_columns([(row[0], row[1]) for row in described], keys, problems)
        problems.raise_if_any()
        data = connection.sql(f"SELECT {selected} FROM source").to_arrow_table()  # noqa: S608 - quoted names
    if data.num_rows > N_ROWS_MAX:
        problems.add((*keys, "source"), f"has more than {N_ROWS_MAX} rows")
    if data.nbytes > N_BYTES_MAX:
        problems.add((*keys, "source"), f"takes more than {N_BYTES_MAX} bytes of memory")
    return data


def _unreadable(location: SourceLocation) -> ConfigurationInvalid:
    what, way = wrong_with(location.path, location) or (
        "cannot be read",
        "It must be a Parquet file, or text with a line of names and lines of equal length.",
    )
    return ConfigurationInvalid(f"{location.path} {what}.", hint=way)


def _typed_fields(relation: Relation, connection: duckdb.DuckDBPyConnection) -> str:
    """A SELECT list that gives the text columns of a file their names and their types."""
    columns = relation.texts
    tests = ", ".join(
        f"coalesce(bool_and(regexp_full_match({number_text(one)}, '{pattern}') "
        f"AND TRY_CAST({number_text(one)} AS {sql_type}) IS NOT NULL) "
        f"FILTER ({one.sql} IS NOT NULL), false)"
        for one in columns.values()
        for sql_type, pattern in CSV_TYPES
    )
    (found,) = connection.execute(f"SELECT {tests} FROM source").fetchall()  # noqa: S608 - generated names
    listed = []
    for place, (name, column) in enumerate(columns.items()):
        flags = found[place * len(CSV_TYPES) : (place + 1) * len(CSV_TYPES)]
        fitting = next(
            (sql_type for (sql_type, _), fits in zip(CSV_TYPES, flags, strict=True) if fits), ""
        )
        cast = f"CAST({number_text(column)} AS {fitting})" if fitting else column.sql
        listed.append(f"{cast} AS {name_sql(name)}")
    return ", ".join(listed)


def _known_columns(
    columns: Sequence[tuple[str, str]], keys: tuple[str, ...], problems: Problems
) -> str:
    """A SELECT list of the columns of a typed file; those of other types are problems."""
    for name, sql_type in columns:
        if sql_type.split("(")[0] not in TYPE_NAMES:
            problems.add(
                (*keys, "columns", name),
                f"is {sql_type}, which is not served; cast it to one of {', '.join(TYPE_NAMES)}",
            )
    return ", ".join(name_sql(name) for name, _ in columns)


def _key(settings: PublicSettings, data: pa.Table, problems: Problems) -> Key:
    """The key in the file's spelling; a problem if a column is missing, or it is not a key."""
    declared = key_columns(settings.key)
    keys = ("public", settings.name, "key")
    spelled = {name.casefold(): name for name in data.column_names}
    names: list[str] = []
    for column in declared:
        name: str | None = spelled.get(column.casefold())
        if name is None:
            problems.add(keys, f"the source has no column {column}")
        elif name in names:
            problems.add(keys, f"names {name} twice")
        else:
            names.append(name)
            if data[name].null_count:
                problems.add(keys, f"{name} holds NULL")
    if not names or len(names) < len(declared):
        return None
    if n_combinations(data, names) < data.num_rows:
        what = f"{names[0]} holds a value"
        if len(names) > 1:
            what = f"({', '.join(names)}) holds a combination of values"
        problems.add(keys, f"{what} twice")
    return names[0] if isinstance(settings.key, str) else tuple(names)
