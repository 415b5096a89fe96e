"""The encoded rows of a table in an encrypted file, a chunk for each column of each group of rows.

To count on some columns, the chunks of these are read, a group after the other, and grouped by a
database that reaches nothing but what it is handed: memory is that of a few groups, and of the
cells that are counted.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from proxy.sources.cells import CELLS
from proxy.sources.cells_in_order import EVERYTHING
from proxy.sources.closed import Connection, closed_database
from proxy.sources.extract.chunks import Chunks
from proxy.sources.extract.order_on_disk import cells_in_pieces
from proxy.sources.flow import Flow

N_ROWS_A_GROUP = 2**20


class CellsOnDisk:
    """The encoded rows of one table, in a file.

    Parameters
    ----------
    chunks : Chunks
        Of an empty file, or of one that was written so.
    folder : Path
        Where what is on its way may be put.
    columns : pyarrow.Schema
    groups : sequence of int
        The number of rows in each group that is there already.
    highest : mapping of str to int
        The largest value of each column among them.
    passing : callable
        What rows pass on their way.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what is there, and what comes
        self,
        chunks: Chunks,
        folder: Path,
        columns: pa.Schema,
        groups: Sequence[int] = (),
        highest: Mapping[str, int] | None = None,
        passing: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]] = iter,
    ) -> None:
        self.folder: Path | None = folder
        self._spills = folder
        self._chunks = chunks
        self._columns = columns
        self.groups = list(groups)
        self.highest = dict.fromkeys(columns.names, 0) | dict(highest or {})
        self._passing = passing
        self._connection = closed_database()

    def keep(self, rows: pa.RecordBatchReader) -> None:
        """Write these rows."""
        waiting: list[pa.RecordBatch] = []
        n_waiting = 0
        for batch in self._passing(rows):
            waiting.append(batch)
            n_waiting += batch.num_rows
            if n_waiting >= N_ROWS_A_GROUP:
                self._write(waiting)
                waiting, n_waiting = [], 0
        self._write(waiting)

    def _write(self, batches: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches, self._columns).combine_chunks()
        if not table.num_rows:
            return
        for column in table.columns:
            values = column.chunk(0)
            width = values.type.bit_width // 8
            _, content = values.buffers()
            self._chunks.append(content.slice(values.offset * width, len(values) * width))
        for name, column in zip(self._columns.names, table.columns, strict=True):
            self.highest[name] = max(self.highest[name], pc.max(column).as_py())
        self.groups.append(table.num_rows)

    def batches(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as they are in the file; Damaged if they are not what was written."""
        names = [name for name in self._columns.names if name in columns]
        for group, n_rows in enumerate(self.groups):
            arrays = [
                pa.Array.from_buffers(
                    self._columns.field(name).type,
                    n_rows,
                    [None, self._chunks.read(self._number(group, name))],
                )
                for name in names
            ]
            yield pa.record_batch(arrays, names=names)

    def _number(self, group: int, name: str) -> int:
        """The chunk of a column of a group of rows."""
        found: int = group * len(self._columns) + self._columns.get_field_index(name)
        return found

    @contextmanager
    def reading(self, columns: Collection[str]) -> Iterator[Connection]:
        """A connection whose relation `cells` has these columns, and is read once."""
        named = set(columns) or {self._columns.names[0]}  # or there were no rows to count
        flow = Flow(self.batches(named))
        fields = [field for field in self._columns if field.name in named]
        with self._connection.cursor() as cursor:
            cursor.register(CELLS, flow.reader(pa.schema(fields)))
            try:
                yield cursor
            except Exception:
                flow.raise_failure()
                raise
            finally:
                cursor.unregister(CELLS)

    def rows(self, columns: Sequence[str], condition: str) -> Iterator[pa.RecordBatch]:
        """These columns of the rows within a condition."""
        if condition == EVERYTHING:
            for batch in self.batches(columns):
                yield batch.select([*columns])
            return
        with self.reading(columns) as cursor:
            rows = cursor.sql(f"SELECT {', '.join(columns)} FROM {CELLS} WHERE {condition}")  # noqa: S608 - generated names only
            yield from rows.to_arrow_reader(N_ROWS_A_GROUP)

    def in_order(self, columns: Sequence[str], condition: str) -> Iterator[bytes]:
        """The cells of the rows within a condition and their counts, in the order of positions."""

        def read() -> Iterator[pa.RecordBatch]:
            return self.rows(columns, condition)

        yield from cells_in_pieces(columns, self.highest, read, self._spills)
