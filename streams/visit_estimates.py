"""Estimates what is known of users' visits from a release of counters, with intervals.

A statistic is a sum over users of a whole-number weight of their visits, cropped at the levels:
users who came at least `k` times, exactly `t` times, or the sum of visits. With ``a[k]`` for the
step of the weight from ``k - 1`` visits to `k`, it is the sum over positions of ``a[k] H[k]``,
``H[k]`` the users who came at least `k` times; and with ``M[k]`` for the released numbers

    (levels * sum(a[k] M[k]) / (p1 - p0) + n_cells * sum(a[k])) / 2

estimates it without bias, whatever the visits.

The law of the noisy sum is that of independent users and the noise. Each user adds ``a[c]`` or
``-a[c]`` for a uniform position, with a probability of the sign that depends on their visits.
Characteristic functions are multiplied and inverted on the whole numbers. For users with at least
`k` visits, or exactly `t`, or any range, this law depends on nothing but the statistic itself, and
the interval holds every value that the release does not contradict, as for distinct users. The law
of a sum of visits depends a little on how visits are spread: between ``4 p0 p1`` and 1 for the
variance that a user adds. The spread is taken from the release itself. For a sample, the law of
users among it is exact for the former statistics, and normal for sums of visits.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint
from cube.runtime import cached_property
from streams.counters import CounterMechanism
from streams.estimates import LAW_ERROR, NEGLIGIBLE, LawOfErrors, check_confidence
from streams.population import Population
from streams.windows import EXPONENT_CUT, Window, reach

SMALLEST: Final = 1e-300
N_TERMS_AT_ONCE: Final = 2**20
N_KEPT: Final = 2**14
LENGTH_MAX: Final = 2**19  # of a law: 4 MB, and half a second
STEP_MAX: Final = 200  # as of the square of 100 visits
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Statistic:
    """What is asked of the numbers of visits.

    Parameters
    ----------
    steps : tuple of int
        By how much the weight of a user grows with the first visit, the second one, and so on up to
        the levels; each from -200 to 200, and not all 0.

    Examples
    --------
    >>> at_least(3, 5).steps, exactly(3, 5).steps, visits_up_to(3, 5).steps
    ((0, 0, 1, 0, 0), (0, 0, 1, -1, 0), (1, 1, 1, 0, 0))
    """

    steps: tuple[int, ...]

    def __post_init__(self) -> None:
        if not any(self.steps) or max(map(abs, self.steps)) > STEP_MAX:
            raise ValueError(f"the steps of a statistic are up to {STEP_MAX}, and not all 0")

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """The weight of a user with 0 visits, with one, and so on; of shape (levels + 1,)."""
        return np.concatenate([[0], np.cumsum(self.steps)])

    @property
    def is_one_of_two(self) -> bool:
        """Whether the law depends on the statistic alone: users of weight 1 or -1, and others."""
        return self.values in {(0, 1), (-1, 0)}

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The different weights."""
        return tuple(sorted(set(self.weights.tolist())))


def at_least(k: int, levels: int) -> Statistic:
    """Users who came `k` times or more: the heavy hitters."""
    _check_level(k, levels)
    return Statistic(tuple(int(one == k) for one in range(1, levels + 1)))


def exactly(t: int, levels: int) -> Statistic:
    """Users who came `t` times, and not more often; `t` is below the levels."""
    _check_level(t, levels - 1)
    return Statistic(tuple(int(k == t) - int(k == t + 1) for k in range(1, levels + 1)))


def visits_up_to(t: int, levels: int) -> Statistic:
    """The sum over users of their visits, of each at most `t`: the cropped first moment."""
    _check_level(t, levels)
    return Statistic(tuple(int(k <= t) for k in range(1, levels + 1)))


def _check_level(k: int, most: int) -> None:
    if not 1 <= k <= most:
        raise ValueError(f"a number of visits must be from 1 to {most}")


