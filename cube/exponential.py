"""The exponential between proved bounds, and the logarithm of a ratio from above, in integers.

No float decides anything here. A power of e with a rational exponent other than 0 is irrational,
so a comparison with a rational number is always decided by bounds that are narrow enough. Where
several programs must draw the same line without deciding anything, they take `exp_below`.

The argument is in `exponential.md`.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, TypeVar

from cube.measurement import UNITS_PER_EPSILON

EPSILON_MAX: Final = 32  # e**32: beyond it nothing is protected
BITS_OF_LIMITS: Final = 128
BITS_AT_FIRST: Final = 192
BITS_MAX: Final = 2**14  # unreachable: two numbers that agree so far are the same by design
Decided = TypeVar("Decided", int, bool)


def exp_bounds(exponent: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of ``e**exponent``: multiples of ``2**-bits``, few apart for small exponents.

    Notes
    -----
    The series, with each term rounded down for the lower bound and up for the upper one, to which
    the last term is added again: beyond twice the exponent, what follows a term is at most that.

    >>> low, high = exp_bounds(Fraction(1), 64)
    >>> float(low) == float(high) == math.e
    True
    """
    if exponent < 0:
        raise ValueError("the exponent must be negative")
    over, under = exponent.numerator, exponent.denominator
    low = high = lower_term = upper_term = one = 1 << bits
    place = 0
    while upper_term > 1 or place * under < 2 * over:
        place += 1
        lower_term = lower_term * over // (under * place)
        upper_term = -(-upper_term * over // (under * place))
        low, high = low + lower_term, high + upper_term
    return Fraction(low, one), Fraction(high + upper_term, one)


def exp_below(units: int) -> Fraction:
    """A rational not above ``exp(units / 2**40)``, and less than ``2**-80`` of it below.

    Not decreasing in `units`. Everybody who follows the series gets this very number.

    >>> float(exp_below(UNITS_PER_EPSILON)) == math.e
    True
    """
    if type(units) is not int or not 0 <= units <= EPSILON_MAX * UNITS_PER_EPSILON:
        raise ValueError(
            f"epsilon must be 0 to {EPSILON_MAX}, in units of 2**-40, not {units} units"
        )
    return exp_bounds(Fraction(units, UNITS_PER_EPSILON), BITS_OF_LIMITS)[0]


def decided(exponent: Fraction, of_power: Callable[[Fraction], Decided]) -> Decided:
    """The value at ``e**exponent`` of a monotone step function whose steps are rational."""
    bits = BITS_AT_FIRST
    while bits <= BITS_MAX:
        at_low, at_high = map(of_power, exp_bounds(exponent, bits))
        if at_low == at_high:
            return at_low
        bits *= 2
    raise ArithmeticError("the bounds of an exponential do not converge")


def epsilon_units_of(ratio: Fraction) -> int:
    """The logarithm of a ratio of at least 1 in units of epsilon, rounded up.

    >>> epsilon_units_of(Fraction(1)), epsilon_units_of(Fraction(3)) / UNITS_PER_EPSILON
    (0, 1.098612288668...)
    """
    if ratio < 1:
        raise ValueError(
            f"the ratio of the larger probability to the smaller must be at least 1, not {ratio}"
        )

    def covers(units: int) -> bool:
        return decided(Fraction(units, UNITS_PER_EPSILON), lambda power: power >= ratio)

    units: int = math.ceil(math.log(ratio) * UNITS_PER_EPSILON)  # near enough; the rest is exact
    while not covers(units):
        units += 1
    while units > 0 and covers(units - 1):
        units -= 1
    return units
