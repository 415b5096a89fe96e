"""Reading a private table once, into cells that are kept: positions of levels, row after row.

The SQL that makes positions of levels is generated from the public declaration and the names and
types of columns, or it is said what is wrong with these; for that, rows are not looked at. The rows
are read and encoded in a database that can reach the data and nothing else, and stream from there
to where they are kept, which can reach nothing. Those with a level in each column go on. No row
waits for another, so that a table of any size takes the memory of a batch; but rows of units are
looked at unit by unit, for which they are all there at once: in memory, or a part of the units
after the other. Proof that the rows stay the same: accountant/proofs/refinement.md, "The same
data".

Before and after, the state of every file is compared; a connection that is lost is made again, and
everything read again: nothing was kept, and nothing is charged yet. What went wrong is said without
a word of the rows.
"""

import csv
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from cube.axis import Axis, CategoryAxis, TimestampAxis
from cube.refusals import ConfigurationInvalid, DataChanged
from cube.schema import Schema
from planner.sql import listed, suggestion
from proxy.sources import files, postgres_rows, private_view
from proxy.sources.axis_sql import (
    LEFT_OUT,
    WRONG_TYPE,
    ZONED,
    AxisSql,
    SourceColumn,
    axis_sql,
    can_read,
    code_type,
)
from proxy.sources.bounding import (
    UNIT,
    UNIT_DIGEST,
    UNIT_NUMBER,
    UNIT_WAS_CUT,
    RowsRead,
    axis_column,
    bounded_rows_sql,
    note_varying,
    numbered_units_sql,
    unit_rows_sql,
)
from proxy.sources.cells import Cells
from proxy.sources.closed import Connection, Flow, closed_database
from proxy.sources.extract import Damaged, Spill
from proxy.sources.files import Relation, typed_columns
from proxy.sources.location import (
    Location,
    PostgresRows,
    PrivateView,
    RowsLocation,
    SourceFiles,
    SourceKind,
    SourceLocation,
    UnitRows,
)
from proxy.sources.postgres_rows import ConnectionLost
from proxy.sources.problems import Problems
from proxy.sources.searching import Search, edges_table, searched
from proxy.sources.text_format import IS_PARQUET, fault_of, what_file_is