@dataclass(frozen=True, slots=True, eq=False)
class SumLaw:
    """The law of a noisy sum: the probability of at most each number from `start` on."""

    start: int
    at_most: Floats

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the window."""
        return np.arange(self.start, self.start + self.at_most.size)

    def probability_at_most(self, number: int) -> float:
        """The probability of so much or less, to `LAW_ERROR`."""
        place = number - self.start
        return 0.0 if place < 0 else float(self.at_most[min(place, self.at_most.size - 1)])


@dataclass(frozen=True, slots=True)
class Users:
    """How often users came, as far as the law of a statistic depends on it.

    Parameters
    ----------
    n : (levels + 1,) ndarray of int64
        The cells of users with each number of visits.
    moved : Window
        By how many cells more than `n` says are of the weight asked for, and fewer of weight 0.
    spread : float
        The variance of the statistic among the cells, by the sample that has them.
    """

    n: NDArray[np.int64]
    moved: Window
    spread: float = 0.0


def sum_law(
    mechanism: CounterMechanism, statistic: Statistic, users: Users, n_servers: int = 1
) -> SumLaw:
    """The law of the released numbers' sum, each times its step, if users came so often.

    Of several servers, `users` has the cells of all of them, and each number has their noises.

    Notes
    -----
    At an angle, a user who came `m` times has the characteristic function ``C + i D S[m]``, with
    `C` the mean over positions of the cosine of ``step * angle``, `S[m]` that of its sine, with a
    minus above position `m`, and ``D = p1 - p0``.
    """
    levels, steps = mechanism.levels, np.array(statistic.steps)
    alpha, left = float(mechanism.output.alpha), float(1 - mechanism.output.alpha)
    n_cells = int(users.n.sum())
    # Half of the change of the mean by a unit of a user's weight.
    scale = float(mechanism.state.separation) / levels
    asked = int(np.argmax(np.abs(statistic.weights)))
    weight = float(users.n @ statistic.weights) + users.moved.mean * statistic.weights[asked]
    centre = round(scale * (2 * weight - n_cells * int(steps.sum())))
    length = _length(_far(mechanism, statistic, users, n_servers))
    angles = 2 * math.pi / length * np.arange(length // 2 + 1)
    outer = -2 * scale**2 * users.spread * angles**2
    cosine = np.full(angles.size, float((steps == 0).sum()) / levels)
    most = np.zeros(angles.size)
    for size, n in Counter(np.abs(steps[steps != 0]).tolist()).items():
        chord = 4 * np.sin(size * angles / 2) ** 2
        outer += n_servers * n * (2 * math.log(left) - np.log(left**2 + alpha * chord))
        cosine += n / levels * np.cos(size * angles)
        most += n * scale * np.abs(np.sin(size * angles))
    kept = np.flatnonzero(outer + n_cells * _log(cosine, most).real > NEGLIGIBLE)
    angles, cosine = angles[kept], cosine[kept]
    logs = outer[kept] - 1j * centre * angles
    sines = {size: scale * np.sin(size * angles) for size in set(statistic.steps)}
    sine = -sum((sines[step] for step in statistic.steps), np.zeros(kept.size))
    alone: dict[int, NDArray[np.complex128]] = {}
    for n_visits, n in enumerate(users.n.tolist()):
        if n or n_visits in {0, asked}:
            checkpoint()
            of_one = _log(cosine, sine)
            logs = logs + n * of_one
            if n_visits in {0, asked}:
                alone[n_visits] = of_one
        if n_visits < levels:
            sine = sine + 2 * sines[statistic.steps[n_visits]]
    if users.moved.weights.size > 1 or users.moved.start:
        logs = logs + _log_generating(users.moved, alone[asked] - alone[0])
    transform = np.zeros(length // 2 + 1, np.complex128)
    transform[kept] = np.exp(np.conj(logs))
    law = np.fft.fftshift(np.fft.irfft(transform, length))
    return SumLaw(centre - length // 2, np.clip(np.cumsum(law), 0.0, 1.0))


def _far(
    mechanism: CounterMechanism, statistic: Statistic, users: Users, n_servers: int = 1
) -> int:
    """How far from its mean a noisy sum goes, but for some 1e-15 of its law."""
    squares = float(sum(step**2 for step in statistic.steps))
    largest = max(map(abs, statistic.steps))
    scale = float(mechanism.state.separation) / mechanism.levels
    return (
        largest * reach(int(users.n.sum()) * squares / mechanism.levels / largest**2)
        + math.ceil(2 * scale * math.sqrt(2 * EXPONENT_CUT * users.spread))
        + math.ceil(2 * scale * reach(users.moved.variance))
        + math.ceil(EXPONENT_CUT / mechanism.output.rate * math.sqrt(n_servers * squares))
    )


def _length(far: int) -> int:
    return 1 << (2 * far + 2).bit_length()


def _log(real: Floats, imaginary: Floats) -> NDArray[np.complex128]:
    """The logarithm of a complex number; that of 0 is very small."""
    modulus = np.log(np.maximum(np.hypot(real, imaginary), SMALLEST))
    found: NDArray[np.complex128] = modulus + 1j * np.arctan2(imaginary, real)
    return found


def _log_generating(law: Window, logs: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """The logarithm of the mean of ``exp(k log)`` over a law of `k`, for each logarithm.

    Notes
    -----
    The numbers are laid out in rows of about as many as there are rows, as for bits; about the
    mean, so that no power is large where the law of all users is not negligible.
    """
    about = round(law.mean)
    width = max(1, math.isqrt(law.weights.size))
    n_rows = -(-law.weights.size // width)
    weights = np.zeros(n_rows * width)
    weights[: law.weights.size] = law.weights
    across = np.arange(width, dtype=np.float64)
    down = law.start - about + width * np.arange(n_rows, dtype=np.float64)
    found = np.empty(logs.size, np.complex128)
    step = max(1, N_TERMS_AT_ONCE // n_rows)
    for begin in range(0, logs.size, step):
        checkpoint()
        piece = logs[begin : begin + step]
        rows = np.exp(np.outer(piece, across)) @ weights.reshape(n_rows, width).T
        total = (rows * np.exp(np.outer(piece, down))).sum(axis=1)
        with np.errstate(divide="ignore"):
            found[begin : begin + step] = np.log(total) + about * piece
    return found


@dataclass(frozen=True, slots=True)
class StatisticInterval:
    """Values that agree with a release."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class ReleasedVisits:
    """The numbers of one release of counters, of one estimator; or sums over several servers.

    Parameters
    ----------
    population : Population
        Whose users are known: all of a universe, or a sample of it.
    mechanism : CounterMechanism
    noisy : tuple of int
        For each position, the ones less the zeros, with noise.
    n_servers : int
        How many numbers each is the sum of: of servers that have the population in common, and no
        user who came.
    """

    population: Population
    mechanism: CounterMechanism
    noisy: tuple[int, ...]
    n_servers: int = 1

    def estimate(self, statistic: Statistic) -> "VisitEstimate":
        """The estimate of a statistic."""
        return VisitEstimate(self, statistic)

    @property
    def scale(self) -> float:
        """How many users a cell stands for."""
        return self.population.n_users_max / self.population.n_bits

    @cached_property
    def spread(self) -> Floats:
        """The cells with each number of visits, of shape (levels + 1,): none below 0.

        The unbiased numbers of users with at least so many visits are made to fall (the nearest
        numbers that do, by pooling neighbours) and kept between none and all. Only the width of
        laws depends on this.
        """
        n_bits, mechanism = self.population.n_bits, self.mechanism
        n_cells = self.n_servers * n_bits
        per_cell = mechanism.levels / float(mechanism.state.separation)
        pools: list[tuple[float, int]] = []
        for one in self.noisy:
            mean, size = (per_cell * one + n_cells) / 2, 1
            while pools and pools[-1][0] < mean:
                last, n_last = pools.pop()
                mean, size = (mean * size + last * n_last) / (size + n_last), size + n_last
            pools.append((mean, size))
        falling = np.clip([mean for mean, size in pools for _ in range(size)], 0, n_bits)
        found: Floats = -np.diff(np.concatenate([[n_bits], falling, [0.0]]))
        return found


