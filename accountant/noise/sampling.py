"""Exact samples: geometric laws with a rational rate, and noise made smaller given its first draw.

A geometric law has the ratio ``exp(-rate)``, with `rate` a rational number. Whole-number arithmetic
on uniform whole numbers from the operating system; no float, no logarithm, no table of
probabilities. The laws are exact, not approximate. The time of a draw depends on the value drawn,
as for any exact sampler. There is no seed to pass. Proof: proofs/exact_sampling.md.

Discrete Laplace noise `coarse` was added to an answer, and the sum was released. To release the
answer again with noise `fine` of a smaller scale, `fine` is drawn from its conditional law given
`coarse`, under which

    coarse = fine + step,   step independent of fine, with a law that depends on neither of them

The first release is then the second plus noise that is independent of the data: both together cost
what the second costs, and a row's weight has simply been raised.

Noise is as secret as the answer it hides, which is the released value less the noise. Nothing here
keeps any. Proof: proofs/refinement.md.

References
----------
Canonne, Kamath & Steinke 2020, "The Discrete Gaussian for Differential Privacy", Algorithms 1, 2.

Koufogiannis, Han & Pappas 2017, "Gradual Release of Sensitive Data under Differential Privacy",
for the continuous law; the law on a lattice has one more term, and is derived in the proof.
"""

from dataclasses import dataclass
from fractions import Fraction
from secrets import randbelow

from cube.runtime import cached_property


def bernoulli_exp(numerator: int, denominator: int) -> bool:
    """True with probability ``exp(-rate)``, ``rate = numerator / denominator`` from 0 to 1.

    Notes
    -----
    Algorithm 1. Trial ``k = 1, 2, ...`` succeeds with probability ``rate / k``; the first to fail
    is an odd one with probability ``1 - rate + rate**2 / 2! - ...``.
    """
    if not 0 <= numerator <= denominator:
        raise ValueError("the rate must be between 0 and 1")
    trial = 2 if numerator == denominator else 1  # a first trial that is certain takes no draw
    while randbelow(trial * denominator) < numerator:
        trial += 1
    return trial % 2 == 1


def geometric(rate: Fraction) -> int:
    """A whole number with ``Pr(k) = (1 - exp(-rate)) * exp(-rate * k)``, k = 0, 1, 2, ...

    It takes fewer than eight uniform draws on average, however small or large the rate.

    Notes
    -----
    From Algorithm 2. With ``rate = s / t`` it draws a geometric variable of rate ``1 / t``: its
    last digit in base ``t`` by rejection, and the number above that digit, which is geometric of
    rate 1. Then it divides by ``s``, rounding down.
    """
    if rate <= 0:
        raise ValueError("the rate must be above 0")
    base = rate.denominator
    last_digit = randbelow(base)
    while not bernoulli_exp(last_digit, base):
        last_digit = randbelow(base)
    above = 0
    while bernoulli_exp(1, 1):
        above += 1
    return (last_digit + base * above) // rate.numerator


@dataclass(frozen=True)
class Refinement:
    """The way from one discrete Laplace law to a narrower one.

    Parameters
    ----------
    coarse_rate, fine_rate : Fraction
        ``Pr(k)`` is proportional to ``exp(-rate * |k|)``, before and after; ``1 / scale`` with the
        scale in lattice steps. The fine rate is the larger.
    """

    coarse_rate: Fraction
    fine_rate: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.coarse_rate < self.fine_rate:
            raise ValueError("refined noise must be smaller than the noise before")

    @classmethod
    def of_scales(cls, coarse: float, fine: float) -> "Refinement":
        """Between two scales in lattice steps, as the exact values of the floats."""
        return cls(1 / Fraction(coarse), 1 / Fraction(fine))

    @cached_property
    def _joint_rate(self) -> Fraction:
        return self.coarse_rate + self.fine_rate

    @cached_property
    def _excess_rate(self) -> Fraction:
        return self.fine_rate - self.coarse_rate

    def draw(self, coarse_noise: int) -> int:
        """The fine noise, given the coarse noise; both in lattice steps."""
        drawn = self._given_magnitude(abs(coarse_noise))
        return drawn if coarse_noise >= 0 else -drawn

    def _given_magnitude(self, magnitude: int) -> int:
        """Draw by pieces, from beyond zero to beyond the coarse noise: four pieces, each geometric.

        The comments below write ``p``, ``q`` for ``exp(-coarse_rate)``, ``exp(-fine_rate)``.
        """
        if self._is_across_zero():
            return -1 - geometric(self._joint_rate)
        towards = geometric(self._excess_rate)
        if towards < magnitude:
            return towards
        if self._is_kept():
            return magnitude
        return magnitude + geometric(self._joint_rate)

    def _is_across_zero(self) -> bool:
        """True with probability ``q (p - q) / (1 - q**2)``: the fine noise has the other sign."""
        is_odd = geometric(self.fine_rate) % 2 == 1
        return is_odd and geometric(self.coarse_rate) > geometric(self._excess_rate)

    def _is_kept(self) -> bool:
        """True with probability ``(q/p) (1 - p**2) / (1 - p q)``: the atom at the coarse noise."""
        return geometric(2 * self.coarse_rate) < geometric(self._excess_rate)
