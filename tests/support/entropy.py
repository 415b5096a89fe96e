"""Sources of random words for tests of streams: repeatable ones, and ones that are written down."""

import numpy as np
from numpy.typing import NDArray


class SeededWords:
    """Words that are the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def words(self, n: int) -> NDArray[np.uint64]:
        return self._generator.integers(0, 2**64, n, dtype=np.uint64)


class WrittenWords:
    """The words of a list, one after another; then zeros, which nothing should need."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)
        self.n_drawn = 0

    def words(self, n: int) -> NDArray[np.uint64]:
        taken, self.left = self.left[:n], self.left[n:]
        self.n_drawn += n
        return np.array(taken + [0] * (n - len(taken)), dtype=np.uint64)
