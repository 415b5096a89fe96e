"""The exponential function between proved bounds, and what is decided by it, in whole numbers.

No float decides anything here. A power of e with a rational exponent other than 0 is irrational,
so a comparison with a rational number is always decided by bounds that are narrow enough.

Proof: proofs/pan_privacy.md, "Numbers".
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, TypeVar

from cube.measurement import UNITS_PER_EPSILON

BITS_AT_FIRST: Final = 192
BITS_MAX: Final = 2**14  # unreachable: two numbers that agree so far are the same by design
EPSILON_MAX: Final = 32  # e**32: beyond it nothing is protected
Decided = TypeVar("Decided", int, bool)


def exp_bounds(exponent: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of ``e**exponent``, some ``2**-bits`` apart for small exponents.

    Notes
    -----
    The series at ``exponent / 2**k``, at most 1/2, with each term rounded down for the lower bound
    and up for the upper one; then squared `k` times, rounded likewise. At 1/2 and below, the terms
    behind the n-th sum up to at most the n-th.

    >>> low, high = exp_bounds(Fraction(1), 64)
    >>> float(low) == float(high) == math.e
    True
    """
    if exponent < 0:
        raise ValueError("the exponent is not negative")
    if exponent == 0:
        return Fraction(1), Fraction(1)
    n_squarings = max(0, math.ceil(2 * exponent) - 1).bit_length()
    over, under = exponent.numerator, exponent.denominator << n_squarings
    low = high = lower_term = upper_term = one = 1 << bits
    place = 0
    while upper_term > 1:
        place += 1
        lower_term = lower_term * over // (under * place)
        upper_term = -(-upper_term * over // (under * place))
        low, high = low + lower_term, high + upper_term
    high += upper_term
    for _ in range(n_squarings):
        low, high = low * low >> bits, -(-high * high >> bits)
    return Fraction(low, one), Fraction(high, one)


def decided(exponent: Fraction, of_power: Callable[[Fraction], Decided]) -> Decided:
    """The value at ``e**exponent`` of a monotone step function whose steps are rational."""
    bits = BITS_AT_FIRST
    while bits <= BITS_MAX:
        at_low, at_high = map(of_power, exp_bounds(exponent, bits))
        if at_low == at_high:
            return at_low
        bits *= 2
    raise ArithmeticError("bounds of an exponential do not come together")


def epsilon_units_of(ratio: Fraction) -> int:
    """The logarithm of a ratio of at least 1 in units of epsilon, rounded up.

    >>> epsilon_units_of(Fraction(1)), epsilon_units_of(Fraction(3)) / UNITS_PER_EPSILON
    (0, 1.098612288668...)
    """
    if ratio < 1:
        raise ValueError("a loss is at least 0")

    def covers(units: int) -> bool:
        return decided(Fraction(units, UNITS_PER_EPSILON), lambda power: power >= ratio)

    units: int = math.ceil(math.log(ratio) * UNITS_PER_EPSILON)  # near enough; the rest is exact
    while not covers(units):
        units += 1
    while units > 0 and covers(units - 1):
        units -= 1
    return units
