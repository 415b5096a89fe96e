"""Intervals for the number of users, by the exact law; and the law of an estimate's error.

An interval holds every number of users that a test would not reject: those for which what was
released is not in the outer ``(1 - confidence) / 2`` of either side of its law. It covers the truth
with at least its confidence, for any number of users; no normal law, no Chebyshev.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.cached import cached_property
from streams.estimator import estimated_density
from streams.mechanism import Mechanism
from streams.ones_law import LAW_ERROR, OnesLaw, ones_law
from streams.population import Population


@dataclass(frozen=True, slots=True)
class CountInterval:
    """Numbers of users that agree with a release.

    Parameters
    ----------
    low : int
    high : float
        Infinite if every bucket may be occupied: then any larger number agrees as well.
    confidence : float
    """

    low: int
    high: float
    confidence: float


def count_interval(
    noisy_ones: int, population: Population, mechanism: Mechanism, confidence: float
) -> CountInterval:
    """The interval for the number of users.

    Notes
    -----
    The noisy number of ones grows stochastically with the number of users, so each end is found by
    bisection. With buckets, the law of the number of occupied ones is part of the law (windows.py).
    """
    _check_confidence(confidence)
    outer = (1 - confidence) / 2 - LAW_ERROR

    def law(n_users: int) -> OnesLaw:
        return ones_law(mechanism, population.n_bits, population.occupied(n_users))

    most = population.n_users_max
    low = _first(lambda n: law(n).probability_at_least(noisy_ones) > outer, most)
    beyond = _first(lambda n: law(n).probability_at_most(noisy_ones) <= outer, most)
    high = max(low, beyond - 1)
    if beyond > most > population.n_bits:  # of buckets alone there are fewer than users
        return CountInterval(low, math.inf, confidence)
    return CountInterval(min(low, most), min(high, most), confidence)


def _first(holds: Callable[[int], bool], most: int) -> int:
    """The least number from 0 to `most` from which on it holds, or ``most + 1``."""
    low, high = 0, most + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


@dataclass(frozen=True)
class ErrorLaw:
    """The law of the error of an estimated number of users, if so many are present.

    It is not quite symmetric; what it says of one side is the larger of both. It has the face of
    ``inference.noise_law.law.NoiseLaw``: as terms, it is one Gaussian of its standard deviation.

    Parameters
    ----------
    population : Population
    mechanism : Mechanism
    n_users : int
        For a plan, the number at which the error is largest: half of a universe.
    """

    population: Population
    mechanism: Mechanism
    n_users: int

    @property
    def scales(self) -> NDArray[np.float64]:
        """None: it is no sum of Laplace variables."""
        return np.empty(0)

    @property
    def gaussian(self) -> float:
        """Its root mean squared error, for who takes it as a Gaussian term."""
        errors, at_most = self._errors
        return math.sqrt(float(np.diff(at_most, prepend=0.0) @ errors**2))

    @property
    def tail_error(self) -> float:
        """Bound on the error of `tail`."""
        return LAW_ERROR

    def tail(self, z: float) -> float:
        """The probability of an error above `z`, or below ``-z``, whichever is larger."""
        if math.isnan(z):
            raise ValueError("a bound is a number")
        if z < 0:
            return 1.0 - self.tail(-z)
        above, below = self._sides(z)
        return max(above, below)

    def half_width(self, confidence: float) -> float:
        """The least `h` with an error beyond it in no more than ``1 - confidence`` of cases."""
        _check_confidence(confidence)
        errors, _ = self._errors
        sizes = np.unique(np.abs(errors))
        low, high = 0, sizes.size - 1
        while low < high:
            middle = (low + high) // 2
            if sum(self._sides(float(sizes[middle]))) <= 1 - confidence - LAW_ERROR:
                high = middle
            else:
                low = middle + 1
        return float(sizes[low])

    def _sides(self, z: float) -> tuple[float, float]:
        """The probabilities of an error above `z`, and of one below ``-z``."""
        errors, at_most = self._errors
        not_above = int(np.searchsorted(errors, z, side="right"))
        below = int(np.searchsorted(errors, -z, side="left"))
        return (
            1.0 - float(at_most[not_above - 1]) if not_above else 1.0,
            float(at_most[below - 1]) if below else 0.0,
        )

    @cached_property
    def _errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Errors in growing order, and the probability of at most each."""
        n_bits = self.population.n_bits
        law = ones_law(self.mechanism, n_bits, self.population.occupied(self.n_users))
        users = [
            self.population.users(estimated_density(int(ones), n_bits, self.mechanism))
            for ones in law.values
        ]
        return np.array(users) - self.n_users, law.at_most


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1 - 1e-6:
        raise ValueError("a confidence is above 0 and below 0.999999")
