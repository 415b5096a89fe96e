"""Estimates the number of users from a released number of ones, with an interval.

``(ones / n - p0) / (p1 - p0)`` is an unbiased estimate of the share of occupied places, whatever
the share; it is not cut off at 0 or 1, as that would bias it. Its mean squared error is known.

The law of a noisy number of ones, if so many users are present, is that of binomials, the sample
and the noise together. Their characteristic functions are multiplied and inverted on the whole
numbers: that is the convolution of the laws, and nothing is approximated by a normal law. What it
misses in any probability is at most `LAW_ERROR`: some 1e-15 for what lies outside the windows, and
the rounding of the transform.

Intervals are by the exact law, and so is the law of an estimate's error. An interval holds every
number of users that a test would not reject: those for which what was released is not in the outer
``(1 - confidence) / 2`` of either side of its law. It covers the truth with at least its
confidence, for any number of users; no normal law, no Chebyshev.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cube.pace import checkpoint
from cube.runtime import cached_property
from streams.mechanism import Mechanism
from streams.population import Population
from streams.randomness import GeometricNoise
from streams.windows import EXPONENT_CUT, Window, reach

LAW_ERROR: Final = 1e-9  # far above what is seen
NEGLIGIBLE: Final = -46.0  # a logarithm: such factors of a transform change nothing by 1e-15
N_TERMS_AT_ONCE: Final = 2**21
TILTS: Final = np.linspace(0.05, 0.95, 19)  # of Markov's inequality, in units of the rate


@dataclass(frozen=True, slots=True, eq=False)
class OnesLaw:
    """The law of the noisy number of ones.

    Parameters
    ----------
    start : int
        The first number of the window.
    at_most : (n,) ndarray of float64
        The probability of at most each number of the window.
    """

    start: int
    at_most: NDArray[np.float64]

    @property
    def values(self) -> NDArray[np.int64]:
        """The numbers of the window."""
        return np.arange(self.start, self.start + self.at_most.size)

    def probability_at_most(self, ones: int) -> float:
        """The probability of so many ones or fewer, to `LAW_ERROR`."""
        place = ones - self.start
        if place < 0:
            return 0.0
        return float(self.at_most[min(place, self.at_most.size - 1)])

    def probability_at_least(self, ones: int) -> float:
        """The probability of so many ones or more, to `LAW_ERROR`."""
        return 1.0 - self.probability_at_most(ones - 1)


def ones_law(mechanism: Mechanism, n_bits: int, occupied: Window, n_servers: int = 1) -> OnesLaw:
    """The law of the noisy number of ones, for a law of the number of occupied places.

    Parameters
    ----------
    mechanism : Mechanism
    n_bits : int
        The places of one state.
    occupied : Window
        The law of the number of occupied places, of the states of all servers together.
    n_servers : int
        How many states there are, each of so many places and with a noise of its own.

    Notes
    -----
    A bit of an occupied place and one of an empty place have characteristic functions of the same
    modulus, as ``p0 = 1 - p1``; so the number of occupied places only turns the phase, by the
    angle between the two, and its own characteristic function at that angle is what is averaged.

    That one is computed only where it matters. The number of occupied places is a sum of
    independent indicators (windows.py), so at an angle `t` the modulus of its characteristic
    function is at most ``exp(-2 variance sin(t / 2)**2)``: of an indicator of probability `q`, its
    square is ``1 - 4 q (1 - q) sin(t / 2)**2``.
    """
    p0, p1 = float(mechanism.state.p0), float(mechanism.state.p1)
    alpha, left = float(mechanism.output.alpha), float(1 - mechanism.output.alpha)
    separation = float(mechanism.state.separation)
    n_places = n_servers * n_bits
    far = (
        reach(n_places * p0 * p1)
        + math.ceil(separation * reach(occupied.variance))
        + _reach_of_noise(mechanism.output, n_servers)
    )
    length = 1 << (2 * far + 2).bit_length()
    kept_at = round(occupied.mean)
    centre = round(n_places * p0 + kept_at * separation)
    angles = 2 * math.pi / length * np.arange(length // 2 + 1)
    chord = 4 * np.sin(angles / 2) ** 2
    log_modulus = n_places / 2 * np.log1p(-p0 * p1 * chord)
    log_modulus += n_servers * (2 * math.log(left) - np.log(left**2 + alpha * chord))
    empty_phase = np.arctan2(p0 * np.sin(angles), p1 + p0 * np.cos(angles))
    turn = np.arctan2(p1 * np.sin(angles), p0 + p1 * np.cos(angles)) - empty_phase
    of_occupied = -2 * occupied.variance * np.sin(turn / 2) ** 2
    kept = np.flatnonzero(log_modulus + of_occupied > NEGLIGIBLE)
    phase = n_places * empty_phase[kept] + kept_at * turn[kept] - centre * angles[kept]
    transform = np.zeros(angles.size, np.complex128)
    transform[kept] = np.exp(log_modulus[kept] - 1j * phase) * np.conj(
        _characteristic(occupied, kept_at, turn[kept])
    )
    law = np.fft.fftshift(np.fft.irfft(transform, length))
    return OnesLaw(centre - length // 2, np.clip(np.cumsum(law), 0.0, 1.0))


def _reach_of_noise(noise: GeometricNoise, n: int) -> int:
    """How far a sum of `n` noises goes, but for ``2 exp(-EXPONENT_CUT)`` of its law.

    Notes
    -----
    Of one, by its law. Of several by Markov's inequality for ``exp(t sum)``: the logarithm of the
    mean of ``exp(t z)`` is ``-log(1 - 4 alpha sinh(t / 2)**2 / (1 - alpha)**2)``, for `t` below the
    rate.
    """
    far = n * EXPONENT_CUT / noise.rate
    if n > 1:
        t = noise.rate * TILTS
        of_chord = 4 * float(noise.alpha) / float(1 - noise.alpha) ** 2
        cumulant = -np.log1p(-of_chord * np.sinh(t / 2) ** 2)
        far = min(far, float(((EXPONENT_CUT + n * cumulant) / t).min()))
    return math.ceil(far)


def _characteristic(law: Window, about: int, angles: NDArray[np.float64]) -> NDArray[np.complex128]:
    """The characteristic function of a number less `about`.

    Notes
    -----
    The numbers are laid out in rows of about as many as there are rows: then only those of a first
    row and a first column have to be turned by each angle, and the rest is one product of matrices.
    """
    width = max(1, math.isqrt(law.weights.size))
    n_rows = -(-law.weights.size // width)
    weights = np.zeros(n_rows * width)
    weights[: law.weights.size] = law.weights
    across = np.arange(width, dtype=np.float64)
    down = law.start - about + width * np.arange(n_rows, dtype=np.float64)
    found = np.empty(angles.size, np.complex128)
    step = max(1, N_TERMS_AT_ONCE // n_rows)
    for begin in range(0, angles.size, step):
        checkpoint()
        piece = angles[begin : begin + step]
        rows = np.exp(1j * np.outer(piece, across)) @ weights.reshape(n_rows, width).T
        found[begin : begin + step] = (rows * np.exp(1j * np.outer(piece, down))).sum(axis=1)
    return found


def estimated_density(
    noisy_ones: int, n_bits: int, mechanism: Mechanism, n_servers: int = 1
) -> float:
    """The unbiased estimate of the share of occupied places.

    Of several servers, it is that of the users with a place who came to one of them.
    """
    state = mechanism.state
    return float((noisy_ones - n_servers * n_bits * state.p0) / (n_bits * state.separation))


def mean_squared_error(
    mechanism: Mechanism,
    n_bits: int,
    *,
    universe: int | None = None,
    density: float = 0.5,
    n_servers: int = 1,
) -> float:
    """The mean squared error of an estimated density, exact.

    Parameters
    ----------
    mechanism : Mechanism
    n_bits : int
    universe : int, optional
        Of a sample without replacement: the number of users it is from. Without it, or if all of
        them have a bit, the error comes from the noise alone, whatever the density.
    density : float
        The share of the universe that is present; half of it is the worst for a sample.
    n_servers : int
        How many states and noises are added; their users are disjoint, and the sample is one.
    """
    scale = n_bits * mechanism.state.separation
    noise = float(n_servers * mechanism.variance_of_ones(n_bits) / scale**2)
    if universe is None or universe <= n_bits:
        return noise
    of_sample = density * (1 - density) / n_bits * (universe - n_bits) / (universe - 1)
    return noise + of_sample


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
    noisy_ones: int,
    population: Population,
    mechanism: Mechanism,
    confidence: float,
    n_servers: int = 1,
) -> CountInterval:
    """The interval for the number of users, of several servers if their numbers were added.

    Notes
    -----
    The noisy number of ones grows stochastically with the number of users, so each end is where
    a monotone function crosses. With buckets, the law of the number of occupied ones is part of the
    law (windows.py).
    """
    check_confidence(confidence)
    n_bits, most = population.n_bits, population.n_users_max
    outer = (1 - confidence) / 2 - LAW_ERROR
    density = estimated_density(noisy_ones, n_bits, mechanism, n_servers)
    deviation = math.sqrt(mean_squared_error(mechanism, n_bits, n_servers=n_servers))
    guess = population.users(density)
    spread = (population.users(density + deviation) - population.users(density - deviation)) / 2

    def law(n_users: int) -> OnesLaw:
        return ones_law(mechanism, n_bits, population.occupied(n_users), n_servers)

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


class LawOfErrors(ABC):
    """The law of an estimate's error, if what is estimated has a value.

    It is not quite symmetric, and the larger tail is used for both sides. It has the interface of
    ``inference.noise_law.law.NoiseLaw``: as terms, it is one Gaussian of its standard deviation.
    """

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
            raise ValueError("the argument of a tail must be a number, not NaN")
        if z < 0:
            return 1.0 - self.tail(-z)
        above, below = self._sides(z)
        return max(above, below)

    def half_width(self, confidence: float) -> float:
        """The least `h` with an error beyond it in no more than ``1 - confidence`` of cases."""
        check_confidence(confidence)
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

    @property
    @abstractmethod
    def _errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Errors in growing order, and the probability of at most each."""


