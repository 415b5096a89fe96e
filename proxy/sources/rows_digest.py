"""Keyed digests of rows as they are served, in the two ways that ledgers know.

A digest says by how it begins in which way it was made, and is compared with one of the same way
alone: the caller of a comparison passes the known digest. New ones are of sums: of each row a keyed
block, added up, so that rows need no order and are seen once. Old ones are of the sorted cells
(cells.py). Nothing here reads rows by itself.
Proof: accountant/proofs/refinement.md, "The digest of rows".
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

from cube.encoding import canonical_json
from cube.schema import Schema
from proxy.sources.bounding import UNIT_DIGEST

BLOCK_BYTES: Final = 16
LANE_BITS: Final = 32
N_LANES: Final = 4  # whole numbers in a block
N_ROWS_AT_ONCE: Final = 2**14  # what they take stays in the processor's cache
LOW: Final = np.uint64(2**LANE_BITS - 1)
N_ADDED_ABREAST: Final = 128  # sums that are long are six times as fast as many of two


class DigestKind(Enum):
    """The way in which a digest was made, by how its text begins."""

    CELLS = ""
    SUMS = "sums:"

    @classmethod
    def of(cls, like: str) -> "DigestKind":
        """That of a digest; of the empty text, the way of new ones."""
        return cls.SUMS if not like or like.startswith(cls.SUMS.value) else cls.CELLS


def digested_columns(schema: Schema) -> list[str]:
    """The columns of kept rows that are digested, in the order of the declared names."""
    column = {axis.name: f"axis_{place}" for place, axis in enumerate(schema.axes)}
    # Of units, what later rows do not change.
    whose = [UNIT_DIGEST] if schema.rows_per_unit_max > 1 else []
    return [column[name] for name in sorted(column)] + whose


def heading_of(schema: Schema) -> list[str | int]:
    """What the rows of a table are of."""
    return ["rows", *sorted(axis.name for axis in schema.axes)]


def digest_of_cells(heading: Sequence[str | int], cells: Iterable[bytes], key: bytes) -> str:
    """HMAC-SHA256 of cells and their counts, in hexadecimal.

    Parameters
    ----------
    heading : sequence of str or int
        What the rows are of.
    cells : iterable of bytes
        In canonical order.
    """
    code = hmac.new(key, canonical_json([*heading]).encode(), hashlib.sha256)
    for some in cells:
        code.update(some)
    return DigestKind.CELLS.value + code.hexdigest()


class RowsDigest:
    """A digest of sums, of rows as they go by.

    Parameters
    ----------
    heading : sequence of str or int
        What the rows are of.
    columns : sequence of str
        What is digested of each batch: whole numbers without NULL. Their order counts.
    """

    def __init__(self, heading: Sequence[str | int], columns: Sequence[str], key: bytes) -> None:
        self._title = canonical_json([DigestKind.SUMS.value, *heading])
        self._columns = [*columns]
        self._key = key
        self._sums: RowSums | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows; their order does not count."""
        digested = batch.select(self._columns)
        if self._sums is None:
            self._sums = RowSums(
                digested.schema, lambda text: _derived(self._key, self._title, text)
            )
        self._sums.add(digested)

    def passing(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same rows, which are added on their way."""
        for batch in rows:
            self.add(batch)
            yield batch

    @property
    def text(self) -> str:
        """HMAC-SHA256 of the sum of a keyed block of each row that was added."""
        total = 0 if self._sums is None else self._sums.total
        text = canonical_json([self._title, f"{total:x}"])
        found = hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
        return DigestKind.SUMS.value + found


def _derived(key: bytes, title: str, purpose: str) -> bytes:
    """A key for one purpose, and for what these rows are of."""
    return hmac.new(key, canonical_json([title, purpose]).encode(), hashlib.sha256).digest()


class RowSums:
    """The sum over rows of a keyed block, a whole number of 128 bits, of each.

    The columns of a row are laid into blocks. Each is enciphered under a key of its place, and the
    exclusive or of these once more under another.

    Parameters
    ----------
    columns : pyarrow.Schema
        The columns, all of integers.
    key_for : callable
        A key of 32 bytes by its purpose.
    """

    def __init__(self, columns: pa.Schema, key_for: Callable[[str], bytes]) -> None:
        self.total = 0
        self._lanes = [max(1, field.type.bit_width // LANE_BITS) for field in columns]
        n_blocks = max(1, -(-sum(self._lanes) // N_LANES))
        self._row_blocks = np.zeros((n_blocks, N_ROWS_AT_ONCE, N_LANES), "<i4")
        self._ciphers = [_cipher(key_for(f"block {place}")) for place in range(n_blocks)]
        self._last = _cipher(key_for("row"))
        # The cipher wants room for one block more than it writes.
        self._enciphered = np.zeros((n_blocks + 1, (N_ROWS_AT_ONCE + 1) * BLOCK_BYTES), np.uint8)
        self._half = np.zeros(2 * N_ROWS_AT_ONCE, np.uint64)

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows."""
        arrays = [column.to_numpy() for column in rows.columns]
        for start in range(0, rows.num_rows, N_ROWS_AT_ONCE):
            n_rows = min(N_ROWS_AT_ONCE, rows.num_rows - start)
            self._lay([array[start : start + n_rows] for array in arrays], n_rows)
            self.total += self._sum(n_rows)

    def _lay(self, arrays: Sequence[NDArray[Any]], n_rows: int) -> None:
        """Write the columns of some rows into their blocks."""
        at = 0
        for array, n_lanes in zip(arrays, self._lanes, strict=True):
            parts = array if n_lanes == 1 else array.astype("<i8").view("<i4").reshape(-1, n_lanes)
            for lane in range(n_lanes):
                block, place = divmod(at + lane, N_LANES)
                self._row_blocks[block, :n_rows, place] = parts if n_lanes == 1 else parts[:, lane]
            at += n_lanes

    def _sum(self, n_rows: int) -> int:
        """The sum over the rows that are laid."""
        n_bytes = n_rows * BLOCK_BYTES
        for cipher, blocks, into in zip(
            self._ciphers, self._row_blocks, self._enciphered, strict=False
        ):
            cipher.update_into(memoryview(blocks[:n_rows]).cast("B"), memoryview(into))
        words = self._enciphered[:, :n_bytes].view("<u8")
        for other in words[1:-1]:
            words[0] ^= other
        self._last.update_into(memoryview(words[0]).cast("B"), memoryview(self._enciphered[-1]))
        half = self._half[: 2 * n_rows]
        low = _added(np.bitwise_and(words[-1], LOW, out=half))
        high = _added(np.right_shift(words[-1], LANE_BITS, out=half))
        return sum(
            one << (place * LANE_BITS)
            for place, one in enumerate((low[0], high[0], low[1], high[1]))
        )


def _added(words: NDArray[np.uint64]) -> tuple[int, int]:
    """The exact sums of the words at even places, and of those at odd ones."""
    # Of 32 bits each, and so few that no sum overflows.
    n_abreast = words.size - words.size % N_ADDED_ABREAST
    abreast = words[:n_abreast].reshape(-1, N_ADDED_ABREAST).sum(axis=0)
    found = abreast.reshape(-1, 2).sum(axis=0) + words[n_abreast:].reshape(-1, 2).sum(axis=0)
    return int(found[0]), int(found[1])


def _cipher(key: bytes) -> Any:
    """AES of blocks by themselves: a keyed permutation of them, not a way to hide a text."""
    return Cipher(AES(key), ECB()).encryptor()  # noqa: S305 - see above