@dataclass(frozen=True)
class VisitEstimate:
    """The estimate of a statistic from a release.

    Parameters
    ----------
    released : ReleasedVisits
    statistic : Statistic
    """

    released: ReleasedVisits
    statistic: Statistic

    @property
    def n_users(self) -> float:
        """The estimate; unbiased, so maybe below 0."""
        return self.of_sum(self.noisy_sum)

    @property
    def noisy_sum(self) -> int:
        """The sum of the released numbers, each times its step."""
        return sum(
            step * one for step, one in zip(self.statistic.steps, self.released.noisy, strict=True)
        )

    def of_sum(self, noisy_sum: float) -> float:
        """The estimate that a sum gives."""
        mechanism, population = self.released.mechanism, self.released.population
        moved = mechanism.levels * noisy_sum / float(mechanism.state.separation)
        n_cells = self.released.n_servers * population.n_bits
        return self.released.scale * (moved + n_cells * sum(self.statistic.steps)) / 2

    @property
    def least(self) -> int:
        """The least that the statistic can be: all users have the smallest weight."""
        return self.statistic.values[0] * self.released.population.n_users_max

    @property
    def most(self) -> int:
        """The most that it can be."""
        return self.statistic.values[-1] * self.released.population.n_users_max

    @property
    def law(self) -> "VisitErrorLaw":
        """The law of the error, if the statistic is what was estimated."""
        return VisitErrorLaw(self, min(self.most, max(self.least, round(self.n_users))))

    def interval(self, confidence: float) -> StatisticInterval:
        """An interval for the statistic."""
        check_confidence(confidence)
        return _interval(self, confidence)

    @property
    def is_too_long(self) -> bool:
        """Whether the law has too many numbers to compute with: large steps, or a lot of noise."""
        released, users = self.released, self._users(round(self.n_users))
        far = _far(released.mechanism, self.statistic, users, released.n_servers)
        return _length(far) > LENGTH_MAX

    def sum_law(self, value: int) -> SumLaw:
        """The law of the noisy sum if the statistic has a value."""
        released = self.released
        return sum_law(released.mechanism, self.statistic, self._users(value), released.n_servers)

    def _users(self, value: int) -> Users:
        """Users with that value: as many of the one weight, or spread as the release says.

        A user has a cell at every server, and visits to one of them: the others are like those of
        users who never came.
        """
        population, weights = self.released.population, self.statistic.weights
        n_bits = population.n_bits
        elsewhere = (self.released.n_servers - 1) * n_bits
        value = min(self.most, max(self.least, value))
        if self.statistic.is_one_of_two:
            n = np.zeros(weights.size, np.int64)
            n[0] = n_bits + elsewhere
            return Users(n, population.occupied(abs(value)))
        spread = self.released.spread
        mean, now = value / self.released.scale, float(spread @ weights)
        # Some of each are moved to the least or the largest weight, until the value is right.
        end = weights.argmax() if mean > now else weights.argmin()
        bound = float(n_bits * weights[end])
        share = (mean - now) / (bound - now) if bound != now else 0.0
        some = (1 - share) * spread
        some[end] += share * n_bits
        n = _whole(some)
        of_cells = float(n @ (weights - mean / n_bits) ** 2)
        n_all = population.n_users_max
        of_sample = of_cells * (n_all - n_bits) / max(1, n_all - 1)
        n[0] += elsewhere
        return Users(n, Window.certain(0), of_sample)