@dataclass(frozen=True)
class ErrorLaw(LawOfErrors):
    """The law of the error of an estimated number of users, if so many are present.

    Parameters
    ----------
    population : Population
    mechanism : Mechanism
    n_users : int
        For a plan, the number at which the error is largest: half of a universe.
    n_servers : int
        How many releases were added.
    """

    population: Population
    mechanism: Mechanism
    n_users: int
    n_servers: int = 1

    @cached_property
    def _errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Errors in growing order, and the probability of at most each."""
        n_bits = self.population.n_bits
        occupied = self.population.occupied(self.n_users)
        law = ones_law(self.mechanism, n_bits, occupied, self.n_servers)
        state = self.mechanism.state
        empty = float(self.n_servers * n_bits * state.p0)
        densities = (law.values - empty) / float(n_bits * state.separation)
        users = [self.population.users(float(density)) for density in densities]
        return np.array(users) - self.n_users, law.at_most


def check_confidence(confidence: float) -> None:
    """Refuse a confidence for which no interval is computed."""
    if not 0 < confidence < 1 - 1e-6:
        raise ValueError("confidence must be above 0 and below 0.999999")


N_KEPT: Final = 2**14


@dataclass(frozen=True, slots=True)
class ReleasedCount:
    """One number of an epoch's release, or the sum of such numbers of several servers.

    Parameters
    ----------
    population : Population
    mechanism : Mechanism
    noisy_ones : int
    n_servers : int
        How many numbers it is the sum of: of servers that have the population in common, but for
        buckets, and no user who came.
    """

    population: Population
    mechanism: Mechanism
    noisy_ones: int
    n_servers: int = 1

    @property
    def density(self) -> float:
        """The estimated share of places that are occupied; unbiased, so maybe beyond 0 or 1."""
        n_bits = self.population.n_bits
        return estimated_density(self.noisy_ones, n_bits, self.mechanism, self.n_servers)

    @property
    def n_users(self) -> float:
        """The estimated number of distinct users."""
        return self.population.users(self.density)

    @property
    def law(self) -> ErrorLaw:
        """The law of the estimate's error, if as many users were there as estimated."""
        present = min(self.population.n_users_max, max(0, round(self.n_users)))
        return ErrorLaw(self.population, self.mechanism, present, self.n_servers)

    def interval(self, confidence: float) -> CountInterval:
        """An interval for the number of distinct users."""
        return _interval(self, confidence)


# A release never changes, and a statement asks for each interval several times.
@lru_cache(maxsize=N_KEPT)
def _interval(count: ReleasedCount, confidence: float) -> CountInterval:
    return count_interval(
        count.noisy_ones, count.population, count.mechanism, confidence, count.n_servers
    )
