"""How much a measurement must weigh to meet a target: in closed form, and by search.

Every number used here is public: targets, multipliers and half-widths, never noisy values.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, Weight
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget

# The lattice step is at most 2**-20 of the noise scale and widens the interval by as much; scales
# are rounded up by at most 2**-29 of themselves before an interval is read off.
LATTICE_SHARE = 2.0**-20
ROUNDING_MARGIN = 2.0**-28
PRECISION = 1 / 256  # how far above the smallest weight a search may end


def weight_for(target: AccuracyTarget, multiplier: Fraction) -> Weight:
    """The smallest weight at which a fresh answer to ``multiplier * row`` meets the target.

    A Laplace answer of weight ``w`` has ``Pr(|noise| <= h) = 1 - exp(-w h)`` (Xiao & Xiong 2012,
    thm 5.3), so ``w = ln(1 / (1 - confidence)) / half_width`` for a row with unit multiplier.

    Raises
    ------
    InvalidTarget
        If the target asks for less noise than one thousandth of a record.
    """
    nats = -math.log1p(-target.confidence) + LATTICE_SHARE
    # Multiplied before it is divided: a half_width over the multiplier could vanish in a float.
    rate = nats * (1 + ROUNDING_MARGIN) * abs(float(multiplier)) / target.half_width
    if rate * UNITS_PER_EPSILON >= WEIGHT_UNITS_MAX:
        raise _practically_no_noise(target)
    return Weight.at_least(rate)


def smallest_weight(
    half_width_at: Callable[[Weight], float], target: AccuracyTarget, low: int, start: int
) -> Weight:
    """The smallest weight at which a half-width meets the target, to within `PRECISION`.

    Parameters
    ----------
    half_width_at : callable
        Does not grow with the weight, and falls about as ``1 / weight`` far out.
    target : AccuracyTarget
    low : int
        Units that are known not to suffice.
    start : int
        Units to begin with, above `low`.

    Raises
    ------
    InvalidTarget
        If no weight suffices.
    """
    high, width = start, half_width_at(Weight(start))
    while width > target.half_width:
        if high >= WEIGHT_UNITS_MAX:
            raise _practically_no_noise(target)
        growth = min(max(width / target.half_width * (1 + PRECISION / 2), 1.25), 1e6)
        low, high = high, min(math.ceil(high * growth), WEIGHT_UNITS_MAX)
        width = half_width_at(Weight(high))
    is_guess = True
    while high - low > (last_step := max(1, int(high * PRECISION))):
        # Where the new rows carry most of the answer, the width falls as one over the weight; every
        # other step halves the range, in case they do not.
        guess = int(high * width / target.half_width * (1 + PRECISION / 2))
        tried = min(max(guess, low + 1), high - last_step) if is_guess else (low + high) // 2
        is_guess = not is_guess
        found = half_width_at(Weight(tried))
        if found <= target.half_width:
            high, width = tried, found
        else:
            low = tried
    return Weight(high)


def affordable_units(held: list[int], units: int) -> int:
    """The common weight that blocks at weights `held` can be raised to for `units` in all.

    >>> affordable_units([0, 10], 30)
    20
    >>> affordable_units([0, 10], 5)
    5
    """
    levels = sorted(held)
    for count in range(1, len(levels) + 1):
        common = (units + sum(levels[:count])) // count
        if count == len(levels) or common <= levels[count]:
            return common
    raise ValueError("no blocks to raise")


def _practically_no_noise(target: AccuracyTarget) -> InvalidTarget:
    return InvalidTarget(
        f"half_width {target.half_width:g} at confidence {target.confidence:g} asks for "
        "practically no noise.",
        hint="Ask for a wider interval.",
    )
