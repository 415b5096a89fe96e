"""Whether the source_table of a database file is a base table, whose rows are in the file.

A view is a text that is run anew each time: it may read another file, or the clock, while the bytes
of its own file, and so its fingerprint, stay the same. The same holds for a generated column. The
catalog says which is which; neither is run.
"""

from cube.refusals import ConfigurationInvalid
from proxy.sources.closed import Connection
from proxy.sources.location import SourceLocation

SCHEMA = "main"
STORED = "CREATE TABLE people AS FROM your_view, and then CHECKPOINT, stores the rows in the file."


def check_base_table(location: SourceLocation, catalog: str, connection: Connection) -> str:
    """The name of the source table in the file's spelling.

    Parameters
    ----------
    location : SourceLocation
        A database file and the table in it.
    catalog : str
        The name under which the file is attached.
    connection : Connection
        The database to which it is attached.

    Raises
    ------
    ConfigurationInvalid
        If there is no such table, or if it is a view, or if one of its columns is generated.
    """
    wanted = location.source_table or ""
    found = _spelled(wanted, "duckdb_tables", "table_name", catalog, connection)
    if len(found) != 1:
        if _spelled(wanted, "duckdb_views", "view_name", catalog, connection):
            raise ConfigurationInvalid(
                f"{location.path}: {wanted} is a view, which may give other rows while the file "
                "stays the same.",
                hint=STORED,
            )
        raise ConfigurationInvalid(
            f"{location.path} cannot be read: there is no table {wanted} in it."
        )
    (name,) = found
    ((is_generated,),) = connection.execute(
        "SELECT coalesce(bool_or(is_generated), false) FROM system.main.duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND table_name = ?",
        [catalog, SCHEMA, name],
    ).fetchall()
    if is_generated:
        raise ConfigurationInvalid(
            f"{location.path}: {wanted} has a generated column, which may give other values while "
            "the file stays the same.",
            hint=STORED,
        )
    return name


def _spelled(
    wanted: str, listing: str, column: str, catalog: str, connection: Connection
) -> list[str]:
    """The entry of a catalog listing with that name, ignoring letter case."""
    rows = connection.execute(
        f"SELECT {column} FROM system.main.{listing}() "  # noqa: S608 - fixed names
        "WHERE database_name = ? AND schema_name = ?",
        [catalog, SCHEMA],
    ).fetchall()
    return [name for (name,) in rows if name.casefold() == wanted.casefold()]
