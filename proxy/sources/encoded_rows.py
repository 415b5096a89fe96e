"""SQL that makes positions of levels of a source's rows, or says what is wrong with its columns.

Generated from the public declaration and the names and types of columns; rows are not looked at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cube.axis import Axis, TimestampAxis
from cube.schema import Schema
from planner.sql.messages import listed, suggestion
from proxy.sources.axis_sql import ZONED, AxisSql, axis_sql, can_read
from proxy.sources.bounding import UNIT
from proxy.sources.closed import Connection
from proxy.sources.files import Relation, typed_columns
from proxy.sources.problems import Problems
from proxy.sources.searching import Search, edges_table, searched
from proxy.sources.source_column import SourceColumn

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
    schema : Schema
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
