"""Exact samples of geometric laws whose ratio is ``exp(-rate)``, with `rate` a rational number.

Whole-number arithmetic on uniform whole numbers from the operating system; no float, no logarithm,
no table of probabilities. The laws are exact, not approximate. The time of a draw depends on the
value drawn, as for any exact sampler.

There is no seed to pass. Proof: proofs/exact_sampling.md.

References
----------
Canonne, Kamath & Steinke 2020, "The Discrete Gaussian for Differential Privacy", Algorithms 1, 2.
"""

from fractions import Fraction
from secrets import randbelow


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
