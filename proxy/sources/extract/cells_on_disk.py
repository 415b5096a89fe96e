"""The encoded rows of a table in an encrypted file, a chunk for each column of each group of rows.

To count on some columns, the chunks of these are read, a group after the other, and grouped by a
database that reaches nothing but what it is handed: memory is that of a few groups, and of the
cells that are counted.

Every cell with its count, in the order of `cells_in_order`, is sorted in pieces. The rows are read
twice: to learn how many have each code, a number made of their first columns, and to put each where
the others of its piece are, in an encrypted file. A piece is a run of codes, so that all cells of
one come before those of the next. All of this is private.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from proxy.sources.cells import CELLS, EVERYTHING, N_CELLS_A_BATCH, cell_bytes, counting_sql
from proxy.sources.closed import Connection, Flow, closed_database
from proxy.sources.extract.chunks import Chunks, Spill

N_ROWS_A_PIECE: Final = 2**22
N_CODES_MAX: Final = 2**22


@dataclass(frozen=True, slots=True)
class Codes:
    """Numbers of rows that are in the order of their first columns.

    Parameters
    ----------
    columns : tuple of (str, int, int)
        Of each column in turn: its name, by how many bits it is shortened, and how many values that
        leaves.
    """

    columns: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, columns: Sequence[str], highest: Mapping[str, int]) -> "Codes":
        """As many columns as there are codes for.

        Parameters
        ----------
        highest : mapping of str to int
            The largest value of each column; the least is at least 0.
        """
        taken: list[tuple[str, int, int]] = []
        n_codes = 1
        for name in columns:
            bits = 0
            while n_codes * ((highest[name] >> bits) + 1) > N_CODES_MAX:
                bits += 1
            n_values = (highest[name] >> bits) + 1
            taken.append((name, bits, n_values))
            n_codes *= n_values
            if bits:  # the columns after it tell rows apart that this one might not
                break
        return cls(tuple(taken))

    @property
    def n_codes(self) -> int:
        """How many there are."""
        return int(np.prod([n_values for _name, _bits, n_values in self.columns], dtype=np.int64))

    def of_rows(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """The code of each row."""
        codes = np.zeros(batch.num_rows, np.int64)
        for name, bits, n_values in self.columns:
            codes *= n_values
            codes += batch[name].to_numpy() >> bits
        return codes


def cells_in_pieces(
    columns: Sequence[str],
    highest: Mapping[str, int],
    read: Callable[[], Iterable[pa.RecordBatch]],
    folder: Path,
) -> Iterator[bytes]:
    """Positions in these columns and counts, 64 bits each, little-endian, cell after cell.

    Parameters
    ----------
    columns : sequence of str
        At least one.
    highest : mapping of str to int
        The largest value of each column.
    read : callable
        The rows, from the first, whenever it is called.
    folder : Path
        Where what is sorted is put meanwhile, encrypted.
    """
    codes = Codes.of(columns, highest)
    n_of_code = np.zeros(codes.n_codes, np.int64)
    for batch in read():
        n_of_code += np.bincount(codes.of_rows(batch), minlength=n_of_code.size)
    pieces = (np.cumsum(n_of_code) - n_of_code) // N_ROWS_A_PIECE
    if not pieces.size or pieces[-1] == 0:
        yield from _cells(columns, read())
        return
    with Spill(folder) as spill:
        for batch in read():
            spill.add(batch, pieces[codes.of_rows(batch)])
        for piece in np.unique(pieces):
            yield from _cells(columns, spill.part(int(piece)))


def _cells(columns: Sequence[str], rows: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """The cells of some rows, in order."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return

    def every() -> Iterator[pa.RecordBatch]:
        yield first
        yield from rows

    with closed_database() as sorting:
        sorting.register("cells", pa.RecordBatchReader.from_batches(first.schema, every()))
        found = sorting.sql(counting_sql(columns))
        for batch in found.to_arrow_reader(N_CELLS_A_BATCH):
            yield cell_bytes(batch)


N_ROWS_A_GROUP = 2**20


class CellsOnDisk:
    """The encoded rows of one table, in a file.

    Parameters
    ----------
    chunks : Chunks
        Of an empty file, or of one that was written so.
    folder : Path
        Where what is on its way may be put.
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
