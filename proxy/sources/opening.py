"""How the rows of a private table are opened: in memory, or in a file that may be there already.

It decides nothing about the rows: whether they are those that a ledger knows is for the gate.
"""

from enum import Enum

from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract_file import ExtractPlace, make_extract, open_extract
from proxy.sources.location import Location


class Extracted(Enum):
    """What is done with an extract that is there already."""

    OPENED = "opened"  # if it is what it has to be
    REPLACED = "replaced"  # by the rows as they are in the data now
    LEFT = "left"  # and the rows of the data are read beside it


def open_rows(  # noqa: PLR0913, PLR0917 - what is read, and how it is kept
    schema: Schema,
    location: Location,
    read: RowsRead,
    place: ExtractPlace | None,
    known_rows: str = "",
    extracted: Extracted = Extracted.OPENED,
) -> DuckDbSource:
    """The rows of a table.

    Parameters
    ----------
    schema : Schema
    location : Location
    read : RowsRead
    place : ExtractPlace, optional
        Where they are kept; by default in memory.
    known_rows : str
        The digest of those that the table has to have, by which an extract is known to be old.
        Empty if no ledger says so yet.
    extracted : Extracted
    """
    if place is None:
        return DuckDbSource(schema, location, read)
    if extracted is Extracted.OPENED:
        return open_extract(place, schema, location, read, known_rows)
    is_kept = extracted is Extracted.REPLACED
    return make_extract(place, schema, location, read, known_rows, is_kept=is_kept)
