"""An encrypted file of chunks: written one after the other, read by their number.

Each chunk is compressed, and sealed by AES-256-GCM with its number as the nonce, under a key that
seals this one file. So a chunk that is changed, cut short, moved to another place or taken from
another file does not open. A chunk is bytes: nothing here knows what they mean.

Rows that wait on disk for others of their part are in such a file, too, which has no name. Its key
is drawn for it and kept nowhere. So a file that a crash leaves behind, if the system does not
remove it, cannot be read.
"""

import os
import secrets
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from accountant.ledger.stores import durable_file

CODEC: Final = pa.Codec("lz4_raw")
NONCE_BYTES: Final = 12
LAST: Final = b"\xff" * NONCE_BYTES  # the nonce of the last chunk
TAG_BYTES: Final = 16
SIZE_BYTES: Final = 8
TAIL_BYTES: Final = 2 * SIZE_BYTES
LAST_BYTES_MAX: Final = 2**30  # what a file asks for is not believed before it is opened


class Damaged(Exception):
    """What is in the file is not what was written to it under this key."""


class Chunks:
    """The chunks of one open file. Reading is thread-safe.

    Parameters
    ----------
    file : int
        A file descriptor, from now on closed by `close`.
    key : bytes
        32 bytes, for this file alone.
    start : int
        Where the first chunk begins.
    """

    def __init__(self, file: int, key: bytes, start: int) -> None:
        self._file = file
        self._cipher = AESGCM(key)
        self._closing = threading.Lock()
        self.end = start
        self.places: list[tuple[int, int, int]] = []  # offset, bytes on disk, bytes within

    def append(self, content: pa.Buffer | bytes) -> int:
        """Write a chunk, and say its number."""
        number = len(self.places)
        sealed = self._cipher.encrypt(nonce(number), CODEC.compress(content, asbytes=True), None)
        write_all(self._file, sealed, self.end)
        self.places.append((self.end, len(sealed), memoryview(content).nbytes))
        self.end += len(sealed)
        return number

    def read(self, number: int) -> pa.Buffer:
        """The content of a chunk.

        Raises
        ------
        Damaged
        OSError
        """
        offset, n_sealed, n_bytes = self.places[number]
        try:
            packed = self._cipher.decrypt(
                nonce(number), os.pread(self._file, n_sealed, offset), None
            )
        except InvalidTag:
            raise Damaged from None
        return CODEC.decompress(packed, decompressed_size=n_bytes) if n_bytes else pa.py_buffer(b"")

    def append_last(self, content: bytes) -> None:
        """Write the chunk that says where the others are, and the end of the file."""
        packed = CODEC.compress(content, asbytes=True)
        sizes = [len(packed) + TAG_BYTES, len(content)]
        tail = b"".join(size.to_bytes(SIZE_BYTES, "big") for size in sizes)
        sealed = self._cipher.encrypt(LAST, packed, tail)
        write_all(self._file, sealed + tail, self.end)
        durable_file.sync(self._file)

    def read_last(self) -> bytes:
        """The content of the last chunk; Damaged if the file does not end with one."""
        end = os.fstat(self._file).st_size - TAIL_BYTES
        tail = os.pread(self._file, TAIL_BYTES, max(end, 0))
        n_sealed, n_bytes = (
            int.from_bytes(tail[at : at + SIZE_BYTES], "big") for at in (0, SIZE_BYTES)
        )
        if end < 0 or n_sealed > end or n_bytes > LAST_BYTES_MAX:
            raise Damaged
        try:
            packed = self._cipher.decrypt(
                LAST, os.pread(self._file, n_sealed, end - n_sealed), tail
            )
            return bytes(CODEC.decompress(packed, decompressed_size=n_bytes))
        except (InvalidTag, pa.ArrowException, OSError):
            raise Damaged from None

    def close(self) -> None:
        """Close the file; twice does nothing more."""
        with self._closing:
            file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self.close()


def nonce(number: int) -> bytes:
    """The nonce of the chunk with a number; no other of the same file has it."""
    return number.to_bytes(NONCE_BYTES, "big")


def write_all(file: int, content: bytes, offset: int) -> None:
    """Write all bytes at an offset."""
    view = memoryview(content)
    while view:
        n_written = os.pwrite(file, view, offset)
        view, offset = view[n_written:], offset + n_written


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
