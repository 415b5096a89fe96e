"""K-ary randomised response: gives the true cell with a known probability, or a random one.

The fake-answer table has whole weights, all of them positive: a cell of weight 0 would make its
answer a proof. (The published protocol renews its table so that its smallest cell is exactly 0.)

The argument is in `proofs/channels.md`.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cube.exponential import exp_below
from local_dp.channels.channel import (
    Categorical,
    Floats,
    Matrix,
    check_enumerable,
    check_probability,
    largest_variance,
)

RATIO_BITS = 24  # exp(epsilon) is rounded down to so many bits behind the point
N_CELLS_MAX = 2**16
WEIGHTS_MAX = 2**20  # the sum of a table: with these limits, every integer sent stays below 2**53


@dataclass(frozen=True)
class RandomisedResponse(Categorical):
    """The true cell with probability `keep`, otherwise one drawn by weight.

    Parameters
    ----------
    weights : tuple of int
        Of the fake answers, one for each cell, at least 1.
    keep : Fraction
        The probability of the truth, beside which it may also be drawn.

    Examples
    --------
    >>> RandomisedResponse.uniform(2, Fraction(1, 2)).ratio
    Fraction(3, 1)
    """

    weights: tuple[int, ...]
    keep: Fraction

    def __post_init__(self) -> None:
        check_probability(self.keep)
        if not 2 <= len(self.weights) <= N_CELLS_MAX:  # noqa: PLR2004 - one cell says nothing
            raise ValueError(
                f"a combination must have 2 to {N_CELLS_MAX} cells, not {len(self.weights)}"
            )
        if any(type(weight) is not int or weight < 1 for weight in self.weights):
            raise ValueError("the weight of every fake answer must be an integer of at least 1")
        if sum(self.weights) > WEIGHTS_MAX:
            raise ValueError(f"the weights of fake answers add up to more than {WEIGHTS_MAX}")

    @classmethod
    def uniform(cls, n_cells: int, keep: Fraction) -> "RandomisedResponse":
        """Fake answers of equal weight."""
        return cls((1,) * n_cells, keep)

    @classmethod
    def for_epsilon(cls, weights: tuple[int, ...], epsilon_units: int) -> "RandomisedResponse":
        """The largest probability of the truth that loses no more than an epsilon.

        ``(r - 1) t / (1 + (r - 1) t)``, for ``r`` the exponential of epsilon, rounded down, and
        ``t`` the smallest probability of a fake answer.
        """
        gain = rounded_ratio(epsilon_units) - 1
        odds = gain * Fraction(min(weights), sum(weights))
        return cls(tuple(weights), odds / (1 + odds))

    @property
    def n_cells(self) -> int:
        """The number of true cells."""
        return len(self.weights)

    @property
    def n_tallies(self) -> int:
        """One for each cell."""
        return len(self.weights)

    @property
    def ratio(self) -> Fraction:
        """``1 + p / ((1 - p) t)``: of the rarest fake answer, between true and fake."""
        return 1 + self.keep / ((1 - self.keep) * Fraction(min(self.weights), sum(self.weights)))

    @property
    def typical_variance(self) -> float:
        """``(1/K) (1 - 1/K) / p**2``: with equal fakes, whatever the table.

        So blocks whose tables were made of earlier answers have weights that were not.
        """
        rate = 1 / self.n_cells
        return rate * (1 - rate) / float(self.keep) ** 2

    def share_variance(self, share: float | None = None) -> float:
        """``r (1 - r) / p**2`` for the rate `r` of the cell's answer, or the `r` nearest to 1/2."""
        keep = float(self.keep)
        fakes = float(1 - self.keep) * self._fakes
        return largest_variance((keep + fakes) / keep**2, fakes / keep**2, -fakes / keep, share)

    def tallies_of(self, answer: int) -> tuple[int, ...]:
        """The cell that was answered."""
        if not 0 <= answer < self.n_cells:
            raise ValueError(f"an answer must be a cell from 0 to {self.n_cells - 1}, not {answer}")
        return (answer,)

    def matrix(self) -> Matrix:
        """``p [v = w] + (1 - p) T[w]``."""
        check_enumerable(self.n_cells**2)
        total = sum(self.weights)
        fakes = [(1 - self.keep) * Fraction(weight, total) for weight in self.weights]
        return [
            [fake + self.keep * (true == cell) for cell, fake in enumerate(fakes)]
            for true in range(self.n_cells)
        ]

    def rates(self, shares: Floats) -> Floats:
        """``p x + (1 - p) T``."""
        return float(self.keep) * shares + float(1 - self.keep) * self._fakes

    def adjoint(self, values: Floats) -> Floats:
        """``p v + (1 - p) T v``."""
        return float(self.keep) * values + float(1 - self.keep) * float(self._fakes @ values)

    def inverted(self, rates: Floats) -> Floats:
        """``(r - (1 - p) T) / p``."""
        return (rates - float(1 - self.keep) * self._fakes) / float(self.keep)

    def contributions(self, coefficients: Floats) -> Floats:
        """``c / p``."""
        return coefficients / float(self.keep)

    def constants(self, coefficients: Floats) -> Floats:
        """``-(1 - p) / p`` of the query on the table of fakes."""
        return -float((1 - self.keep) / self.keep) * (self._fakes @ coefficients)

    @property
    def _fakes(self) -> Floats:
        weights = np.array(self.weights, dtype=np.float64)
        return np.asarray(weights / weights.sum())


def rounded_ratio(epsilon_units: int) -> Fraction:
    """The exponential of an epsilon, rounded down to few bits; ValueError if that leaves 1."""
    below = exp_below(epsilon_units)
    ratio = Fraction((below.numerator << RATIO_BITS) // below.denominator, 1 << RATIO_BITS)
    if ratio <= 1:
        raise ValueError(
            f"epsilon is {epsilon_units} units of 2**-40, which is too small for a channel"
        )
    return ratio
