"""How the rows of a private table are opened: in memory, or in a file that may be there already.

It decides nothing about the rows: whether they are those that a ledger knows is for the gate.
"""

from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract_file import ExtractPlace, make_extract, open_extract
from proxy.sources.location import Location


def open_rows(
    schema: Schema,
    location: Location,
    read: RowsRead,
    place: ExtractPlace | None,
    known_rows: str | None = None,
) -> DuckDbSource:
    """The rows to serve.

    Parameters
    ----------
    schema : Schema
    location : Location
    read : RowsRead
    place : ExtractPlace, optional
        Where they are kept; by default in memory.
    known_rows : str, optional
        The digest of those that the table has to have, by which an extract is known to be old.
    """
    if place is None:
        return DuckDbSource(schema, location, read)
    return open_extract(place, schema, location, read, known_rows)


def read_rows(
    schema: Schema,
    location: Location,
    read: RowsRead,
    place: ExtractPlace | None,
    *,
    is_kept: bool,
) -> DuckDbSource:
    """The rows as they are in the data now.

    Parameters
    ----------
    schema : Schema
    location : Location
    read : RowsRead
    place : ExtractPlace, optional
    is_kept : bool
        Whether they are to be served from now on; otherwise an extract that is there stays.
    """
    if place is None:
        return DuckDbSource(schema, location, read)
    return make_extract(place, schema, location, read, is_kept=is_kept)
