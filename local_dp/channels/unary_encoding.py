"""Optimised unary encoding (OUE): sends a bit for each cell, each randomised by itself.

Wang, Blocki, Li and Jha (USENIX Security 2017). The bit of the true cell is 1 with probability one
half, every other with a smaller one. An answer is the whole number whose bits these are; the
server keeps how often each bit was 1.

The argument is in `proofs/channels.md`.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cube.exponential import exp_below
from local_dp.channels.channel import Floats, Matrix, check_enumerable, largest_variance

COIN_BITS = 32  # the probability of a false bit is a multiple of 2**-32
N_CELLS_MAX = 2**12  # an answer of 512 bytes; local hashing has short answers


@dataclass(frozen=True)
class UnaryEncoding:
    """The bit of the true cell is 1 with probability 1/2, any other with probability `noise`.

    Parameters
    ----------
    n_cells : int
    noise : Fraction
        Below one half, with a denominator that divides 2**32.

    Examples
    --------
    >>> UnaryEncoding(3, Fraction(1, 4)).ratio
    Fraction(3, 1)
    """

    n_cells: int
    noise: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.n_cells <= N_CELLS_MAX:  # noqa: PLR2004 - one cell says nothing
            raise ValueError(f"unary encoding needs 2 to {N_CELLS_MAX} cells, not {self.n_cells}")
        if not isinstance(self.noise, Fraction):
            raise TypeError("a probability must be a Fraction, not a float")
        if not 0 < self.noise < Fraction(1, 2) or 2**COIN_BITS % self.noise.denominator:
            raise ValueError(f"the noise must be a multiple of 2**-32 below 1/2, not {self.noise}")

    @classmethod
    def for_epsilon(cls, n_cells: int, epsilon_units: int) -> "UnaryEncoding":
        """The least noise that loses no more than an epsilon: ``1 / (exp(epsilon) + 1)``, up."""
        exact = Fraction(1 << COIN_BITS) / (exp_below(epsilon_units) + 1)
        units = -(-exact.numerator // exact.denominator)
        if 2 * units >= 1 << COIN_BITS:
            raise ValueError(
                f"epsilon is {epsilon_units} units of 2**-40, which is too small for a channel"
            )
        return cls(n_cells, Fraction(units, 1 << COIN_BITS))

    @property
    def n_tallies(self) -> int:
        """One for each cell's bit."""
        return self.n_cells

    @property
    def ratio(self) -> Fraction:
        """``(1 - q) / q``: two bits differ between two cells, and at the true one 1/2 cancels."""
        return (1 - self.noise) / self.noise

    @property
    def is_categorical(self) -> bool:
        """An answer may count for several cells, or for none."""
        return False

    @property
    def typical_variance(self) -> float:
        """Of a share, where shares are equal and are known to add up to 1."""
        share = 1 / self.n_cells
        rate = self._noise + self._signal * share
        return (1 - share) * (rate * (1 - rate) / self._signal**2 + share**2)

    def share_variance(self, share: float | None = None) -> float:
        """As `covariance`, where ``r (1 - r) / (1/2 - q)**2 + x**2`` is linear in the share."""
        constant = 1 / self.n_cells
        noise = self._noise * (1 - self._noise) / self._signal**2 * (1 - constant)
        own, other = noise + 2 * (1 - constant) ** 2, noise + 2 * constant**2
        return largest_variance(own, other, constant, share)

    def tallies_of(self, answer: int) -> tuple[int, ...]:
        """The cells whose bits are 1."""
        if not 0 <= answer < 1 << self.n_cells:
            raise ValueError(f"an answer must have one bit for each of {self.n_cells} cells")
        return tuple(cell for cell in range(self.n_cells) if answer >> cell & 1)

    def matrix(self) -> Matrix:
        """A column for each set of bits."""
        check_enumerable(self.n_cells << self.n_cells)
        return [
            [self._probability(answer, true) for answer in range(1 << self.n_cells)]
            for true in range(self.n_cells)
        ]

    def _probability(self, answer: int, true: int) -> Fraction:
        n_false = (answer & ~(1 << true)).bit_count()
        clear = self.n_cells - 1 - n_false
        return self.noise**n_false * (1 - self.noise) ** clear / 2

    def rates(self, shares: Floats) -> Floats:
        """``q + (1/2 - q) x``."""
        return self._noise + self._signal * shares

    def adjoint(self, values: Floats) -> Floats:
        """``q`` of all values, and what the true cell's bit adds."""
        return self._noise * float(values.sum()) + self._signal * values

    def inverted(self, rates: Floats) -> Floats:
        """``(r - q) / (1/2 - q)``, moved by a constant so that the sum is 1."""
        raw = (rates - self._noise) / self._signal
        return np.asarray(raw + (1 - raw.sum()) / self.n_cells)

    def contributions(self, coefficients: Floats) -> Floats:
        """``(c - mean c) / (1/2 - q)``.

        Shares add up to 1, so that a constant in all coefficients is known without any answer; the
        mean is the constant whose removal leaves the least noise. So estimated shares add up to 1.
        """
        return np.asarray((coefficients - coefficients.mean(axis=0)) / self._signal)

    def constants(self, coefficients: Floats) -> Floats:
        """The mean coefficient; the noise adds the same to every bit, and cancels."""
        return np.asarray(coefficients.mean(axis=0))

    def variances(self, coefficients: Floats, rates: Floats) -> Floats:
        """Bits are independent given the true cell, so two of them have covariance ``-x x'``."""
        parts, shares = self._parts(coefficients, rates)
        weights = rates * (1 - rates) / self._signal**2 + shares**2
        return np.asarray(np.maximum(weights @ parts**2 - (shares @ parts) ** 2, 0.0))

    def moments(self, coefficients: Floats, rates: Floats) -> tuple[Floats, Floats]:
        """As `variances`; third moments of all bits, which are independent given the true cells."""
        of_bits = rates * (1 - rates) * (rates**2 + (1 - rates) ** 2)
        thirds = of_bits @ np.abs(self.contributions(coefficients)) ** 3
        return self.variances(coefficients, rates), np.asarray(thirds)

    def _parts(self, coefficients: Floats, rates: Floats) -> tuple[Floats, Floats]:
        shares = np.clip((rates - self._noise) / self._signal, 0.0, 1.0)
        return coefficients - coefficients.mean(axis=0), shares

    @property
    def _noise(self) -> float:
        return float(self.noise)

    @property
    def _signal(self) -> float:
        return float(Fraction(1, 2) - self.noise)
