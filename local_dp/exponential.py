"""The exponential of a rational epsilon, from below, and the logarithm of a ratio, from above.

The one place where a campaign turns an epsilon into a ratio of probabilities and back. Both
directions err towards more privacy lost, so that no probability is ever chosen too large and no
epsilon declared too small. Integers only; the standard library is enough.

The argument is in `proofs/channels.md`.
"""

from fractions import Fraction

EPSILON_UNIT_BITS = 40  # epsilons are whole numbers of 2**-40, as everywhere in Tacit
UNITS_PER_EPSILON = 1 << EPSILON_UNIT_BITS
EPSILON_UNITS_MAX = 16 * UNITS_PER_EPSILON  # an answer that is true in all but 1e-7 is not private
_GUARD_BITS = 128


def exp_below(units: int) -> Fraction:
    """A rational not above ``exp(units / 2**40)``, and less than ``2**-80`` of it below.

    Notes
    -----
    A partial sum of a series of positive terms, each rounded down: below, whatever is left out.
    Not decreasing in `units`, since each step is not.

    Examples
    --------
    >>> float(exp_below(UNITS_PER_EPSILON))
    2.718281828459045
    """
    if type(units) is not int or not 0 <= units <= EPSILON_UNITS_MAX:
        raise ValueError(f"an epsilon is 0 to {EPSILON_UNITS_MAX} units of 2**-40, not {units}")
    term = total = 1 << _GUARD_BITS
    order = 0
    while term:
        order += 1
        term = term * units // (order << EPSILON_UNIT_BITS)
        total += term
    return Fraction(total, 1 << _GUARD_BITS)


def units_at_least(ratio: Fraction) -> int:
    """The epsilon of a ratio of probabilities, in units of 2**-40, rounded up.

    The smallest number of units whose `exp_below` reaches the ratio: its true exponential does too.

    Examples
    --------
    >>> round(units_at_least(Fraction(3)) / UNITS_PER_EPSILON, 9)
    1.098612289
    """
    if ratio < 1:
        raise ValueError(f"the larger of two probabilities is not {ratio} of the smaller")
    low, high = 0, EPSILON_UNITS_MAX
    if exp_below(high) < ratio:
        raise ValueError("a ratio of probabilities beyond exp(16) is not private")
    while low < high:
        middle = (low + high) // 2
        if exp_below(middle) < ratio:
            low = middle + 1
        else:
            high = middle
    return low
