"""Amounts of epsilon as text: exact for programs, rounded in the safe direction for people.

What is spent is rounded up and what is left is rounded down, so that no page promises more than the
ledger. Values only.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

from cube.measurement import UNITS_PER_EPSILON

# A row whose values change is one row removed and one added: beside each guarantee for neighbours.
TWICE: Final = "twice epsilon for a changed row"
N_PLACES: Final = 6  # of an amount on a page; a millionth of epsilon matters to no decision
_PLACES: Final = Decimal(1).scaleb(-N_PLACES)
_WIDE: Final = Context(prec=200)  # more digits than any sum of units has


def of_units(units: int) -> Fraction:
    """Units of 2**-40 as an exact epsilon."""
    return Fraction(units, UNITS_PER_EPSILON)


def exact_text(value: Fraction) -> str:
    """An amount to the last digit, or as a fraction if its decimals do not end.

    >>> exact_text(of_units(1)), exact_text(Fraction(1, 3)), exact_text(Fraction(2))
    ('0.0000000000009094947017729282379150390625', '1/3', '2')
    """
    rest, n_places = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest //= prime
            count += 1
        n_places = max(n_places, count)
    if rest != 1:
        return str(value)
    digits = Decimal(int(value * 10**n_places))
    return f"{digits.scaleb(-n_places, _WIDE):f}"


def rounded_up(value: Fraction) -> str:
    """An amount that was or would have been spent.

    >>> rounded_up(of_units(1)), rounded_up(Fraction(1, 2))
    ('0.000001', '0.500000')
    """
    return _rounded(value, ROUND_CEILING)


def rounded_down(value: Fraction) -> str:
    """An amount that is left, or allowed.

    >>> rounded_down(Fraction(2, 3)), rounded_down(Fraction(1234))
    ('0.666666', '1234.000000')
    """
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: Fraction, rounding: str) -> str:
    context = Context(prec=200, rounding=rounding)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{quotient.quantize(_PLACES, context=context):f}"


def share_percent(part: Fraction | int, whole: Fraction | int) -> str:
    """A part as a percentage, for charts and for people.

    >>> share_percent(Fraction(1, 3), Fraction(1)), share_percent(Fraction(1), Fraction(0))
    ('33.3', '0.0')
    """
    return f"{float(Fraction(100 * part) / whole):.1f}" if whole else "0.0"
