"""Computes distributions of whole numbers on windows, such as the number of occupied places.

Each of these numbers is a sum of independent indicators (binomial, hypergeometric, occupied
buckets), so that Bernstein's inequality bounds what lies beyond a window around its mean. In it,
probabilities follow from the exact ratios of neighbours, and sum up to 1.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

N_USERS_EXACT: Final = 64
EXPONENT_CUT: Final = 36.0  # what is left out of a window is at most 2 exp(-36) < 5e-16


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Probabilities of consecutive whole numbers, which sum up to 1.

    Parameters
    ----------
    start : int
        The first number of the window.
    weights : (n,) ndarray of float64
    """

    start: int
    weights: NDArray[np.float64]

    @classmethod
    def certain(cls, value: int) -> "Window":
        """The law of a number that is known."""
        return cls(value, np.ones(1))

    @property
    def values(self) -> NDArray[np.int64]:
        """The numbers."""
        return np.arange(self.start, self.start + self.weights.size)

    @property
    def mean(self) -> float:
        """The mean."""
        return self.start + float(self.weights @ np.arange(self.weights.size))

    @property
    def variance(self) -> float:
        """The variance."""
        off = np.arange(self.weights.size) - (self.mean - self.start)
        return float(self.weights @ off**2)


def reach(variance: float) -> int:
    """How far from its mean a sum of independent indicators goes, but for 5e-16 of its law.

    Notes
    -----
    Bernstein: beyond `h` on either side lies at most ``exp(-h**2 / (2 (variance + h / 3)))``.
    """
    third = EXPONENT_CUT / 3
    return math.ceil(third + math.sqrt(third**2 + 2 * EXPONENT_CUT * variance)) + 1


def hypergeometric(n_all: int, n_marked: int, n_drawn: int) -> Window:
    """How many of `n_drawn` without replacement are marked."""
    mean = n_drawn * n_marked / n_all
    spread = mean * (1 - n_marked / n_all) * (n_all - n_drawn) / max(1, n_all - 1)
    lowest, highest = max(0, n_drawn - (n_all - n_marked)), min(n_drawn, n_marked)
    start, end = _around(mean, spread, lowest, highest)
    k = np.arange(start, end, dtype=np.float64)
    up = np.log(n_marked - k) + np.log(n_drawn - k)
    down = np.log(k + 1) + np.log(n_all - n_marked - n_drawn + k + 1)
    return _from_ratios(start, up - down)


def occupied(n_users: int, n_buckets: int) -> Window:
    """How many buckets are occupied, if each user is in one of them at random.

    Notes
    -----
    For few users the law is exact, user by user. In general, the number is a sum of independent
    indicators (its generating function has real roots only). So is the number of users who share a
    bucket with one before them, and that of empty buckets; whichever is smaller is given the
    binomial law, with a number of trials that need not be whole, of its exact mean and variance.
    `tests/streams/test_windows.py` compares it with the exact recurrence: no probability differs
    by more than .03. It is a small part of the noise.
    """
    if n_users <= N_USERS_EXACT:
        return _occupied_by_few(n_users, n_buckets)
    free_log = n_users * math.log1p(-1 / n_buckets)  # of the chance that a bucket is empty
    free = math.exp(free_log)
    empty = n_buckets * free
    shared = n_users + n_buckets * math.expm1(free_log)
    # (1 - 2/B)^n - (1 - 1/B)^(2n), without a difference of nearly equal numbers.
    covariance = free**2 * math.expm1(_log_of_independence(n_users, n_buckets))
    variance = empty * (1 - free) + n_buckets * (n_buckets - 1) * covariance
    if shared <= empty:
        law = _binomial_of(shared, variance, min(n_users - 1, math.ceil(shared) + reach(shared)))
        return Window(n_users - (law.start + law.weights.size - 1), law.weights[::-1].copy())
    law = _binomial_of(empty, variance, min(n_buckets - 1, math.ceil(empty) + reach(empty)))
    return Window(n_buckets - (law.start + law.weights.size - 1), law.weights[::-1].copy())


def _occupied_by_few(n_users: int, n_buckets: int) -> Window:
    """One user after another: into an occupied bucket, or into an empty one."""
    law = np.zeros(min(n_users, n_buckets) + 1)
    law[0] = 1
    share = np.arange(law.size) / n_buckets
    for _ in range(n_users):
        moves = law * (1 - share)
        law *= share
        law[1:] += moves[:-1]
    return Window(0, law)


def _log_of_independence(n_users: int, n_buckets: int) -> float:
    if n_buckets == 2:  # noqa: PLR2004 - two buckets are never both empty
        return -math.inf
    return n_users * math.log1p(-1 / (n_buckets - 1) ** 2)


def _binomial_of(mean: float, variance: float, highest: int) -> Window:
    """The binomial law with a mean and a variance, up to a number; of `mean` below 1e-12, a 0."""
    if mean < 1e-12 or highest <= 0:  # noqa: PLR2004 - far below every error that is stated
        return Window.certain(0)
    chance = min(1 - 1e-9, max(1e-9, 1 - variance / mean))
    trials = mean / chance
    start, end = _around(mean, max(variance, 0.0), 0, min(highest, math.ceil(trials) - 1))
    k = np.arange(start, end, dtype=np.float64)
    odds = math.log(chance) - math.log1p(-chance)
    return _from_ratios(start, np.log(trials - k) - np.log(k + 1) + odds)


def _around(mean: float, variance: float, lowest: int, highest: int) -> tuple[int, int]:
    far = reach(variance)
    start = min(highest, max(lowest, math.floor(mean) - far))
    return start, max(start, min(highest, math.ceil(mean) + far))


def _from_ratios(start: int, log_ratios: NDArray[np.float64]) -> Window:
    """A law from the logarithms of the ratios of its neighbours."""
    logs = np.concatenate([np.zeros(1), np.cumsum(log_ratios)])
    weights = np.exp(logs - logs.max())
    return Window(start, weights / weights.sum())
