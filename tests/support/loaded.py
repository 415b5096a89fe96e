"""The database in which a source keeps its rows in memory, for tests that look at it."""

from proxy.sources.cells import CellsInMemory
from proxy.sources.closed import Connection
from proxy.sources.duckdb_source import DuckDbSource


def database_of(source: DuckDbSource) -> Connection:
    """The connection to the rows."""
    assert isinstance(source._cells, CellsInMemory)
    return source._cells._connection