def _whole(some: Floats) -> NDArray[np.int64]:
    """Whole numbers near some, with the same sum."""
    up_to = np.rint(np.cumsum(some)).astype(np.int64)
    return np.diff(up_to, prepend=0)


@lru_cache(maxsize=N_KEPT)
def _interval(estimate: VisitEstimate, confidence: float) -> StatisticInterval:
    """The values that a test of either side does not reject; each end is where it begins to."""
    outer = (1 - confidence) / 2 - LAW_ERROR
    noisy = estimate.noisy_sum
    low, most = estimate.least, estimate.most
    value = estimate.n_users
    half = max(1.0, 2 * estimate.law.gaussian)

    def holds_from(value: int) -> bool:
        return 1 - estimate.sum_law(value).probability_at_most(noisy - 1) > outer

    def too_large(value: int) -> bool:
        return estimate.sum_law(value).probability_at_most(noisy) <= outer

    first = _first(holds_from, low, most, value - half, half)
    beyond = _first(too_large, low, most, value + half, half)
    least = min(first, most)
    return StatisticInterval(least, min(most, max(least, beyond - 1)), confidence)


def _first(holds: Callable[[int], bool], low: int, most: int, guess: float, step: float) -> int:
    """The least whole number from `low` to `most` for which a growing truth holds, or one more."""
    below, above = low - 1, most + 1
    place, reached = guess, max(1.0, step / 16)
    while above - below > 1:
        checkpoint()
        here = min(above - 1, max(below + 1, round(place)))
        if holds(here):
            above = here
            place = here - reached if below == low - 1 else (below + above) / 2
        else:
            below = here
            place = here + reached if above == most + 1 else (below + above) / 2
        reached *= 2
    return above


@dataclass(frozen=True)
class VisitErrorLaw(LawOfErrors):
    """The law of the error of an estimated statistic, if it has a value.

    Parameters
    ----------
    estimate : VisitEstimate
    value : int
    """

    estimate: VisitEstimate
    value: int

    @cached_property
    def _errors(self) -> tuple[Floats, Floats]:
        """Errors in growing order, and the probability of at most each."""
        law = self.estimate.sum_law(self.value)
        low, high = (self.estimate.of_sum(one) for one in (law.start, law.start + 1))
        errors = low - self.value + (high - low) * np.arange(law.at_most.size, dtype=np.float64)
        return errors, law.at_most
