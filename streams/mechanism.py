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

With several looks, each but the last one is announced after it, and the state is made random again
before anything else happens: `AnnouncedLooks` says how much, and what all of it loses.
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
LOGIT_STEPS: Final = 2**10
SHARE_STEPS: Final = 2**30
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

    Notes
    -----
    The share is rounded twice, to far less than matters for the variance: servers whose releases
    are to be added need equal laws, and the last digits of a logarithm are not the same on all
    processors.
    """
    if n_bits < 1:
        raise ValueError("a state must have at least one bit")
    lowest, highest = -12.0, 12.0  # of the share's logit
    found = 0.0
    for _ in range(N_ZOOMS):
        logits = np.linspace(lowest, highest, N_SHARES)
        shares = 1 / (1 + np.exp(-logits))
        best = int(np.argmin(_log_variances(float(epsilon), shares, n_bits)))
        found = float(logits[best])
        step = float(logits[1] - logits[0])
        lowest, highest = logits[best] - 2 * step, logits[best] + 2 * step
    logit = round(found * LOGIT_STEPS) / LOGIT_STEPS
    share = Fraction(math.floor(SHARE_STEPS / (1 + math.exp(-logit))), SHARE_STEPS)
    units = max(1, math.floor(epsilon * UNITS_PER_EPSILON * share))
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


@dataclass(frozen=True, slots=True)
class Remix:
    """What is done to a state after a look that was announced.

    Parameters
    ----------
    keep : int
        Each bit is kept if a word is below it, and is a fair coin if not.
    law : TwoPoint
        By which bits of users who arrive or leave are drawn from then on.
    """

    keep: int
    law: TwoPoint

    def __post_init__(self) -> None:
        if type(self.keep) is not int or not 0 < self.keep < GRID:
            raise ValueError("the probability with which a bit is kept must lie between 0 and 1")

    @property
    def odds(self) -> Fraction:
        """The largest ratio of probabilities of a bit at the next look, given the bit before."""
        kept = (1 + Fraction(self.keep, GRID)) / 2  # that the bit is the same
        return max(kept / self.law.p0, self.law.p1 / (1 - kept))


@dataclass(frozen=True, slots=True)
class AnnouncedLooks:
    """Laws of a stream of bits whose state is looked at several times, and released at the end.

    The algorithm is told of each look but the last one right after it, and mixes the state before
    it does anything else. The signal of presence shrinks at every look.

    Parameters
    ----------
    first : TwoPoint
        The law of bits until the first look.
    remixes : tuple of Remix
        After each look that is announced.
    output : GeometricNoise
        Added to the number of ones.
    """

    first: TwoPoint
    remixes: tuple[Remix, ...]
    output: GeometricNoise

    @classmethod
    def for_epsilons(cls, looks: tuple[Fraction, ...], output: Fraction) -> "AnnouncedLooks":
        """The laws that lose at most an epsilon for each look, and one for the release.

        Parameters
        ----------
        looks : tuple of Fraction
            One for each look, the last one among them.
        output : Fraction

        Notes
        -----
        With `x` for the separation before a look and `E` for the power of the next look's epsilon,
        a bit is kept with probability ``(E - 1) / (E + x)``, rounded down: then an arrival, with
        ``p1 = (1 + keep x) / 2``, is `E` times as likely as a coin that changed the bit.
        """
        law = first = TwoPoint.for_epsilon(looks[0])
        remixes = []
        for epsilon in looks[1:]:
            before = law.separation

            def kept(power: Fraction, before: Fraction = before) -> int:
                return int(GRID * (power - 1) / (power + before))

            keep = decided(epsilon, kept)
            # Half of the separation, in whole units; rounded down, it loses no more.
            law = TwoPoint(GRID // 2 + max(1, int(keep * before / 2)))
            remixes.append(Remix(keep, law))
        p0, p1 = law.p0, law.p1

        def least(power: Fraction) -> int:
            return -int(-GRID * p1 // (power - p0))

        noise = GeometricNoise(min(GRID - 1, decided(output, least)))
        return cls(first, tuple(remixes), noise)

    @property
    def last(self) -> TwoPoint:
        """The law of bits at the end, by which the release is estimated."""
        return self.remixes[-1].law if self.remixes else self.first

    @property
    def loss(self) -> Fraction:
        """The largest ratio of probabilities of all looks and the release; none is above it."""
        found = Mechanism(self.last, self.output).loss / self.last.odds * self.first.odds
        for remix in self.remixes:
            found *= remix.odds
        return found

    @property
    def epsilon_units(self) -> int:
        """What all looks and the release lose together, in units of epsilon, rounded up."""
        return epsilon_units_of(self.loss)
