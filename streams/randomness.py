"""Draws the bits of a stream and the noise of its release exactly, from random words.

Random words come from the operating system, in large pieces. There is no seed to pass, and no
generator whose state an intruder could find and run backwards. Tests pass another source of the
same shape.

The law of a bit is what is stored for a user who is present, and for one who is not. A stored bit
is 1 with probability `p1` if its user is present, and `p0 = 1 - p1` if not. Both are exact: whole
numbers of ``2**-64``, which a comparison of one random word draws without error. Of all pairs that
lose at most an epsilon, this one tells the two apart best (proofs/pan_privacy.md, "Why one half");
no other can be asked for.

The noise of a release is a two-sided geometric variable that is added to the number of ones:
``Pr(z) = (1 - alpha) / (1 + alpha) * alpha**|z|`` with `alpha` a whole number of ``2**-64``. What
it costs together with a state: mechanism.py. Proof: proofs/pan_privacy.md, "Drawing the noise".
"""

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from cube.exponential import EPSILON_MAX, decided, epsilon_units_of

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


@dataclass(frozen=True, slots=True)
class TwoPoint:
    """The law of the bits of a state.

    Parameters
    ----------
    threshold : int
        A word below it is a 1 for a user who is present. More than half of ``2**64``.

    Examples
    --------
    >>> law = TwoPoint.for_epsilon(Fraction(1, 10))
    >>> round(float(law.p1), 6), law.odds <= Fraction("1.1051709180756477")
    (0.524979, True)
    """

    threshold: int

    def __post_init__(self) -> None:
        if type(self.threshold) is not int:
            raise TypeError("a threshold must be an integer")
        if not GRID // 2 < self.threshold < GRID:
            raise ValueError(
                "the probability of a 1 for a present user must be above 1/2 and below 1"
            )

    @classmethod
    def for_epsilon(cls, epsilon: Fraction) -> "TwoPoint":
        """The largest `p1` on the grid whose odds are at most ``e**epsilon``."""
        if not 0 < epsilon <= EPSILON_MAX:
            raise ValueError(f"epsilon must be above 0 and at most {EPSILON_MAX}")
        return cls(decided(epsilon, lambda power: int(GRID * power / (1 + power))))

    @property
    def p1(self) -> Fraction:
        """The probability of a 1 for a user who is present."""
        return Fraction(self.threshold, GRID)

    @property
    def p0(self) -> Fraction:
        """The probability of a 1 for a user who is not."""
        return 1 - self.p1

    @property
    def separation(self) -> Fraction:
        """By how much presence raises the probability of a 1."""
        return self.p1 - self.p0

    @property
    def odds(self) -> Fraction:
        """The largest ratio of probabilities of a state, of any two streams that differ in a user.

        Its logarithm is what the state alone loses.
        """
        return self.p1 / self.p0

    @property
    def epsilon_units(self) -> int:
        """What the state alone loses, in units of epsilon, rounded up."""
        return epsilon_units_of(self.odds)


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
            raise TypeError("a threshold must be an integer")
        if not 0 < self.threshold < GRID:
            raise ValueError("alpha must lie strictly between 0 and 1")

    @property
    def alpha(self) -> Fraction:
        """The ratio of the probabilities of two neighbouring values."""
        return Fraction(self.threshold, GRID)

    @property
    def rate(self) -> float:
        """``-ln(alpha)``: the privacy loss for one unit of difference."""
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
