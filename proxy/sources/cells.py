"""Where the encoded rows of a table are kept, to be counted again and again: here, in memory.

What is kept contains only positions of declared columns, in a database that can reach no files,
extensions or settings. On disk: extract/cells_on_disk.py.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from proxy.sources.cells_in_order import cells_in_order
from proxy.sources.closed import Connection, closed_database

N_ROWS_A_BATCH: Final = 2**17
CELLS: Final = "cells"  # the relation of the rows, wherever they are kept


class Cells(Protocol):
    """The encoded rows of one table, written once."""

    folder: Path | None
    """Where rows that are on their way may be put, encrypted; None to keep them in memory."""

    def keep(self, rows: pa.RecordBatchReader) -> None:
        """Keep these rows, and no others."""
        ...

    def reading(self, columns: Collection[str]) -> AbstractContextManager[Connection]:
        """A connection whose relation `cells` has at least these columns, to be read once."""
        ...

    def rows(self, columns: Sequence[str], condition: str) -> Iterator[pa.RecordBatch]:
        """These columns of the rows within a condition, in no order."""
        ...

    def in_order(self, columns: Sequence[str], condition: str) -> Iterator[bytes]:
        """The cells of the rows within a condition and their counts, in the order of positions."""
        ...


class CellsInMemory:
    """The encoded rows of one table, in a database in memory."""

    folder: Path | None = None

    def __init__(self) -> None:
        self._connection = closed_database()

    def keep(self, rows: pa.RecordBatchReader) -> None:
        """Keep these rows, and no others."""
        with self._connection.cursor() as cursor:
            cursor.register("found", rows)
            cursor.execute(f"CREATE OR REPLACE TABLE {CELLS} AS FROM found")
            cursor.unregister("found")

    @contextmanager
    def reading(self, columns: Collection[str]) -> Iterator[Connection]:  # noqa: ARG002 - all are there
        """A connection to the rows; one connection serves one thread at a time."""
        with self._connection.cursor() as cursor:
            yield cursor

    def rows(self, columns: Sequence[str], condition: str) -> Iterator[pa.RecordBatch]:
        """These columns of the rows within a condition, in no order."""
        sql = f"SELECT {', '.join(columns)} FROM {CELLS} WHERE {condition}"  # noqa: S608 - generated names only
        with self._connection.cursor() as cursor:
            yield from cursor.sql(sql).to_arrow_reader(N_ROWS_A_BATCH)

    def in_order(self, columns: Sequence[str], condition: str) -> Iterator[bytes]:
        """The cells of the rows within a condition and their counts, in the order of positions."""
        with self._connection.cursor() as cursor:
            yield from cells_in_order(columns, cursor, condition)
