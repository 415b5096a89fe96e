"""Reading a private table once, into cells that are kept: positions of levels, row after row.

The rows are read and encoded in a database that can reach the data and nothing else, and stream
from there to where they are kept, which can reach nothing. Rows of units are looked at unit by
unit, for which they are all there at once: in memory, or a part of the units after the other.
Proof that the rows stay the same: accountant/proofs/refinement.md, "The same data".
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from cube.axis import CategoryAxis
from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
from proxy.sources import files, postgres_rows, private_view
from proxy.sources.axis_sql import LEFT_OUT, WRONG_TYPE, code_type
from proxy.sources.bounding import (
    UNIT,
    UNIT_DIGEST,
    UNIT_NUMBER,
    UNIT_WAS_CUT,
    RowsRead,
    axis_column,
    bounded_rows_sql,
    numbered_units_sql,
)
from proxy.sources.cells import Cells
from proxy.sources.closed import Connection, closed_database
from proxy.sources.encoded_rows import encoded_sql
from proxy.sources.extract.spill import Spill
from proxy.sources.flow import Flow
from proxy.sources.location import (
    Location,
    PostgresRows,
    PrivateView,
    RowsLocation,
    SourceFiles,
    SourceLocation,
    UnitRows,
)
from proxy.sources.problems import Problems
from proxy.sources.streamed_rows import StreamedRows, note_wrong_type
from proxy.sources.unit_rows import note_varying, unit_rows_sql

N_ROWS_AT_ONCE = 2**17
N_PARTS = 64  # of the units, of which one is in memory at a time
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
    location : Location
    states : mapping of Path to FileState
        The state of each file of the location.
    read : RowsRead
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
            hint="Declare a public upper bound that is surely true.",
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
    """The rows that are kept of a table with units, of which problems are recorded."""
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
    rule = "every row should be about a unit"
    if not has_several:
        rule = "it should have one row for each unit; or declare rows_per_unit_max"
    for is_wrong, what in zip(found, ("NULL", "a value twice"), strict=True):
        if is_wrong and not (has_several and what != "NULL"):
            keys = ("tables", schema.table, "unit")
            problems.add(keys, f"the source holds {what}; {rule}")
