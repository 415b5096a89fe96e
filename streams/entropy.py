"""Where random words come from: the operating system, in large pieces.

There is no seed to pass, and no generator whose state an intruder could find and run backwards.
Tests pass another source of the same shape.
"""

import os
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

WORD_BITS: Final = 64
GRID: Final = 2**WORD_BITS  # probabilities are whole numbers of this many parts
WORDS_IN_PIECE: Final = 2**16  # half a MB: one call of the system a piece


class Entropy(Protocol):
    """A source of uniform, independent words of 64 bits."""

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw `n` words that were never drawn before."""
        ...


class SystemEntropy:
    """The operating system's generator."""

    def words(self, n: int) -> NDArray[np.uint64]:
        """Draw `n` words."""
        return np.frombuffer(os.urandom(n * WORD_BITS // 8), dtype=np.uint64)
