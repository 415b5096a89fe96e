"""Rows that wait on disk for others of their part: encrypted, in a file that has no name.

Its key is drawn for it and kept nowhere, so that what a crash leaves behind, where the system does
not remove it, is of use to nobody.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from proxy.sources.extract.chunks import Chunks

KEY_BYTES = 32
N_ROWS_HELD = 2**20  # in memory, until they are written together


class Spill:
    """Rows in numbered parts; a context manager.

    Parameters
    ----------
    folder : Path
        Where the file is, as long as it is.
    """

    def __init__(self, folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder) as file:
            self._chunks = Chunks(os.dup(file.fileno()), secrets.token_bytes(KEY_BYTES), 0)
        self._of_part: dict[int, list[int]] = {}
        self._held: list[tuple[pa.RecordBatch, NDArray[Any]]] = []
        self._n_held = 0
        self._schema: pa.Schema | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._chunks.close()

    def add(self, batch: pa.RecordBatch, parts: NDArray[Any]) -> None:
        """Put each row into its part.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            All batches have the same columns.
        parts : (n_rows,) ndarray of integers
        """
        self._schema = batch.schema
        self._held.append((batch, parts))
        self._n_held += batch.num_rows
        if self._n_held >= N_ROWS_HELD:
            self._write()

    def part(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a part, in the order in which they came.

        Raises
        ------
        Damaged
        OSError
        """
        self._write()
        for chunk in self._of_part.get(number, ()):
            yield pa.ipc.read_record_batch(self._chunks.read(chunk), self._schema)

    def _write(self) -> None:
        if not self._held:
            return
        table = pa.Table.from_batches([batch for batch, _ in self._held])
        parts = np.concatenate([parts for _, parts in self._held]).astype(np.int64)
        self._held, self._n_held = [], 0
        order = np.argsort(parts, kind="stable")
        found, starts = np.unique(parts[order], return_index=True)
        ends = [*starts[1:], parts.size]
        sorted_rows = table.take(order).combine_chunks()
        for part, start, end in zip(found, starts, ends, strict=True):
            (batch,) = sorted_rows.slice(start, end - start).to_batches()
            chunk = self._chunks.append(batch.serialize())
            self._of_part.setdefault(int(part), []).append(chunk)
