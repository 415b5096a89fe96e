"""Reading a private table once, and keeping the positions of its levels.

Two databases take part, so that the kept rows are never in a database that can reach a file: one
reads the file, or the result of the owner's view, and encodes it; the other receives the positions.
Proof that the rows stay the same: accountant/proofs/refinement.md, "The same data".
"""

from collections.abc import Mapping
from pathlib import Path

from cube.axis import Axis
from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
from cube.timestamps import TimestampAxis
from planner.sql.messages import listed, suggestion
from proxy.sources import files, private_view
from proxy.sources.axis_sql import (
    LEFT_OUT,
    WRONG_TYPE,
    ZONED,
    AxisSql,
    axis_sql,
    can_read,
)
from proxy.sources.bounding import (
    UNIT,
    RowsRead,
    axis_column,
    bounded_rows_sql,
    numbered_units_sql,
)
from proxy.sources.closed import Connection, closed_database
from proxy.sources.location import Location, PrivateView, SourceLocation, UnitRows
from proxy.sources.problems import Problems
from proxy.sources.source_column import SourceColumn
from proxy.sources.unit_rows import note_varying, unit_rows_sql

ABSENT = "the source has no such column"


def load(
    schema: Schema,
    location: Location,
    states: Mapping[Path, files.FileState],
    kept: Connection,
    read: RowsRead,
) -> None:
    """Read a table into the table `cells` of another database.

    Where a unit may have several rows, each has a number and a digest of its unit, and says whether
    rows of it were left out. Of a table with one row for each unit of another's rows, that row is
    made here, of all of them.

    Parameters
    ----------
    schema : Schema
        The public columns.
    location : SourceLocation, PrivateView or UnitRows
    states : mapping of Path to FileState
        The state of each file of the location.
    kept : Connection
        The other database, which can reach no file.
    read : RowsRead

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read as declared. The message contains nothing from its rows.
    """
    problems = Problems(location.label)
    where = location.of if isinstance(location, UnitRows) else location
    view = where.sql if isinstance(where, PrivateView) else None
    is_of_units = where is not location
    with closed_database(() if view is not None else files.reachable(states)) as reading:
        relation = _opened(schema, where, states, reading)
        _encode(schema, relation, problems, reading, view)
        if schema.unit is not None:
            has_several = is_of_units or schema.rows_per_unit_max > 1
            _check_units(schema, problems, reading, has_several=has_several)
        _check_types(schema, problems, reading)
        if is_of_units:
            note_varying(schema, problems, reading)
        problems.raise_if_any()
        # Left out of the whole table, so that every total equals the sum of its parts.
        inside = " AND ".join(f"axis_{place} > {LEFT_OUT}" for place in range(len(schema.axes)))
        if schema.grows is not None and read.n_readable is not None:
            inside += f" AND {axis_column(schema, schema.grows)} < {read.n_readable}"
        encoded = f"({unit_rows_sql(schema)})" if is_of_units else "encoded"
        whose = f", {UNIT}" if schema.rows_per_unit_max > 1 else ""
        axes = ", ".join(f"axis_{place}" for place in range(len(schema.axes)))
        rows = f"SELECT {axes}{whose} FROM {encoded} WHERE {inside}"  # noqa: S608 - generated names only
        if schema.rows_per_unit_max > 1:
            if read.key is None:
                raise ValueError("rows of units with several need a key")
            bounded = numbered_units_sql(schema, rows, bounded_rows_sql(schema, rows))
            found = reading.sql(bounded, params=[read.key.hex()])
        else:
            found = reading.sql(rows)
        kept.register("found", found.to_arrow_reader())
        kept.execute("CREATE TABLE cells AS FROM found")
        kept.unregister("found")
    _check_size(schema, location, kept)


def _encode(
    schema: Schema,
    relation: files.Relation,
    problems: Problems,
    connection: Connection,
    view: str | None,
) -> None:
    """Make the table `encoded` of positions, which says whose each row is if there are units."""
    columns = relation.columns
    if columns is None:
        described = connection.execute(f"DESCRIBE FROM {relation.sql}").fetchall()
        columns = files.typed_columns(described)
    encodings = _encodings(schema, columns, problems, view)
    unit = _unit(schema, columns, problems)
    problems.raise_if_any()
    for encoding in encodings:
        _set_up(encoding, connection)
    named = ", ".join(f"{sql.position} AS axis_{place}" for place, sql in enumerate(encodings))
    if unit is not None:
        named += f", {unit.sql} AS {UNIT}"
    joins = " ".join(sql.join for sql in encodings)
    connection.execute(
        f"CREATE TABLE encoded AS SELECT {named} FROM {relation.sql} AS source {joins}"  # noqa: S608 - from the public schema and quoted names
    )


def _opened(
    schema: Schema,
    location: SourceLocation | PrivateView,
    states: Mapping[Path, files.FileState],
    connection: Connection,
) -> files.Relation:
    """The private table as a relation to select from."""
    match location:
        case PrivateView() as view:
            return private_view.materialise(view, schema.table, states, connection)
        case SourceLocation(path=path) as file:
            return files.opened(file, states[path], connection)


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


def _encodings(
    schema: Schema, columns: Mapping[str, SourceColumn], problems: Problems, view: str | None
) -> list[AxisSql]:
    """The encoding of each axis; columns that are absent or of another type are problems."""
    encodings = []
    for place, axis in enumerate(schema.axes):
        column = columns.get(axis.name.casefold())
        keys = ("tables", schema.table, "columns", axis.name)
        if column is None:
            problems.add(keys, _absent(axis, columns, view))
        elif not can_read(axis, column):
            problems.add(keys, _unlike(axis, column, view))
        else:
            encodings.append(axis_sql(axis, column, place))
    return encodings


def _unlike(axis: Axis, column: SourceColumn, view: str | None) -> str:
    """That a column is of another type, and what to do about it."""
    unlike = f"is {column.type_name} in the source, which does not fit the declared kind"
    if isinstance(axis, TimestampAxis) and column.type_name == ZONED:
        return f"{unlike} without a time_zone, on whose clock its moments are read"
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


def _set_up(encoding: AxisSql, connection: Connection) -> None:
    """Make the type or table of levels that an encoding refers to."""
    if encoding.setup:
        connection.register("listed", encoding.listed)
        connection.execute(encoding.setup)
        connection.unregister("listed")


def _check_types(schema: Schema, problems: Problems, connection: Connection) -> None:
    """Record each column with a value of another type; which rows, and how many, is private."""
    flags = ", ".join(
        f"coalesce(bool_or(axis_{place} = {WRONG_TYPE}), false)"
        for place in range(len(schema.axes))
    )
    (found,) = connection.execute(f"SELECT {flags} FROM encoded").fetchall()  # noqa: S608 - generated names only
    for axis, is_wrong in zip(schema.axes, found, strict=True):
        if is_wrong:
            keys = ("tables", schema.table, "columns", axis.name)
            problems.add(keys, f"the source holds a value that is not of type {axis.sql_type}")


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


def _check_size(schema: Schema, location: Location, connection: Connection) -> None:
    """Refuse a table with more records than declared; the count stays in the database."""
    ((too_many,),) = connection.execute(
        f"SELECT count(*) > {schema.n_records_max} FROM cells"  # noqa: S608 - a declared number
    ).fetchall()
    if too_many:
        raise ConfigurationInvalid(
            f"{location.label} holds more records than tables.{schema.table}.n_records_max allows.",
            hint="Declare a public upper bound that is surely true.",
        )
