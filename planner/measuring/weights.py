"""The weight that a measurement needs to meet a target: in closed form, and by search.

Every number used here is public: targets, multipliers and half-widths, never noisy values.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, Weight
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget

# The lattice step is at most 2**-20 of the noise scale, and widens the interval by that share;
# scales are rounded up by at most 2**-29 of themselves before an interval is computed.
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
    # Multiply before dividing: half_width / multiplier could underflow to 0 as a float.
    rate = nats * (1 + ROUNDING_MARGIN) * abs(float(multiplier)) / target.half_width
    if rate * UNITS_PER_EPSILON >= WEIGHT_UNITS_MAX:
        raise _practically_no_noise(target)
    return Weight.at_least(rate)


def smallest_weight(
    half_width_at: Callable[[Weight], float],
    target: AccuracyTarget,
    low: int,
    start: int,
    width_at_low: float = math.inf,
) -> Weight:
    """The smallest weight at which a half-width meets the target, to within `PRECISION`.

    Parameters
    ----------
    half_width_at : callable
        Never grows with the weight; at large weights it falls about as ``1 / weight``.
    target : AccuracyTarget
    low : int
        Units that are known not to suffice.
    start : int
        Units, above `low`, that would suffice if nothing else were known.
    width_at_low : float
        The half-width at `low`, where it is known.

    Raises
    ------
    InvalidTarget
        If no weight suffices.
    """
    start = _likely(target, low, start, width_at_low)
    tried = [_Tried(low, width_at_low), _Tried(start, half_width_at(Weight(start)))]
    while tried[-1].width > target.half_width:
        last, n_steps = tried[-1].units, len(tried) - 1
        if last >= WEIGHT_UNITS_MAX:
            raise _practically_no_noise(target)
        least, most = last * (1 + PRECISION * 4**n_steps), last * 8**n_steps
        units = math.ceil(min(max(_guess(tried, target), least), most, WEIGHT_UNITS_MAX))
        tried.append(_Tried(units, half_width_at(Weight(units))))
    return Weight(_narrowed(half_width_at, target, tried))


def _narrowed(
    half_width_at: Callable[[Weight], float], target: AccuracyTarget, tried: Sequence["_Tried"]
) -> int:
    """The smallest units, to within `PRECISION`; of those tried, only the last suffices."""
    *others, below, above = tried
    is_guess, missed = True, above.missed(target)
    while above.units - below.units > (step := max(1, int(above.units * PRECISION))):
        middle = math.sqrt(max(below.units, above.units / 256) * above.units)
        guess = _guess((*others, below, above), target) if is_guess else middle
        units = int(min(max(guess, below.units + 1), above.units - step))
        found = _Tried(units, half_width_at(Weight(units)))
        if found.width <= target.half_width:
            others, above = [above], found
        else:
            others, below = [below], found
        # If a guess is not much better than the last one, bisect, which surely narrows the range.
        is_guess = not is_guess or found.missed(target) <= missed / 2
        missed = found.missed(target)
    return above.units


@dataclass(frozen=True, slots=True)
class _Tried:
    """A weight in units, and the half-width there."""

    units: int
    width: float

    def missed(self, target: AccuracyTarget) -> float:
        """By how much the half-width misses the target, on either side, relative to the target."""
        return abs(self.width / target.half_width - 1)


def _likely(target: AccuracyTarget, low: int, alone: int, width_at_low: float) -> int:
    """Units, above `low`, to begin a search with; `alone` where nothing is known at `low`.

    What is known at `low` is treated as another measurement of the same rows, so that precisions
    add up. And a half-width falls no faster than one over the weight.
    """
    known = target.half_width / width_at_low
    if not known:
        return alone
    added = math.sqrt(max(0.0, 1 - known**2)) * alone
    return max(int(math.hypot(low, added)), min(int(low / known), 2 * low), low + 1)


def _guess(tried: Sequence[_Tried], target: AccuracyTarget) -> float:
    """Slightly more than the units that meet the target, if widths behave as standard deviations.

    The precision of a best linear unbiased estimate, one over its variance, is a quotient of linear
    functions of the square of a row's weight. Two points are fitted by a linear function, as if
    everything else were another measurement of the same row; three points by the quotient. Infinite
    if the fit never reaches the target.
    """
    unit = tried[-1].units  # scaled, so that no square is too large for a float
    squares = [(one.units / unit) ** 2 for one in tried]
    precisions = [(target.half_width / one.width) ** 2 for one in tried]
    found = _linear(squares[-2:], precisions[-2:])
    if len(tried) > 2:  # noqa: PLR2004 - three points
        quotient = _quotient(squares[-3:], precisions[-3:])
        is_bracketed = precisions[-1] >= 1
        if squares[-2] < quotient < squares[-1] or (not is_bracketed and quotient > squares[-1]):
            found = quotient
        elif not is_bracketed:
            found = math.inf
    return unit * math.sqrt(found) * (1 + PRECISION / 2)


def _linear(x: Sequence[float], y: Sequence[float]) -> float:
    """Where the line through two points, the second no lower, reaches 1."""
    rise = y[1] - y[0]
    return x[0] + (x[1] - x[0]) * (1 - y[0]) / rise if rise > 0 else math.inf


def _quotient(x: Sequence[float], y: Sequence[float]) -> float:
    """Where the quotient of linear functions through three points reaches 1.

    Such functions preserve cross-ratios.
    """
    upper = (1 - y[0]) * (y[1] - y[2]) * (x[1] - x[0])
    lower = (1 - y[2]) * (y[1] - y[0]) * (x[1] - x[2])
    return (x[0] * lower - upper * x[2]) / (lower - upper) if lower != upper else math.inf


def affordable_units(held: list[int], units: int) -> int:
    """The common weight to which blocks at weights `held` can be raised for `units` in total.

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
