"""Optimised local hashing (OLH): hashes the true cell at random, and randomises the hash.

Wang, Blocki, Li and Jha (USENIX Security 2017), with a family of hashes that is exactly universal
and small. Cells are vectors of digits in the base of a prime ``g``, the number of buckets; a seed
is such a vector too, and the hash is their inner product modulo ``g``. Two different cells collide
for exactly one seed in ``g``, so that estimates are exactly unbiased. There are about as many seeds
as cells: the server counts answers ``seed * g + bucket`` in one array.

What comes of counts is one discrete Fourier transform along each digit.

The argument is in `proofs/channels.md` and `proofs/estimates.md`.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from local_dp.channels.channel import (
    Categorical,
    Floats,
    Matrix,
    check_enumerable,
    check_probability,
    largest_variance,
)
from local_dp.channels.randomised_response import rounded_ratio

N_CELLS_MAX = 2**16  # beyond, so many counts leave room for few buckets, and for little use
N_TALLIES_MAX = 2**22  # 32 MB of counts
N_BUCKETS_MAX = 251


@dataclass(frozen=True)
class LocalHashing(Categorical):
    """The hash by a random seed with probability `keep`, otherwise any bucket.

    Parameters
    ----------
    n_cells : int
    n_buckets : int
        A prime.
    keep : Fraction
        The probability of the true bucket, beside which it may also be drawn.

    Examples
    --------
    >>> LocalHashing(6, 3, Fraction(1, 2)).ratio
    Fraction(4, 1)
    """

    n_cells: int
    n_buckets: int
    keep: Fraction

    def __post_init__(self) -> None:
        check_probability(self.keep)
        if not 2 <= self.n_cells <= N_CELLS_MAX:  # noqa: PLR2004 - one cell says nothing
            raise ValueError(f"local hashing needs 2 to {N_CELLS_MAX} cells, not {self.n_cells}")
        if not 2 <= self.n_buckets <= N_BUCKETS_MAX or not _is_prime(self.n_buckets):  # noqa: PLR2004
            raise ValueError(f"the number of buckets must be a prime up to {N_BUCKETS_MAX}")
        if self.n_tallies > N_TALLIES_MAX:
            raise ValueError(f"{self.n_cells} cells with {self.n_buckets} buckets are too many")

    @classmethod
    def for_epsilon(cls, n_cells: int, epsilon_units: int) -> "LocalHashing":
        """The most useful number of buckets, and the truth as often as an epsilon allows.

        The variance is least near ``exp(epsilon) + 1`` buckets; of the primes, the best is taken.
        """
        ratio = rounded_ratio(epsilon_units)
        gain = ratio - 1
        fitting = [
            n_buckets
            for n_buckets in range(2, N_BUCKETS_MAX + 1)
            if _is_prime(n_buckets) and _n_tallies(n_cells, n_buckets) <= N_TALLIES_MAX
        ]
        best = min(fitting, key=lambda buckets: (gain + buckets) ** 2 / (buckets - 1))
        return cls(n_cells, best, gain / (gain + best))

    @property
    def n_digits(self) -> int:
        """How many digits a cell and a seed have."""
        return _n_digits(self.n_cells, self.n_buckets)

    @property
    def n_seeds(self) -> int:
        """How many hashes there are."""
        return int(self.n_buckets**self.n_digits)

    @property
    def n_tallies(self) -> int:
        """One for each seed and bucket."""
        return _n_tallies(self.n_cells, self.n_buckets)

    @property
    def ratio(self) -> Fraction:
        """``1 + p g / (1 - p)``: that of randomised response over the buckets, for every seed."""
        return 1 + self.keep * self.n_buckets / (1 - self.keep)

    @property
    def typical_variance(self) -> float:
        """Of a share, where shares are equal and are known to add up to 1; nearly."""
        share = 1 / self.n_cells
        rate = 1 / self.n_buckets + self._signal * share
        return (1 - share) * rate * (1 - rate) / self._signal**2

    def share_variance(self, share: float | None = None) -> float:
        """A bound, which is too large by about one part in the number of cells at most.

        Two cells collide for one seed in ``g``, three for one in ``g**2``, but on a common line for
        one in ``g``. How many cells are on lines through a cell is bounded, not counted.
        """
        n_cells, one = self.n_cells, 1 / self.n_buckets
        pairs = 1 / n_cells + (1 - 1 / n_cells) * one  # of the cells, in the bucket of a given one
        on_lines = (one - one**2) * min(self.n_buckets - 2, n_cells - 2)
        triples = 1 + (n_cells - 1) * (3 * one + (n_cells - 2) * one**2 + on_lines)
        squared = triples / n_cells**2  # of that part, its mean square
        both = (2 * one + (n_cells - 2) * one**2) / n_cells
        keep, signal = float(self.keep), self._signal
        fake = (1 - keep) * one * (1 - pairs)
        own = (keep * (1 - 2 * pairs + squared) + fake) / signal**2
        other = (keep * (one - 2 * both + squared) + fake) / signal**2
        return largest_variance(own, other, 1 / n_cells, share)

    def hashed(self, cell: int, seed: int) -> int:
        """The bucket of a cell: the inner product of digits, the last digit first."""
        total = 0
        while cell and seed:
            cell, digit = divmod(cell, self.n_buckets)
            seed, factor = divmod(seed, self.n_buckets)
            total += digit * factor
        return total % self.n_buckets

    def tallies_of(self, answer: int) -> tuple[int, ...]:
        """The seed and bucket that were answered."""
        if not 0 <= answer < self.n_tallies:
            raise ValueError(f"an answer must be from 0 to {self.n_tallies - 1}, not {answer}")
        return (answer,)

    def matrix(self) -> Matrix:
        """A column for each seed and bucket."""
        check_enumerable(self.n_cells * self.n_tallies)
        fake = (1 - self.keep) / self.n_buckets
        return [
            [
                (fake + self.keep * (self.hashed(cell, seed) == bucket)) / self.n_seeds
                for seed in range(self.n_seeds)
                for bucket in range(self.n_buckets)
            ]
            for cell in range(self.n_cells)
        ]

    def rates(self, shares: Floats) -> Floats:
        """``((1 - p) / g + p X) / n_seeds``, with `X` the share of cells in each bucket."""
        in_buckets = self._in_buckets(shares[:, np.newaxis])[:, 0]
        rates: Floats = float(1 - self.keep) / self.n_buckets + float(self.keep) * in_buckets
        return rates / self.n_seeds

    def adjoint(self, values: Floats) -> Floats:
        """``((1 - p) / g * total + p * support) / n_seeds`` of each cell.

        `total` is the sum of all values, `support` the sum of the values that support the cell.
        """
        fake = float(1 - self.keep) / self.n_buckets * float(values.sum())
        return (fake + float(self.keep) * self.supports(values)) / self.n_seeds

    def inverted(self, rates: Floats) -> Floats:
        """``(support - 1 / g) / (p (1 - 1 / g))``, moved by a constant so that the sum is 1."""
        raw = (self.supports(rates) - 1 / self.n_buckets) / self._signal
        return np.asarray(raw + (1 - raw.sum()) / self.n_cells)

    def contributions(self, coefficients: Floats) -> Floats:
        """The sum of ``c - mean c`` over the cells in the bucket, over ``p (1 - 1 / g)``.

        Without the mean, which is known as shares add up to 1; see `UnaryEncoding.contributions`.
        """
        return self._in_buckets(coefficients - coefficients.mean(axis=0)) / self._signal

    def constants(self, coefficients: Floats) -> Floats:
        """The mean coefficient."""
        return np.asarray(coefficients.mean(axis=0))

    def supports(self, counts: Floats | NDArray[np.int64]) -> Floats:
        """For each cell, how many of the counted answers have it in their bucket.

        The adjoint of the sums over buckets, with one transform for all cells.
        """
        n_buckets, scaled = self.n_buckets, _scaled_seeds(self.n_buckets, self.n_digits)
        waves = np.fft.fft(counts.reshape(self.n_seeds, n_buckets), axis=1)
        gathered = np.zeros(self.n_seeds, dtype=np.complex128)
        for frequency in range(1, n_buckets):
            # A seed times a frequency that is not 0 is another seed, each once.
            gathered[scaled[frequency]] += waves[:, frequency]
        shape = (n_buckets,) * self.n_digits
        back = np.fft.ifftn(gathered.reshape(shape)).real.ravel() * self.n_seeds
        found: Floats = (counts.sum() + back[: self.n_cells]) / n_buckets
        return found

    @property
    def _signal(self) -> float:
        """How much more often a cell is in the answered bucket if it is the true one."""
        return float(self.keep * (1 - Fraction(1, self.n_buckets)))

    def _in_buckets(self, values: Floats) -> Floats:
        """For each seed and bucket, the sum of values over the cells in it; (n_tallies, ...)."""
        n_buckets, scaled = self.n_buckets, _scaled_seeds(self.n_buckets, self.n_digits)
        padded = np.zeros((self.n_seeds, values.shape[1]))
        padded[: self.n_cells] = values
        shape = (n_buckets,) * self.n_digits
        waves = np.fft.fftn(padded.reshape(*shape, -1), axes=tuple(range(self.n_digits))).reshape(
            self.n_seeds, -1
        )
        # Values are real, so that half of the frequencies say what the others are.
        by_seed = waves[scaled[: n_buckets // 2 + 1].T]  # (n_seeds, frequencies, queries)
        return np.fft.irfft(by_seed, n_buckets, axis=1).reshape(self.n_tallies, -1)


@lru_cache(maxsize=16)
def _scaled_seeds(n_buckets: int, n_digits: int) -> NDArray[np.int64]:
    """For each frequency and seed, the seed whose digits are multiplied by it modulo ``g``."""
    seeds = np.arange(n_buckets**n_digits)
    frequencies = np.arange(n_buckets)[:, np.newaxis]
    scaled = np.zeros((n_buckets, seeds.size), dtype=np.int64)
    for place in (n_buckets**digit for digit in range(n_digits)):
        scaled += (seeds // place % n_buckets * frequencies % n_buckets) * place
    scaled.flags.writeable = False
    return scaled


def _n_digits(n_cells: int, n_buckets: int) -> int:
    digits, reached = 1, n_buckets
    while reached < n_cells:
        digits, reached = digits + 1, reached * n_buckets
    return digits


def _n_tallies(n_cells: int, n_buckets: int) -> int:
    return int(n_buckets ** (_n_digits(n_cells, n_buckets) + 1))


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))
