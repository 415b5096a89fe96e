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
from scipy.special import ndtri

from cube.cached import cached_property
from cube.pace import checkpoint
from streams.estimator import estimated_density, mean_squared_error
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
    The noisy number of ones grows stochastically with the number of users, so each end is where
    a monotone function crosses. With buckets, the law of the number of occupied ones is part of the
    law (windows.py).
    """
    _check_confidence(confidence)
    n_bits, most = population.n_bits, population.n_users_max
    outer = (1 - confidence) / 2 - LAW_ERROR
    density = estimated_density(noisy_ones, n_bits, mechanism)
    deviation = math.sqrt(mean_squared_error(mechanism, n_bits))
    guess = population.users(density)
    spread = (population.users(density + deviation) - population.users(density - deviation)) / 2

    def law(n_users: int) -> OnesLaw:
        return ones_law(mechanism, n_bits, population.occupied(n_users))

    def holds_from(n_users: int) -> float:
        return _normal_place(law(n_users).probability_at_least(noisy_ones)) - _normal_place(outer)

    def too_many(n_users: int) -> float:
        return _normal_place(outer) - _normal_place(law(n_users).probability_at_most(noisy_ones))

    low = min(most, _crossing(holds_from, most, guess, spread))
    beyond = _crossing(too_many, most, guess, spread)
    if beyond > most and not population.is_known:
        return CountInterval(low, math.inf, confidence)
    return CountInterval(low, max(low, beyond - 1), confidence)


def _crossing(margin: Callable[[int], float], most: int, guess: float, spread: float) -> int:
    """The least number from 0 to `most` with a margin above 0, or ``most + 1``.

    Notes
    -----
    The margin grows by about 1 for each `spread`, so secants come close in a few steps. Every third
    step halves what is left, and the end is two neighbours on either side of 0.
    """
    low, high = -1, most + 1
    place, last = guess, (math.nan, math.nan)
    step = 0
    while high - low > 1:
        checkpoint()
        here = min(high - 1, max(low + 1, round(place)))
        found = margin(here)
        if found > 0:
            high = here
        else:
            low = here
        step += 1
        slope = (found - last[1]) / (here - last[0]) if here != last[0] else math.nan
        if step == 1:
            slope = 1 / max(spread, 1.0)
        last = (here, found)
        place = here - found / slope if slope > 0 and step % 3 else (low + high) / 2
    return high


def _normal_place(probability: float) -> float:
    """The place of a probability on a normal law, where the margins are nearly straight lines."""
    return float(ndtri(min(1 - LAW_ERROR, max(LAW_ERROR, probability))))


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
        state = self.mechanism.state
        densities = (law.values - float(n_bits * state.p0)) / float(n_bits * state.separation)
        users = [self.population.users(float(density)) for density in densities]
        return np.array(users) - self.n_users, law.at_most


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1 - 1e-6:
        raise ValueError("a confidence is above 0 and below 0.999999")
