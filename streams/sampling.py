"""A keyed permutation of a universe of users: the first places of it are a uniform sample.

A Feistel network over a rectangle of whole numbers, with rounds from tables that SHAKE-256 makes of
the key. Any set of ids, all even ones for example, is sampled like any other; a linear hash would
sample arithmetic progressions. Who is in the sample is public to whoever has the key, and has to be
independent of the stream alone: privacy never depends on it.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.cached import cached_property

UNIVERSE_MAX: Final = 2**32
KEY_BYTES_MIN: Final = 16
N_ROUNDS: Final = 4  # of two steps each


@dataclass(frozen=True, slots=True)
class Rounds:
    """The tables of one round: what is added to either coordinate, by the other."""

    to_row: NDArray[np.uint32]
    to_column: NDArray[np.uint32]


@dataclass(frozen=True)
class KeyedPermutation:
    """A permutation of ``0 .. size - 1``.

    Parameters
    ----------
    size : int
    key : bytes
        At least 16 random bytes, the same as long as the permutation is used.

    Examples
    --------
    >>> mixed = KeyedPermutation(10, bytes(16)).places(np.arange(10))
    >>> sorted(mixed.tolist()) == list(range(10))
    True
    """

    size: int
    key: bytes

    def __post_init__(self) -> None:
        if not 1 <= self.size <= UNIVERSE_MAX:
            raise ValueError(f"a universe has 1 to {UNIVERSE_MAX} users")
        if len(self.key) < KEY_BYTES_MIN:
            raise ValueError(f"a key has at least {KEY_BYTES_MIN} bytes")

    @property
    def n_rows(self) -> int:
        """Rows of the rectangle, nearly a square, that holds the universe."""
        return math.isqrt(self.size - 1) + 1

    @property
    def n_columns(self) -> int:
        """Its columns; less than a row of it lies outside the universe."""
        return -(-self.size // self.n_rows)

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each id is permuted to. Ids lie in the universe."""
        found = self._once(ids)
        outside = np.flatnonzero(found >= self.size)
        while outside.size:  # goes on along its cycle, which comes back into the universe
            found[outside] = self._once(found[outside])
            outside = outside[found[outside] >= self.size]
        return found

    def _once(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The permutation of the whole rectangle."""
        rows_of, columns_of = np.uint32(self.n_rows), np.uint32(self.n_columns)
        wide = ids // self.n_columns
        row, column = wide.astype(np.uint32), (ids - wide * self.n_columns).astype(np.uint32)
        for tables in self._rounds:
            row += tables.to_row[column]
            row -= rows_of * (row >= rows_of)
            column += tables.to_column[row]
            column -= columns_of * (column >= columns_of)
        return row.astype(np.int64) * self.n_columns + column

    @cached_property
    def _rounds(self) -> tuple[Rounds, ...]:
        def table(label: int, length: int, below: int) -> NDArray[np.uint32]:
            words = keyed_words(self.key, b"round %d of %d" % (label, self.size), length)
            return (words % np.uint64(below)).astype(np.uint32)

        return tuple(
            Rounds(
                table(2 * k, self.n_columns, self.n_rows),
                table(2 * k + 1, self.n_rows, self.n_columns),
            )
            for k in range(N_ROUNDS)
        )


def keyed_words(key: bytes, label: bytes, n: int) -> NDArray[np.uint64]:
    """Words that look random to whoever lacks the key, the same for the same key and label."""
    sponge = hashlib.shake_256(len(key).to_bytes(4, "little") + key + label)
    return np.frombuffer(sponge.digest(8 * n), dtype="<u8").astype(np.uint64)