class StreamedRows:
    """The kept rows of one table, and the columns in which a value had another type.

    Parameters
    ----------
    n_readable : int, optional
        Rows of later levels of the axis along which the table grows are left out.
    """

    def __init__(self, schema: Schema, n_readable: int | None) -> None:
        self._schema = schema
        self._n_readable = n_readable
        self._wrong: set[int] = set()

    def kept(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each batch that have a level in each column.

        They are left out of the whole table, so that every total equals the sum of its parts.
        """
        schema = self._schema
        for batch in batches:
            inside = None
            for place, column in enumerate(batch.columns):
                least = pc.min(column).as_py()
                if least is None or least > LEFT_OUT:
                    continue
                if least == WRONG_TYPE:
                    self._wrong.add(place)
                inside = _both(inside, pc.greater(column, pa.scalar(LEFT_OUT, column.type)))
            if schema.grows is not None and self._n_readable is not None:
                column = batch[axis_column(schema, schema.grows)]
                inside = _both(inside, pc.less(column, self._n_readable))
            yield batch if inside is None else batch.filter(inside)

    def note_problems(self, problems: Problems) -> None:
        """Record each column with a value of another type; which rows, and how many, is private."""
        for place in sorted(self._wrong):
            note_wrong_type(self._schema, place, problems)


def note_wrong_type(schema: Schema, place: int, problems: Problems) -> None:
    """Record that some value of a column is of another type."""
    axis = schema.axes[place]
    keys = ("tables", schema.table, "columns", axis.name)
    problems.add(keys, f"the source holds a value that is not of type {axis.sql_type}")


def _both(one: pa.BooleanArray | None, other: pa.BooleanArray) -> pa.BooleanArray:
    return other if one is None else pc.and_(one, other)


EDGES = "edges"  # the table of the edges that numbers are searched among
ABSENT = "the source has no such column"


def encoded_sql(
    schema: Schema,
    relation: Relation,
    problems: Problems,
    connection: Connection,
    view: str | None,
) -> str:
    """The query of positions, one row for each of the source, which says whose it is if units are.

    Parameters
    ----------
    relation : Relation
        The rows, in the connection's database.
    problems : Problems
        Where problems are recorded.
    connection : Connection
        A database in which types of levels and a table of edges are made.
    view : str, optional
        The owner's SQL that the rows are of.

    Raises
    ------
    ConfigurationInvalid
        With all problems, if a column is absent or of another type.
    """
    columns = relation.columns
    if columns is None:
        described = connection.execute(f"DESCRIBE FROM {relation.sql}").fetchall()
        columns = typed_columns(described)
    read = _columns(schema, columns, problems, view)
    unit = _unit(schema, columns, problems)
    problems.raise_if_any()
    encodings = {
        place: axis_sql(axis, _given(column, place), place)
        for place, (axis, column) in enumerate(zip(schema.axes, read, strict=True))
    }
    given = {f"column_{place}": column.sql for place, column in enumerate(read)}
    given |= {
        f"missing_{place}": column.missing for place, column in enumerate(read) if column.missing
    }
    named = ", ".join(f"{sql.position} AS axis_{place}" for place, sql in encodings.items())
    if unit is not None:
        given[UNIT], named = unit.sql, f"{named}, {UNIT}"
    searches = {place: sql.search for place, sql in encodings.items() if sql.search is not None}
    _set_up(encodings.values(), searches, connection)
    selected = ", ".join(f"{sql} AS {name}" for name, sql in given.items())
    rows = f"SELECT {selected} FROM {relation.sql} AS source"  # noqa: S608 - quoted names
    rows = searched(rows, [*given], searches, EDGES)
    return f"SELECT {named} FROM ({rows})"  # noqa: S608 - from the public schema and quoted names


def _given(column: SourceColumn, place: int) -> SourceColumn:
    """A column under the name that it has where it is encoded."""
    missing = f"missing_{place}" if column.missing else ""
    return replace(column, sql=f"column_{place}", missing=missing)


def _unit(
    schema: Schema, columns: Mapping[str, SourceColumn], problems: Problems
) -> SourceColumn | None:
    """The column of the privacy unit; a problem if the source does not have it."""
    if schema.unit is None:
        return None
    column = columns.get(schema.unit.casefold())
    if column is None:
        problems.add(("tables", schema.table, "unit"), f"the source has no column {schema.unit}")
    return column


def _columns(
    schema: Schema, columns: Mapping[str, SourceColumn], problems: Problems, view: str | None
) -> list[SourceColumn]:
    """The column of each axis; columns that are absent or of another type are problems."""
    found = []
    for axis in schema.axes:
        column = columns.get(axis.name.casefold())
        keys = ("tables", schema.table, "columns", axis.name)
        if column is None:
            problems.add(keys, _absent(axis, columns, view))
        elif not can_read(axis, column):
            problems.add(keys, _unlike(axis, column, view))
        else:
            found.append(column)
    return found


def _unlike(axis: Axis, column: SourceColumn, view: str | None) -> str:
    """That a column is of another type, and what to do about it."""
    unlike = f"is {column.type_name} in the source, which does not fit the declared kind"
    if isinstance(axis, TimestampAxis) and column.type_name == ZONED:
        return f"{unlike} without a time_zone; name the zone of its moments"
    return f"{unlike}; the view may give CAST({axis.name} AS {axis.sql_type})" if view else unlike


def _absent(axis: Axis, columns: Mapping[str, SourceColumn], view: str | None) -> str:
    """That a column is not there, and those of a view that its owner named in it.

    Other names may come from the first line of a CSV file, which may be a person's row.
    """
    if view is None:
        return ABSENT
    named = [name for name in columns if name.casefold() in view.casefold()]
    there = f"; it has {listed(named)}" if named else ""
    nearest = suggestion(axis.name, named) or ""
    return f"the view has no such column{there}. {nearest}".removesuffix(". ")


def _set_up(
    encodings: Iterable[AxisSql], searches: Mapping[int, Search], connection: Connection
) -> None:
    """Make the types of levels and the table of edges that encodings refer to."""
    for encoding in encodings:
        if encoding.setup:
            connection.register("listed", encoding.listed)
            connection.execute(encoding.setup)
            connection.unregister("listed")
    if not all(one.is_in_cases for one in searches.values()):
        connection.register("listed", edges_table(searches))
        connection.execute(f"CREATE TABLE {EDGES} AS FROM listed")
        connection.unregister("listed")


N_ROWS_AT_ONCE = 2**17
N_PARTS = 64  # parts of the units; one is in memory at a time
PART = "part_of_units"
TYPES = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32()}


def load(
    schema: Schema,
    location: Location,
    states: Mapping[Path, files.FileState],
    read: RowsRead,
    kept: Cells,
) -> None:
    """Read a table into cells.

    Where a unit may have several rows, each has a number and a digest of its unit, and says whether
    rows of it were left out. Of a table with one row for each unit of another's rows, that row is
    made here, of all of them.

    Parameters
    ----------
    schema : Schema
        The public columns.
    states : mapping of Path to FileState
        The state of each file of the location.
    kept : Cells
        Where they are kept, and whether what is on its way may be in a file.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read as declared. The message contains nothing from its rows.
    """
    problems = Problems(location.label)
    where = location.of if isinstance(location, UnitRows) else location
    view = where.sql if isinstance(where, PrivateView) else None
    with (
        files.decoded(_of_text(where), states) as readable,
        closed_database(() if view is not None else files.reachable(readable)) as reading,
        _opened(schema, where, readable, reading) as relation,
    ):
        rows = encoded_sql(schema, relation, problems, reading, view)
        if schema.unit is None:
            streamed = StreamedRows(schema, read.n_readable)
            found = streamed.kept(reading.sql(rows).to_arrow_reader(N_ROWS_AT_ONCE))
        else:
            streamed = None
            found = _of_units(schema, location, read, problems, reading, rows, kept.folder)
        flow = Flow(found)
        flow.into(kept.keep, kept_schema(schema))
    if streamed is not None:
        streamed.note_problems(problems)
    problems.raise_if_any()
    if flow.n_rows > schema.n_records_max:
        raise ConfigurationInvalid(
            f"{location.label} holds more records than tables.{schema.table}.n_records_max allows.",
            hint="Declare a larger public upper bound.",
        )


def _of_text(location: RowsLocation) -> Sequence[SourceLocation | SourceFiles]:
    """The files of a location that may be text."""
    match location:
        case PrivateView(sources=sources):
            return [one for _name, one in sources]
        case PostgresRows():
            return []
        case _:
            return [location]


def kept_schema(schema: Schema) -> pa.Schema:
    """The columns of the cells of a table."""
    fields = [(f"axis_{place}", TYPES[code_type(axis)]) for place, axis in enumerate(schema.axes)]
    whose = (UNIT_NUMBER, UNIT_DIGEST, UNIT_WAS_CUT) if schema.rows_per_unit_max > 1 else ()
    return pa.schema([*fields, *((name, pa.int64()) for name in whose)])


@contextmanager
def _opened(
    schema: Schema,
    location: RowsLocation,
    states: Mapping[Path, files.FileState],
    connection: Connection,
) -> Iterator[files.Relation]:
    """The private table as a relation to select from, once."""
    match location:
        case PrivateView() as view:
            yield private_view.materialise(view, schema.table, states, connection)
        case PostgresRows() as rows:
            wanted = [axis.name for axis in schema.axes]
            wanted += [] if schema.unit is None else [schema.unit]
            with postgres_rows.opened(rows, wanted, connection) as relation:
                yield relation
        case _:
            empty = _empty_texts(schema)
            yield files.opened(location, states, connection, files.OUTSIDE, empty)


def _empty_texts(schema: Schema) -> dict[str, bool]:
    """The columns in which an empty text is a level, in lower case; and whether NULL is one too."""
    return {
        axis.name.casefold(): axis.null
        for axis in schema.axes
        if isinstance(axis, CategoryAxis) and "" in axis.levels
    }


def _of_units(  # noqa: PLR0913, PLR0917 - what is read, how, and where problems go
    schema: Schema,
    location: Location,
    read: RowsRead,
    problems: Problems,
    reading: Connection,
    rows: str,
    folder: Path | None,
) -> Iterator[pa.RecordBatch]:
    """The kept rows of a table with units; problems are recorded."""
    n_units = 0
    for encoded in _parts(reading, rows, folder):
        is_of_units = isinstance(location, UnitRows)
        has_several = is_of_units or schema.rows_per_unit_max > 1
        _check_units(schema, problems, encoded, has_several=has_several)
        _check_types(schema, problems, encoded)
        if is_of_units:
            note_varying(schema, problems, encoded)
        for batch in _rows_of_units(schema, encoded, read, n_units, is_of_units=is_of_units):
            if schema.rows_per_unit_max > 1:
                n_units = max(n_units, int(batch[UNIT_NUMBER].to_numpy().max(initial=-1)) + 1)
            yield batch


def _parts(reading: Connection, rows: str, folder: Path | None) -> Iterator[Connection]:
    """Databases with a table `encoded` of all rows of some units; of all units, in memory."""
    if folder is None:
        reading.execute(f"CREATE TABLE encoded AS {rows}")
        yield reading
        return
    parted = f"SELECT *, hash({UNIT}) % {N_PARTS} AS {PART} FROM ({rows})"  # noqa: S608 - generated names only
    reader = reading.sql(parted).to_arrow_reader(N_ROWS_AT_ONCE)
    with Spill(folder) as spill:
        for batch in reader:
            place = batch.schema.get_field_index(PART)
            spill.add(batch.remove_column(place), batch.column(place).to_numpy())
        schema = reader.schema.remove(reader.schema.get_field_index(PART))
        for part in range(N_PARTS):
            with closed_database() as one:
                found = pa.RecordBatchReader.from_batches(schema, spill.part(part))
                one.register("found", found)
                one.execute("CREATE TABLE encoded AS FROM found")
                one.unregister("found")
                yield one


def _rows_of_units(
    schema: Schema, encoded: Connection, read: RowsRead, n_before: int, *, is_of_units: bool
) -> Iterator[pa.RecordBatch]:
    """The rows that are kept of those in the table `encoded`; `n_before` units have a number."""
    # Left out of the whole table, so that every total equals the sum of its parts.
    inside = " AND ".join(f"axis_{place} > {LEFT_OUT}" for place in range(len(schema.axes)))
    if schema.grows is not None and read.n_readable is not None:
        inside += f" AND {axis_column(schema, schema.grows)} < {read.n_readable}"
    table = f"({unit_rows_sql(schema)})" if is_of_units else "encoded"
    axes = ", ".join(f"axis_{place}" for place in range(len(schema.axes)))
    if schema.rows_per_unit_max == 1:
        rows = f"SELECT {axes} FROM {table} WHERE {inside}"  # noqa: S608 - generated names only
        yield from encoded.sql(rows).to_arrow_reader(N_ROWS_AT_ONCE)
        return
    if read.key is None:
        raise ValueError("rows of units with several need a key")
    rows = f"SELECT {axes}, {UNIT} FROM {table} WHERE {inside}"  # noqa: S608 - generated names only
    bounded = numbered_units_sql(schema, rows, bounded_rows_sql(schema, rows), n_before)
    yield from encoded.sql(bounded, params=[read.key.hex()]).to_arrow_reader(N_ROWS_AT_ONCE)


def _check_types(schema: Schema, problems: Problems, connection: Connection) -> None:
    """Record each column with a value of another type; which rows, and how many, is private."""
    flags = ", ".join(
        f"coalesce(bool_or(axis_{place} = {WRONG_TYPE}), false)"
        for place in range(len(schema.axes))
    )
    (found,) = connection.execute(f"SELECT {flags} FROM encoded").fetchall()  # noqa: S608 - generated names only
    for place, is_wrong in enumerate(found):
        if is_wrong:
            note_wrong_type(schema, place, problems)


def _check_units(
    schema: Schema, problems: Problems, connection: Connection, *, has_several: bool
) -> None:
    """Record rows without a unit, and units with several rows; which, and how many, is private."""
    (found,) = connection.execute(
        f"SELECT count(*) > count({UNIT}), count({UNIT}) > count(DISTINCT {UNIT}) FROM encoded"  # noqa: S608 - a fixed name
    ).fetchall()
    rule = "every row should name a unit"
    if not has_several:
        rule = "it should have one row for each unit; or declare rows_per_unit_max"
    for is_wrong, what in zip(found, ("NULL", "a value twice"), strict=True):
        if is_wrong and not (has_several and what != "NULL"):
            keys = ("tables", schema.table, "unit")
            problems.add(keys, f"the source holds {what}; {rule}")


States = Mapping[Path, files.FileState]
N_ATTEMPTS: Final = 3
PAUSE_SECONDS: Final = 1.0

HINTS = {
    SourceKind.PARQUET: "It must be one Parquet file.",
    SourceKind.DUCKDB: "It must hold source_table, unencrypted, and no process may be writing it.",
}
FoundT = TypeVar("FoundT")


def read_into(kept: Cells, schema: Schema, location: Location, read: RowsRead) -> States:
    """Read a table into cells that hold nothing yet; the states of its files meanwhile.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read as declared; ConnectionLost if it could not be read to the end. The
        message contains nothing from its rows.
    DataChanged
        If a file was written meanwhile.
    """
    try:
        states = files.states_of(location.files)
        load(schema, location, states, read, kept)
        changed = files.states_of(location.files) != states
    except duckdb.OutOfMemoryException:
        raise ConfigurationInvalid(
            f"{location.label} takes more memory than is available.",
            hint="Declare fewer columns, or serve it on a machine with more memory.",
        ) from None
    except (duckdb.Error, csv.Error, OSError, UnicodeError, Damaged):
        # The driver's text may quote a row, so it is dropped.
        raise unreadable(location) from None
    if changed:
        raise DataChanged(f"{location.label} changed while it was being read.")
    return states


def until_read(attempt: Callable[[], FoundT]) -> FoundT:
    """What an attempt to read gives, which is made again if a connection was lost."""
    for number in range(1, N_ATTEMPTS):
        try:
            return attempt()
        except ConnectionLost:
            time.sleep(number * PAUSE_SECONDS)  # a server that restarts needs a moment
    return attempt()


def unreadable(location: Location) -> ConfigurationInvalid:
    """What is wrong with a location that could not be read, without a word of its rows."""
    each: list[SourceLocation | SourceFiles] = []
    match location:
        case UnitRows(of=rows):
            return unreadable(rows)
        case PostgresRows():
            return ConfigurationInvalid(f"{location.label} cannot be read as it is declared.")
        case SourceLocation() | SourceFiles():
            each = [location]
        case PrivateView(sources=sources):
            each = [source for _name, source in sources]
    for one in each:
        for path in one.files:
            found = wrong_with(path, one)
            if found is not None:
                return ConfigurationInvalid(f"{path} {found[0]}.", hint=found[1])
    if len(each) == 1:
        what = f"{location.label} cannot be read as {each[0].kind}."
        return ConfigurationInvalid(what, hint=HINTS.get(each[0].kind))
    return ConfigurationInvalid(
        f"{location.label} cannot be read: a file is missing, or its format is not the one that "
        "its name says."
    )


def wrong_with(path: Path, location: SourceLocation | SourceFiles) -> tuple[str, str] | None:
    """What is wrong with one file of a location, and what to do; None if nothing seems to be.

    It reads the file once more, and reveals nothing of its contents.
    """
    if not path.exists():
        return (
            "cannot be read: there is no such file",
            "Paths are relative to the folder of the configuration.",
        )
    try:
        if location.kind is SourceKind.CSV:
            return fault_of(path, location.text_format)
        known = what_file_is(path)
    except OSError:
        return "cannot be read", "The user that runs the server must be allowed to read it."
    if location.kind is SourceKind.PARQUET and known is not None and known[0] == IS_PARQUET:
        known = None
    if known is not None:
        return known
    return f"cannot be read as a {location.kind} file", HINTS[location.kind]
