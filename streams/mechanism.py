"""A state and its release together: what both lose, exactly, and the noise that an epsilon leaves.

An intruder sees the state once, at a moment that nobody announced, and reads the release later.
The ratio of the probabilities of what was seen, between any two streams that differ in one user's
arrivals and departures, is at most

    loss = p1 / p0 * (p0 + p1 / alpha)

and some pair of streams reaches it. The published output noise assumes that one user moves the
released density by ``1/m``; a bit moves it by ``1 / (m (p1 - p0))``, and that is the difference
between a promise of .2 and a loss of 1.5 or 3.4.

Proof: proofs/pan_privacy.md. Two unannounced looks at the state have no guarantee at all.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from cube.exponential import EPSILON_MAX, decided, epsilon_units_of
from streams.entropy import GRID
from streams.noise import GeometricNoise
from streams.two_point import TwoPoint

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
            What both may lose.
        state : Fraction
            What the state alone may lose; less than `epsilon`.
        """
        if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
            raise ValueError(f"an epsilon is from {EPSILON_MIN} to {EPSILON_MAX}")
        if not 0 < state < epsilon:
            raise ValueError("the state's share is above 0, and leaves something for the release")
        law = TwoPoint.for_epsilon(state)

        def least(power: Fraction) -> int:
            # The least alpha with p0 + p1 / alpha <= power / odds, rounded up to the grid.
            return -int(-GRID * law.p1 // (power / law.odds - law.p0))

        return cls(law, GeometricNoise(min(GRID - 1, decided(epsilon, least)))).within(epsilon)

    def within(self, epsilon: Fraction) -> "Mechanism":
        """Itself, once it is certain that it loses at most `epsilon`; else ValueError."""
        if not decided(epsilon, lambda power: self.loss <= power):
            raise ValueError("state and release lose more than they may")
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
        """The variance of the noisy number of ones, whoever is present.

        It is the same for all: a bit has the variance ``p0 p1`` whether its user is present or not.
        """
        return n_bits * self.state.p0 * self.state.p1 + self.output.variance
