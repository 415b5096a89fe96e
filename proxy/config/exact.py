"""Exact numbers as a configuration file writes them: epsilons and deltas."""

import re
from fractions import Fraction
from typing import Any

from cube.measurement import DELTA_MIN, UNITS_PER_EPSILON, WEIGHT_UNITS_MAX

EPSILON_MAX = Fraction(
    WEIGHT_UNITS_MAX, UNITS_PER_EPSILON
)  # above it there is no meaningful guarantee
DELTA_MAX = Fraction(1, 10**5)  # delta times the number of records must be far below 1
DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?", re.ASCII)
SCIENTIFIC = re.compile(r"[0-9](\.[0-9]{1,20})?[eE]-[0-9]{1,2}", re.ASCII)


def parse_epsilon(value: Any) -> Fraction | None:
    """A positive epsilon, exactly as written; None if the value is not one.

    >>> parse_epsilon("0.1"), parse_epsilon(0.1), parse_epsilon("1e3"), parse_epsilon(True)
    (Fraction(1, 10), Fraction(1, 10), None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and not DECIMAL.fullmatch(value):
        return None
    try:
        # The file says the shortest decimal of a float, not its binary value.
        epsilon = Fraction(value if isinstance(value, str) else repr(value))
    except ValueError:
        return None
    return epsilon if 0 < epsilon <= EPSILON_MAX else None


def parse_delta(value: Any) -> Fraction | None:
    """A delta, exactly as written; None if the value is not one.

    >>> parse_delta(1e-9) == parse_delta("1e-9") == Fraction(1, 10**9)
    True
    >>> parse_delta(0), parse_delta(0.5), parse_delta("tiny")
    (Fraction(0, 1), None, None)
    """
    written = value if isinstance(value, str) else repr(value)
    if isinstance(value, bool) or not (DECIMAL.fullmatch(written) or SCIENTIFIC.fullmatch(written)):
        return None
    delta = Fraction(written)
    return delta if delta == 0 or DELTA_MIN <= delta <= DELTA_MAX else None
