"""The estimators of streams as they were published, for comparison alone: they are not private.

Dwork's, OptBern, the Laplace estimator, its quantised form, and PPDS, with the output noise of the
publications. Nothing of the server imports this, and `streams` cannot be made to do what it does.
What each of them really loses is found by walking (tests/support/pan_privacy.py, and `ppds_states`
below), not by a formula.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tests.support.pan_privacy import (
    Number,
    Walked,
    largest_ratio,
    ratio_of,
    ratio_to_absence,
    walked_laplace,
)


@dataclass(frozen=True)
class Published:
    """An estimator with one of two values for each user, as published.

    Parameters
    ----------
    name : str
    p0, p1 : callable
        The probability of a 1 of who is absent, and of who is present, by epsilon.
    """

    name: str
    p0: Callable[[float], float]
    p1: Callable[[float], float]

    def mean_squared_error(self, epsilon: float, n_bits: int, density: float) -> float:
        """For the users who have a bit, with output noise of scale ``1 / (epsilon n)``."""
        p0, p1 = self.p0(epsilon), self.p1(epsilon)
        of_bits = density * p1 * (1 - p1) + (1 - density) * p0 * (1 - p0)
        return of_bits / (n_bits * (p1 - p0) ** 2) + 2 / (n_bits * epsilon) ** 2

    def estimates(
        self, epsilon: float, occupied: int, n_bits: int, n: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Simulated estimates of a density."""
        p0, p1 = self.p0(epsilon), self.p1(epsilon)
        ones = rng.binomial(occupied, p1, n) + rng.binomial(n_bits - occupied, p0, n)
        return (ones / n_bits - p0) / (p1 - p0) + rng.laplace(0, 1 / (epsilon * n_bits), n)

    def walked(self, epsilon: float) -> Walked:
        """Its state and its release, to be walked: one bit moves the output by ``1/(p1 - p0)``."""
        p0, p1 = self.p0(epsilon), self.p1(epsilon)
        return walked_laplace(p0, p1, epsilon / (p1 - p0))

    def loss(self, epsilon: float) -> tuple[float, float]:
        """What is lost against a user's absence, and between any two of a user's lives."""
        walked = self.walked(epsilon)
        return math.log(ratio_to_absence(walked)), math.log(largest_ratio(walked, "+"))


DWORK = Published("Dwork", lambda _: 0.5, lambda e: 0.5 + e / 4)
OPTBERN = Published("OptBern", lambda e: 1 / (1 + math.exp(e)), lambda e: 1 / (1 + math.exp(-e)))
QUANTISED = Published(
    "quantised Laplace", lambda e: math.exp(-e / 2) / 2, lambda e: 1 - math.exp(-e / 2) / 2
)


def laplace_mean_squared_error(epsilon: float, n_bits: int) -> float:
    """Of the estimator that stores Laplace variables: ``2 (n + 1) / (n epsilon)**2``."""
    return 2 * (n_bits + 1) / (n_bits * epsilon) ** 2


def laplace_loss_at(stored: float, epsilon: float) -> float:
    """What the release of the Laplace estimator loses, once an intruder saw a value of a user.

    Parameters
    ----------
    stored : float
        The value, in units of the difference of the two means, from that of who is absent.
    epsilon : float
        Of the state: in that unit, stored values and output noise have the scale ``1 / epsilon``.

    Notes
    -----
    The value stays if the user does not come again, and is drawn anew around 1 if they do. At an
    output that is the stored value, the densities are 1 and the mean of ``exp(-epsilon |x - X|)``,
    in closed form. Their ratio has no bound.
    """
    away = epsilon * abs(stored - 1)
    return away - math.log((1 + away) / 2)


PpdsState = tuple[int, frozenset[int]]
LEVELS = (0, 1, 0, 2, 0, 1, 0, 3)


def ppds_states(
    arrivals: Iterable[int], epsilon: Fraction, capacity: int, levels: tuple[int, ...] = LEVELS
) -> dict[PpdsState, Fraction]:
    """The law of the state of PPDS as published, by walking every draw.

    `epsilon` stands for the odds ``e**epsilon``, whose fraction is near enough to be told apart
    from nothing: losses are compared to three digits.
    """
    odds = Fraction(math.exp(epsilon)).limit_denominator(10**9)
    p1 = odds / (1 + odds)
    p0 = 1 - p1
    states: dict[PpdsState, Fraction] = {(0, frozenset()): Fraction(1)}
    for user in range(len(levels)):
        states = _walked(
            states, user, added=p0, removed=Fraction(0), capacity=capacity, levels=levels
        )
    for user in arrivals:
        states = _walked(states, user, added=p1, removed=p0, capacity=capacity, levels=levels)
    return states


def _walked(  # noqa: PLR0913 - one step of the algorithm, with all that it knows
    states: dict[PpdsState, Fraction],
    user: int,
    *,
    added: Fraction,
    removed: Fraction,
    capacity: int,
    levels: tuple[int, ...],
) -> dict[PpdsState, Fraction]:
    found: dict[PpdsState, Fraction] = {}

    def reach(state: PpdsState, chance: Fraction) -> None:
        if chance:
            found[state] = found.get(state, Fraction(0)) + chance

    for (level, held), chance in states.items():
        if user in held:
            reach((level, held - {user}), chance * removed)
            reach((level, held), chance * (1 - removed))
        elif levels[user] >= level:
            more, kept = held | {user}, level
            while len(more) >= capacity:
                more, kept = frozenset(v for v in more if levels[v] > kept), kept + 1
            reach((kept, more), chance * added)
            reach((level, held), chance * (1 - added))
        else:
            reach((level, held), chance)
    return found


def ppds_loss(
    n_arrivals: int, epsilon: Fraction, state: PpdsState, *, user: int = 7, capacity: int = 4
) -> float:
    """What a state of PPDS tells of a user who came so many times, against nobody having come."""
    came = ppds_states([user] * n_arrivals, epsilon, capacity).get(state, Fraction(0))
    nobody = ppds_states([], epsilon, capacity).get(state, Fraction(0))
    if (came == 0) != (nobody == 0):
        return math.inf
    return abs(math.log(came / nobody))


def frozen_level_loss(n_arrivals: int, epsilon: Fraction, *, user: int = 7) -> float:
    """The same with a level that is fixed before the stream, as room for all: no state is worse."""
    capacity = len(LEVELS) + 1
    came = ppds_states([user] * n_arrivals, epsilon, capacity)
    nobody = ppds_states([], epsilon, capacity)
    return max(abs(math.log(came[state] / nobody[state])) for state in nobody)


def fixed_size_loss(odds: Fraction = Fraction(11, 10)) -> Number:
    """The ratio of a start with a fixed number of ones, here two of four users.

    As published, a random subset of ``p0 |U|`` users. One user arrives, or nobody does.
    """
    users = range(4)
    starts = [frozenset(pair) for pair in combinations(users, 2)]
    states = [frozenset(some) for n in range(5) for some in combinations(users, n)]
    p1 = odds / (1 + odds)
    nobody = [Fraction(state in starts, len(starts)) for state in states]
    came = [
        sum(
            (
                (p1 if 0 in state else 1 - p1) / len(starts)
                for start in starts
                if start | {0} == state | {0}
            ),
            Fraction(0),
        )
        for state in states
    ]
    return ratio_of(came, nobody)
