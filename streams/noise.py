"""The noise of a release: a two-sided geometric variable that is added to the number of ones.

``Pr(z) = (1 - alpha) / (1 + alpha) * alpha**|z|`` with `alpha` a whole number of ``2**-64``, drawn
without error from random words. What it costs together with a state: mechanism.py.

Proof: proofs/pan_privacy.md, "Drawing the noise".
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from streams.entropy import GRID, Entropy

TRIALS_IN_PIECE: Final = 2**8


@dataclass(frozen=True, slots=True)
class GeometricNoise:
    """Two-sided geometric noise.

    Parameters
    ----------
    threshold : int
        `alpha` in units of ``2**-64``: a trial goes on if its word is below.
    """

    threshold: int

    def __post_init__(self) -> None:
        if type(self.threshold) is not int:
            raise TypeError("a threshold is a whole number")
        if not 0 < self.threshold < GRID:
            raise ValueError("alpha is above 0 and below 1")

    @property
    def alpha(self) -> Fraction:
        """The ratio of the probabilities of two neighbouring values."""
        return Fraction(self.threshold, GRID)

    @property
    def rate(self) -> float:
        """``-ln(alpha)``: what one unit of difference loses."""
        return (
            -math.log(self.alpha)
            if self.alpha < Fraction(1, 2)
            else -math.log1p(-float(1 - self.alpha))
        )

    @property
    def variance(self) -> Fraction:
        """The variance, exact."""
        return 2 * self.alpha / (1 - self.alpha) ** 2

    def draw(self, entropy: Entropy) -> int:
        """Draw one value: the difference of two geometric ones."""
        return self._geometric(entropy) - self._geometric(entropy)

    def _geometric(self, entropy: Entropy) -> int:
        """The number of trials before the first that fails."""
        passed = 0
        while True:
            failed = np.flatnonzero(entropy.words(TRIALS_IN_PIECE) >= np.uint64(self.threshold))
            if failed.size:
                return passed + int(failed[0])
            passed += TRIALS_IN_PIECE
