"""The rows of a table that does not grow: read from its location, or counted where they are."""

from functools import partial

from accountant.source import Source
from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.extract_file import ExtractPlace
from proxy.sources.location import PostgresRows, TableLocation
from proxy.sources.opening import Extracted, open_rows
from proxy.sources.postgres_rows import conninfo
from proxy.sources.pushdown.opening import PostgresTable, StaysThere, counted_there
from proxy.sources.spark_table import SparkTable


def table_rows(  # noqa: PLR0913, PLR0917 - what is read, and how it is kept
    schema: Schema,
    location: TableLocation,
    key: bytes,
    place: ExtractPlace | StaysThere | None,
    known_rows: str,
    extracted: Extracted,
) -> Source:
    """The rows of a table, to serve them or to look at them.

    Parameters
    ----------
    schema : Schema
    location : TableLocation
    key : bytes
        The ledger's.
    place : ExtractPlace or StaysThere, optional
        Where they are kept; by default in memory.
    known_rows : str
        The digest of the rows of the generation that a ledger has come to; empty if it has none.
    extracted : Extracted
    """
    if isinstance(place, StaysThere):
        return _there(schema, location, place, key)
    if isinstance(location, SparkTable):
        raise TypeError("a table in Spark stays there")
    return open_rows(schema, location, RowsRead(key), place, known_rows, extracted)


def _there(schema: Schema, location: TableLocation, stays: StaysThere, key: bytes) -> Source:
    match location:
        case SparkTable() as table:
            return counted_there(schema, table, stays, key)
        case PostgresRows(table=str() as name) as rows:
            there = PostgresTable(name, rows.label, partial(conninfo, rows))
            return counted_there(schema, there, stays, key)
        case _:
            raise TypeError("only a table of an engine stays where it is")
