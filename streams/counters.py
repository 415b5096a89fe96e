"""Computes the exact loss of counters of visits and their releases, and divides an epsilon.

The cell of a user is a position ``c`` from 0 to ``levels - 1`` and a bit ``b``. The position starts
uniform, and each visit moves it by one, around the end to 0. A visit that takes it to 0 draws the
bit anew, as an arrival does in a stream of bits; no other visit touches it. Then

* the position is uniform whatever the number of visits, and
* the bit has the law of a present user if the user came more than ``c`` times, and the law of an
  absent user if not.

So each user has a threshold ``c + 1`` that is drawn at random and says nothing of them, and one bit
that says, with the odds of one bit, whether they came as often. All statistics of the number of
visits up to `levels` follow from the bits at each position. Visits beyond `levels` count no more:
the number is cropped, and nothing is taken modulo anything.

What is released is, for each position, the number of ones less the number of zeros, with noise. It
loses at most ``alpha ** -2``, as a user moves from one position to another or changes the sign at
theirs. The state and all releases of an epoch lose together at most, and in some case exactly,

    loss = p1 / p0 * alpha ** (-2 * n_releases)

With one level, a cell is the bit of `mechanism.py`. Proof: proofs/pan_privacy.md, "Counters". Two
unannounced looks have no guarantee.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from cube.exponential import EPSILON_MAX, decided, epsilon_units_of
from cube.measurement import UNITS_PER_EPSILON
from streams.mechanism import EPSILON_MIN
from streams.randomness import GRID, GeometricNoise, TwoPoint

LEVELS_MAX: Final = 100  # a cell is one byte
N_RELEASES_MAX: Final = 24
RATE_MIN: Final = 2.0**-12  # of the noise: below it, a law is too long to compute with


@dataclass(frozen=True, slots=True)
class CounterMechanism:
    """How cells are drawn, and how they are released.

    Parameters
    ----------
    levels : int
        Up to which number visits are counted; 2 to 100.
    state : TwoPoint
        The law of a bit.
    output : GeometricNoise
        Added to each number of a release.
    n_releases : int
        How many releases an epoch has, the last one among them.

    Examples
    --------
    >>> both = CounterMechanism.for_epsilon(Fraction(1), state=Fraction(3, 4), levels=10)
    >>> both.epsilon_units == 2**40, round(both.output.rate, 6)
    (True, 0.125)
    """

    levels: int
    state: TwoPoint
    output: GeometricNoise
    n_releases: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.levels <= LEVELS_MAX:  # noqa: PLR2004 - one level is a bit
            raise ValueError(f"visits must be counted up to a number from 2 to {LEVELS_MAX}")
        if not 1 <= self.n_releases <= N_RELEASES_MAX:
            raise ValueError(f"an epoch must have 1 to {N_RELEASES_MAX} releases")

    @classmethod
    def for_epsilon(
        cls, epsilon: Fraction, *, state: Fraction, levels: int, n_releases: int = 1
    ) -> "CounterMechanism":
        """The least noise at which state and releases lose at most `epsilon` together.

        Parameters
        ----------
        epsilon : Fraction
            The privacy loss that all of them together may have.
        state : Fraction
            What the state alone may lose; less than `epsilon`.
        levels, n_releases : int
        """
        if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
            raise ValueError(f"epsilon must be from {EPSILON_MIN} to {EPSILON_MAX}")
        if not 0 < state < epsilon:
            raise ValueError("the state's share of epsilon must be above 0 and below epsilon")
        law = TwoPoint.for_epsilon(state)
        order = 2 * n_releases

        def least(power: Fraction) -> int:
            # The least alpha with odds / power <= alpha**order, rounded up to the grid.
            return _root_above(law.odds / power * GRID**order, order)

        noise = GeometricNoise(min(GRID - 1, max(1, decided(epsilon, least))))
        return cls(levels, law, noise, n_releases).within(epsilon)

    def within(self, epsilon: Fraction) -> "CounterMechanism":
        """Itself, once it is certain that it loses at most `epsilon`; else ValueError."""
        if not decided(epsilon, lambda power: self.loss <= power):
            raise ValueError("state and releases together lose more than epsilon")
        return self

    @property
    def loss(self) -> Fraction:
        """The largest ratio of probabilities of a state and of all releases of its epoch."""
        return self.state.odds / self.output.alpha ** (2 * self.n_releases)

    @property
    def epsilon_units(self) -> int:
        """What state and releases lose together, in units of epsilon, rounded up."""
        return epsilon_units_of(self.loss)


def _root_above(number: Fraction, order: int) -> int:
    """The least whole number whose power is at least `number`.

    >>> _root_above(Fraction(9), 2), _root_above(Fraction(28, 3), 2), _root_above(Fraction(65), 6)
    (3, 4, 3)
    """
    low, high = 0, 1 << (math.ceil(number).bit_length() // order + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**order >= number:
            high = middle
        else:
            low = middle + 1
    return low


N_SHARES: Final = 257
N_ZOOMS: Final = 4


def best_counter_mechanism(
    epsilon: Fraction, n_cells: int, levels: int, n_releases: int = 1
) -> CounterMechanism:
    """The mechanism with the least variance of a number of users, for an epsilon.

    Parameters
    ----------
    epsilon : Fraction
        What a state and its releases may lose together.
    n_cells : int
        How many users have a cell.
    levels, n_releases : int

    Notes
    -----
    A released number has the variance ``n_cells / levels`` of the bits and twice
    ``alpha / (1 - alpha)**2`` of its noise, and estimates have it over the square of ``p1 - p0``.
    This is least for all statistics at the same division of epsilon.

    Examples
    --------
    >>> mechanism = best_counter_mechanism(Fraction(1), 100_000, 10)
    >>> round(mechanism.state.epsilon_units / mechanism.epsilon_units, 2)
    0.91
    """
    if n_cells < 1:
        raise ValueError("a state must have at least one cell")
    lowest, highest = -12.0, 12.0  # of the share's logit
    share = 0.5
    for _ in range(N_ZOOMS):
        logits = np.linspace(lowest, highest, N_SHARES)
        shares = 1 / (1 + np.exp(-logits))
        state = float(epsilon) * shares
        rate = (float(epsilon) - state) / (2 * n_releases)
        noise = 2 * np.exp(-rate) / np.expm1(-rate) ** 2
        variances = np.log(n_cells / levels + noise) - 2 * np.log(np.tanh(state / 2))
        best = int(np.argmin(variances))
        share = float(shares[best])
        step = float(logits[1] - logits[0])
        lowest, highest = logits[best] - 2 * step, logits[best] + 2 * step
    units = max(1, math.floor(epsilon * UNITS_PER_EPSILON * Fraction(share)))
    return CounterMechanism.for_epsilon(
        epsilon, state=Fraction(units, UNITS_PER_EPSILON), levels=levels, n_releases=n_releases
    )
