"""Epsilon as people write it: decimal text, read exactly."""

import re
from fractions import Fraction
from typing import Final

from cube.refusals import InvalidTarget

# Short, so that no exponent makes an exact number with a billion digits.
_DECIMAL: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?", re.ASCII)


def exact_epsilon(name: str, text: str) -> Fraction:
    """The number that a text stands for; messages call it `name`.

    >>> exact_epsilon("epsilon", "1e-3")
    Fraction(1, 1000)
    """
    if _DECIMAL.fullmatch(text) is None:
        raise InvalidTarget(
            f"{name} must be a decimal number that is not negative, not {text[:40]!a}.",
            hint="Write it like 0.25 or 1e-3.",
        )
    return Fraction(text)
