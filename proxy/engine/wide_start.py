"""How widely the parts of a formula are asked for while nothing tells what it divides by.

A formula that divides has no value as long as a divisor cannot be told from 0, and its interval
then says nothing of the widths that its target needs. The size of the divisor does. If errors of
its parts are at most a half-width ``w``, in records of the largest value, then a mean of ``n``
records errs by about half of its public range times ``w / n``. So for a target ``t`` no half-width
above ``2 t n / range`` is of use, whatever the records are. A search begins there for the largest
``n`` that is possible, which is public or known from noisy counts, and goes on with the largest
that each round leaves plausible. Raises cost the difference: a look that was wide costs nothing in
the end. Nothing here asks for less than the half-widths at which a part begins without a target.
"""

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.workload import Answer

Floats: TypeAlias = NDArray[np.float64]

TELLING: Final = 1 / 8  # of a divisor: the widest half-width with which a quotient is worth a look
TOLD_WIDTHS: Final = 2  # half-widths of a divisor that is told from 0
ROUGHLY: Final = 1 / 2  # of the widest useful half-width: errors of two parts add up
SUREST: Final = 1 / 4  # of the widest useful half-width: the narrowest that a mean may need
SLOWEST: Final = 1 / 2  # of its half-width, to which a round narrows a divisor at least


def useful_widths(answer: Answer, sizes: Floats) -> Floats:
    """The widest half-widths of divisors of these sizes with which a target may be met.

    >>> mean = Answer("a", "AVG(x)", uses=(0, 1), low=0.0, high=100.0, half_width=5.0)
    >>> useful_widths(mean, np.array([1000.0])).tolist()
    [100.0]
    """
    span = answer.high - answer.low
    if not math.isfinite(span) or span <= 0:
        return TELLING * sizes
    wanted = answer.half_width
    if answer.relative is not None:
        wanted = answer.relative * max(abs(answer.low), abs(answer.high))
    share = TELLING if wanted is None else min(TELLING, 2 * wanted / span)
    return share * sizes


def first_width(answer: Answer, largest: Floats, least: float) -> float:
    """The half-width of a divisor to begin with.

    Parameters
    ----------
    answer : Answer
    largest : (n_rows,) ndarray of float64
        How large the divisor can be in each row, of at least one. The smallest row decides.
    least : float
        The half-width that it has without a target.
    """
    return max(least, float(useful_widths(answer, largest).min()))


def foreseen_width(answer: Answer, largest: Floats, least: float) -> float:
    """About the half-width of a divisor that a search will end with.

    The parameters are those of `first_width`. Rows of which nothing is known have equal bounds;
    their records are taken to be spread evenly. Rows that will not be told from 0 are left out.
    """
    sizes = largest / largest.size if np.ptp(largest) == 0 else largest
    told = sizes[sizes > TOLD_WIDTHS * least]
    return ROUGHLY * float(useful_widths(answer, told).min()) if told.size else least


def surest_width(answer: Answer, values: Floats, half_widths: Floats) -> float:
    """The narrowest half-width of a divisor that a search may end with; 0 if nothing bounds it.

    Parameters
    ----------
    answer : Answer
    values, half_widths : (n_rows,) ndarray of float64
        What is known of the divisor.
    """
    if answer.relative is not None or not math.isfinite(answer.high - answer.low):
        return 0.0
    smallest = np.maximum(np.abs(values) - half_widths, 0.0)
    return SUREST * float(useful_widths(answer, smallest).min(initial=math.inf))


def next_share(answer: Answer, values: Floats, half_widths: Floats) -> float:
    """The share of its half-width to which a divisor is narrowed for rows that have no value.

    1 if there is no such row. A row is followed until it has a value or its half-width is that of
    a part without a target, whichever is first: so the smallest row decides.
    """
    useful = useful_widths(answer, np.abs(values) + half_widths)
    return float(np.minimum(useful / half_widths, SLOWEST).min(initial=1.0))
