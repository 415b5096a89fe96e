"""Defines a channel, and computes the exact privacy loss of any finite channel by enumeration.

A channel maps the true cell of a combination to an answer, a whole number. The server keeps only
tallies: how many answers counted at each place. All probabilities are rationals; the numerical
methods, which estimates are made of, use floats.

`ratio_of_channel` is the oracle that every channel's own `ratio` is tested against.

The argument is in `proofs/channels.md`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.exponential import epsilon_units_of
from cube.measurement import UNITS_PER_EPSILON

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = Sequence[Sequence[Fraction]]

N_ENUMERATED_MAX = 2**20  # entries of a matrix that is written out


class Channel(Protocol):
    """A randomised map from the cells of a combination to answers."""

    @property
    def n_cells(self) -> int:
        """The number of true cells."""

    @property
    def n_tallies(self) -> int:
        """The number of places at which answers are counted."""

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one answer under two true cells, exactly."""

    @property
    def is_categorical(self) -> bool:
        """Whether every answer counts at exactly one place."""

    @property
    def typical_variance(self) -> float:
        """Of one answer's part in the estimated share of a cell, the mean where shares are equal.

        The mean over all cells is largest there; that of a single cell is not (`share_variance`). A
        fact about the channel, so that weights and choices made of it depend on no answer.
        """

    def share_variance(self, share: float | None = None) -> float:
        """The largest variance of one answer's part in the estimated share of a cell.

        The largest over all cells, and over all shares of the other cells. `share` is the share of
        the cell; without it, the largest over all shares of the cell. As in `variances`, it
        includes the drawing of respondents from a population.
        """

    def tallies_of(self, answer: int) -> tuple[int, ...]:
        """The places at which an answer counts; ValueError if it is no answer of the channel."""

    def matrix(self) -> Matrix:
        """The probability of each answer (columns) for each true cell (rows); small channels."""

    def rates(self, shares: Floats) -> Floats:
        """The expected part of the answers that count at each place, (n_tallies,)."""

    def adjoint(self, values: Floats) -> Floats:
        """For each true cell, the expected sum of values over the places of its answer."""

    def inverted(self, rates: Floats) -> Floats:
        """The shares whose expected rates these are: unbiased, they add up to 1, may be negative.

        Where rates are no channel's, those of the least noise; see `contributions`.
        """

    def contributions(self, coefficients: Floats) -> Floats:
        """What an answer at each place adds to the estimates of linear queries of the shares.

        Parameters
        ----------
        coefficients : (n_cells, n_queries) ndarray

        Returns
        -------
        (n_tallies, n_queries) ndarray
            The mean over answers of the sum over their places, plus `constants`, is unbiased.
        """

    def constants(self, coefficients: Floats) -> Floats:
        """What is added to the mean contribution of each query, (n_queries,)."""

    def variances(self, coefficients: Floats, rates: Floats) -> Floats:
        """The variance of one answer's contribution to each query, where `rates` hold."""

    def moments(self, coefficients: Floats, rates: Floats) -> tuple[Floats, Floats]:
        """The variances, and the absolute third moments about the mean, of one answer's parts.

        The latter are summed over the independent parts of an answer, where it has some: that is
        what the distance of a mean of many answers from the normal law depends on.
        """


def ratio_of_channel(matrix: Matrix) -> Fraction | float:
    """The largest ratio of two entries of a column; ``inf`` if one is 0 and another is not.

    Columns of zeros are answers that are never given, and are left out.

    Examples
    --------
    A fair coin decides between the truth and a second fair coin.

    >>> ratio_of_channel([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    Fraction(3, 1)
    """
    check_matrix(matrix)
    largest = Fraction(1)
    for column in zip(*matrix, strict=True):
        most, least = max(column), min(column)
        if most == 0:
            continue
        if least == 0:
            return math.inf
        largest = max(largest, most / least)
    return largest


def eps_of_channel(matrix: Matrix) -> Fraction | float:
    """The exact privacy loss of a channel: the logarithm of `ratio_of_channel`.

    Rounded up to a multiple of 2**-40; ``inf`` for a channel that can prove a cell.
    """
    ratio = ratio_of_channel(matrix)
    if not isinstance(ratio, Fraction):
        return ratio
    return Fraction(epsilon_units_of(ratio), UNITS_PER_EPSILON)


def largest_variance(
    own: Floats | float, other: Floats | float, constant: Floats | float, share: float | None
) -> float:
    """The largest variance of one answer's part in the estimated share of a cell.

    The second moment of a contribution is linear in shares, and its mean is the share less the
    constant. So the variance is ``x own + (1 - x) other - (x - constant)**2``, a parabola in the
    share `x`, whose top is in closed form. Where an answer names the cell or does not, the top is
    where it does so at a rate of one half.

    Parameters
    ----------
    own : float or (n_cells,) ndarray
        The second moment if the true cell is this one.
    other : float or (n_cells,) ndarray
        The largest second moment if it is another one.
    constant : float or (n_cells,) ndarray
        What is added to the mean contribution.
    share : float, optional
        At this share; at the least favourable one, if it is left out.
    """
    shares = np.clip(constant + (own - other) / 2, 0.0, 1.0) if share is None else share
    return float(np.max(shares * own + (1 - shares) * other - (shares - constant) ** 2))


def check_matrix(matrix: Matrix) -> None:
    """Raise ValueError unless every row is a distribution over the same answers, exactly."""
    if not matrix or len({len(row) for row in matrix}) != 1:
        raise ValueError("a channel must have rows of equal length")
    if not all(isinstance(entry, Fraction | int) for row in matrix for entry in row):
        raise TypeError("a channel's probabilities must be Fractions, not floats")
    if any(min(row) < 0 or sum(row) != 1 for row in matrix):
        raise ValueError("a row of a channel does not add up to 1, or has a negative probability")


def check_enumerable(n_entries: int) -> None:
    """Raise ValueError for a matrix that is too large to be written out."""
    if n_entries > N_ENUMERATED_MAX:
        raise ValueError(f"a matrix of {n_entries} probabilities is too large to write out")


def check_probability(probability: Fraction) -> None:
    """Raise unless a probability is exact, and strictly between 0 and 1."""
    if not isinstance(probability, Fraction):
        raise TypeError("a probability must be a Fraction, not a float")
    if not 0 < probability < 1:
        raise ValueError(f"a probability must lie strictly between 0 and 1, not {probability}")


class Categorical(ABC):
    """A channel each of whose answers counts at one place: the moments of a single draw."""

    @property
    def is_categorical(self) -> bool:
        """An answer counts at one place."""
        return True

    @abstractmethod
    def contributions(self, coefficients: Floats) -> Floats:
        """What an answer at each place adds to each query; see `Channel`."""

    def variances(self, coefficients: Floats, rates: Floats) -> Floats:
        """Of one draw from the rates; about the mean, so that nothing cancels."""
        return np.asarray(rates @ self._deviations(coefficients, rates) ** 2)

    def moments(self, coefficients: Floats, rates: Floats) -> tuple[Floats, Floats]:
        """Of one draw from the rates, whose contributions are found once."""
        deviations = self._deviations(coefficients, rates)
        squares = deviations**2
        return np.asarray(rates @ squares), np.asarray(rates @ (squares * np.abs(deviations)))

    def _deviations(self, coefficients: Floats, rates: Floats) -> Floats:
        """How far each place's contribution is from the mean."""
        contributions = self.contributions(coefficients)
        return np.asarray(contributions - rates @ contributions)
