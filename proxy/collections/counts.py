"""What the answers to one collection are counted as, at one moment, as the file has it.

Counts are kept as they are stored, a chunk at a time, and those without an answer are left out:
whoever asks about a few combinations of a wide campaign makes no numbers of all others.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint

CHUNK: Final = 64  # counts that are read and written together: small enough to stay in their page
COUNT: Final = np.dtype("<i8")


@dataclass(frozen=True, eq=False, repr=False)
class Counts:
    """The counts of one collection.

    Parameters
    ----------
    n_respondents : int
    n_answers : mapping of int to int
        By the place of a combination; those without answers are left out.
    chunks : mapping of int to mapping of int to bytes
        By combination, and then by number: `CHUNK` counts each; those that are all 0 are left out.
    """

    n_respondents: int
    n_answers: Mapping[int, int]
    chunks: Mapping[int, Mapping[int, bytes]]

    @classmethod
    def read(
        cls,
        n_respondents: int,
        n_answers: Mapping[int, int],
        rows: Iterable[tuple[int, int, bytes]],
    ) -> "Counts":
        """Of rows with a combination, the number of a chunk, and its counts."""
        chunks: dict[int, dict[int, bytes]] = {}
        for combination, chunk, counts in rows:
            chunks.setdefault(combination, {})[chunk] = counts
        return cls(n_respondents, n_answers, chunks)

    def of(self, combination: int, n_places: int) -> NDArray[np.int64]:
        """The counts of one combination, at every place of its channel's output.

        A step of a statement's work: of a wide campaign there are thousands.
        """
        checkpoint()
        found = np.zeros(-(-n_places // CHUNK) * CHUNK, dtype=np.int64)
        for chunk, counts in self.chunks.get(combination, {}).items():
            found[chunk * CHUNK : (chunk + 1) * CHUNK] = counts_in(counts)
        return found[:n_places]

    @property
    def digest(self) -> str:
        """The SHA-256 of all counts, by which others are noticed."""
        digest = sha256(self.n_respondents.to_bytes(8, "big"))
        for combination, n_answers in sorted(self.n_answers.items()):
            digest.update(struct.pack(">QQ", combination, n_answers))
        for combination, chunks in sorted(self.chunks.items()):
            for chunk, counts in sorted(chunks.items()):
                digest.update(struct.pack(">QQ", combination, chunk) + counts)
        return digest.hexdigest()


def counts_in(stored: bytes) -> NDArray[np.int64]:
    """The counts of a chunk."""
    return np.frombuffer(stored, dtype=COUNT).astype(np.int64)
