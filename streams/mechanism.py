"""Computes the exact privacy loss of a state and its release, and divides an epsilon between them.

An intruder sees the state once, at an unannounced moment, and reads the release later. The ratio of
the probabilities of both, between any two streams that differ in one user's arrivals and
departures, is at most

    loss = p1 / p0 * (p0 + p1 / alpha)

and some pair of streams reaches it. The published output noise assumes that one user moves the
released density by ``1/m``; a bit moves it by ``1 / (m (p1 - p0))``, and that is the difference
between a promise of .2 and a loss of 1.5 or 3.4.

Proof: proofs/pan_privacy.md. Two unannounced looks at the state have no guarantee at all.

An epsilon is divided between state and release for the least variance. The noise of the release,
which is what the state leaves of the epsilon, matters less the more bits there are, as its part of
the variance falls by the square of their number; so most of an epsilon belongs to the state. Half
and half, as published, costs up to three times the variance. The choice depends on public numbers
alone, and whatever it is, `Mechanism` makes the loss exact.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.exponential import EPSILON_MAX, decided, epsilon_units_of
from cube.measurement import UNITS_PER_EPSILON
from streams.randomness import GRID, GeometricNoise, TwoPoint

EPSILON_MIN: Final = Fraction(1, 2**10)  # below it a law of the noise is too long to compute with


@dataclass(frozen=True, slots=True)
class Mechanism:
    """How bits are drawn, and how their number is released once.

    Parameters
    ----------
    state : TwoPoint
    output : GeometricNoise
        Added to the number of ones.

    Examples
    --------
    >>> both = Mechanism.for_epsilon(Fraction(1, 4), state=Fraction(1, 8))
    >>> both.epsilon_units == 2**40 // 4, round(both.output.rate, 4)
    (True, 0.2237)
    """

    state: TwoPoint
    output: GeometricNoise

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, *, state: Fraction) -> "Mechanism":
        """The least noise at which state and release lose at most `epsilon` together.

        Parameters
        ----------
        epsilon : Fraction
            The privacy loss that both together may have.
        state : Fraction
            What the state alone may lose; less than `epsilon`.
        """
        if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
            raise ValueError(f"epsilon must be from {EPSILON_MIN} to {EPSILON_MAX}")
        if not 0 < state < epsilon:
            raise ValueError("the state's share of epsilon must be above 0 and below epsilon")
        law = TwoPoint.for_epsilon(state)

        def least(power: Fraction) -> int:
            # The least alpha with p0 + p1 / alpha <= power / odds, rounded up to the grid.
            return -int(-GRID * law.p1 // (power / law.odds - law.p0))

        return cls(law, GeometricNoise(min(GRID - 1, decided(epsilon, least)))).within(epsilon)

    def within(self, epsilon: Fraction) -> "Mechanism":
        """Itself, once it is certain that it loses at most `epsilon`; else ValueError."""
        if not decided(epsilon, lambda power: self.loss <= power):
            raise ValueError("state and release together lose more than epsilon")
        return self

    @property
    def loss(self) -> Fraction:
        """The largest ratio of probabilities of a state and the release that follows it."""
        return self.state.odds * (self.state.p0 + self.state.p1 / self.output.alpha)

    @property
    def epsilon_units(self) -> int:
        """What state and release lose together, in units of epsilon, rounded up."""
        return epsilon_units_of(self.loss)

    def variance_of_ones(self, n_bits: int) -> Fraction:
        """The variance of the noisy number of ones, for any set of present users.

        It is the same for all: a bit has the variance ``p0 p1`` whether its user is present or not.
        """
        return n_bits * self.state.p0 * self.state.p1 + self.output.variance


N_SHARES: Final = 65
N_ZOOMS: Final = 8  # each makes the step 16 times smaller: to 2**-33 of the first range in all


def best_mechanism(epsilon: Fraction, n_bits: int) -> Mechanism:
    """The mechanism with the least variance of an estimated density, for an epsilon.

    Parameters
    ----------
    epsilon : Fraction
        What a state and its release may lose together.
    n_bits : int
        How many users, or buckets, have a bit.

    Examples
    --------
    >>> mechanism = best_mechanism(Fraction(1), 1000)
    >>> round(mechanism.state.epsilon_units / mechanism.epsilon_units, 2)
    0.85
    """
    if n_bits < 1:
        raise ValueError("a state must have at least one bit")
    lowest, highest = -12.0, 12.0  # of the share's logit
    share = 0.5
    for _ in range(N_ZOOMS):
        logits = np.linspace(lowest, highest, N_SHARES)
        shares = 1 / (1 + np.exp(-logits))
        best = int(np.argmin(_log_variances(float(epsilon), shares, n_bits)))
        share = float(shares[best])
        step = float(logits[1] - logits[0])
        lowest, highest = logits[best] - 2 * step, logits[best] + 2 * step
    units = max(1, math.floor(epsilon * UNITS_PER_EPSILON * Fraction(share)))
    return Mechanism.for_epsilon(epsilon, state=Fraction(units, UNITS_PER_EPSILON))


def _log_variances(epsilon: float, shares: NDArray[np.float64], n_bits: int) -> NDArray[np.float64]:
    """The logarithm of the variance of an estimated density for each share of the state."""
    state = epsilon * shares
    separation = np.tanh(state / 2)
    p0 = 1 / (1 + np.exp(state))
    p1 = 1 - p0
    # 1 / alpha = 1 + (e**(eps_o) - 1) / p1, as p0 + p1 = 1.
    excess = np.expm1(epsilon - state) / p1
    variance_of_noise = 2 * (1 + excess) / excess**2
    of_ones = n_bits * p0 * p1 + variance_of_noise
    found: NDArray[np.float64] = np.log(of_ones) - 2 * np.log(n_bits * separation)
    return found
