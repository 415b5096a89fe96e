"""Every cell of rows on disk with its count, in the order of `cells_in_order`, sorted in pieces.

The rows are read twice: to learn how many have each code, a number made of their first columns, and
to put each where the others of its piece are, in an encrypted file. A piece is a run of codes, so
that all cells of one come before those of the next. All of this is private.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from proxy.sources.cells_in_order import N_CELLS_A_BATCH, cell_bytes, counting_sql
from proxy.sources.closed import closed_database
from proxy.sources.extract.spill import Spill

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
        columns : sequence of str
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
