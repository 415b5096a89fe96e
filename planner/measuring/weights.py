"""Computes the weight (Laplace) or precision (Gaussian) that a measurement needs for a target.

It is found in closed form, and by search, in whole units of the kind of noise; the gate prices it.

    Laplace     a weight: epsilon for each unit of a row's coefficient
    Gaussian    a precision: rho for each squared unit; where the table's owner offers a delta

Every number used here is public: targets, multipliers and half-widths, never noisy values. Nothing
here draws noise, or knows what was measured.

`offered_kinds` says whether Gaussian noise may be bought for a table now, and on which terms. The
first Gaussian noise of a table pays a constant, and fixes the order at which all of it is accounted
for good. An owner who declares the expected spending has chosen the order, and it is begun at once.
Otherwise it is begun once as much was spent on rows as the constant costs. As with ski rental, at
most twice the cost of Laplace noise alone is then spent.

Decided from charges and settings alone. Nothing here buys anything.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from statistics import NormalDist
from typing import Final, Protocol

from accountant.cost import GaussianAccount, constant_of
from cube.measurement import (
    PRECISION_UNITS_MAX,
    UNITS_PER_EPSILON,
    UNITS_PER_PRECISION,
    WEIGHT_UNITS_MAX,
    GaussianTerms,
    PlannedMeasurement,
    Precision,
    Weight,
)
from cube.query import QueryBlock
from cube.refusals import InvalidTarget
from cube.target import AccuracyTarget

# The lattice step is at most 2**-20 of the noise scale, and widens the interval by that share;
# scales are rounded up by at most 2**-29 of themselves before an interval is computed.
LATTICE_SHARE = 2.0**-20
ROUNDING_MARGIN = 2.0**-28
SEARCH_SHARE = 1 / 256  # how far above the smallest units a search may end


class Power(IntEnum):
    """How the information of a measurement, one over its variance, grows with its units."""

    LINEAR = 1  # of a precision
    SQUARE = 2  # of a weight


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
        raise practically_no_noise(target)
    return Weight.at_least(rate)


def precision_for(target: AccuracyTarget, multiplier: Fraction) -> Precision:
    """The smallest precision at which a fresh answer to ``multiplier * row`` meets the target.

    Gaussian noise of deviation ``d`` is within ``z d`` of 0 with the target's confidence, ``z`` the
    quantile of the Gaussian law; the precision is ``1 / (2 d**2)``.

    Raises
    ------
    InvalidTarget
        If the target asks for a deviation below a quarter of a record.
    """
    deviations = gaussian_quantile(target.confidence) + LATTICE_SHARE
    rate = deviations * (1 + ROUNDING_MARGIN) * abs(float(multiplier)) / target.half_width
    if rate**2 / 2 * UNITS_PER_PRECISION >= PRECISION_UNITS_MAX:
        raise practically_no_noise(target)
    return Precision.at_least(rate**2 / 2)


def gaussian_quantile(confidence: float) -> float:
    """The number of deviations within which Gaussian noise is of 0 with a confidence."""
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def smallest_units(  # noqa: PLR0913, PLR0917 - a search, its range, and what grows with what
    half_width_at: Callable[[int], float],
    target: AccuracyTarget,
    low: int,
    start: int,
    width_at_low: float = math.inf,
    power: Power = Power.SQUARE,
    units_max: int = WEIGHT_UNITS_MAX,
) -> int:
    """The fewest units at which a half-width meets the target, to within `SEARCH_SHARE`.

    Parameters
    ----------
    half_width_at : callable
        Never grows with the units; at many units it falls about as a measurement's deviation.
    target : AccuracyTarget
    low : int
        Units that are known not to suffice.
    start : int
        Units, above `low`, that would suffice if nothing else were known.
    width_at_low : float
        The half-width at `low`, where it is known.
    power : Power
        How the information of a measurement grows with its units.
    units_max : int
        The most that may be bought.

    Raises
    ------
    InvalidTarget
        If no number of units suffices.
    """
    if low >= units_max:
        raise practically_no_noise(target)
    start = min(_likely(target, low, start, width_at_low, power), units_max)
    tried = [_Tried(low, width_at_low), _Tried(start, half_width_at(start))]
    while tried[-1].width > target.half_width:
        last, n_steps = tried[-1].units, len(tried) - 1
        if last >= units_max:
            raise practically_no_noise(target)
        least, most = last * (1 + SEARCH_SHARE * 4**n_steps), last * 8**n_steps
        units = math.ceil(min(max(_guess(tried, target, power), least), most, units_max))
        tried.append(_Tried(units, half_width_at(units)))
    return _narrowed(half_width_at, target, tried, power)


def _narrowed(
    half_width_at: Callable[[int], float],
    target: AccuracyTarget,
    tried: Sequence["_Tried"],
    power: Power,
) -> int:
    """The fewest units, to within `SEARCH_SHARE`; of those tried, only the last suffice."""
    *others, below, above = tried
    is_guess, missed = True, above.missed(target)
    while above.units - below.units > (step := max(1, int(above.units * SEARCH_SHARE))):
        middle = math.sqrt(max(below.units, above.units / 256) * above.units)
        guess = _guess((*others, below, above), target, power) if is_guess else middle
        units = int(min(max(guess, below.units + 1), above.units - step))
        found = _Tried(units, half_width_at(units))
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
    """Units, and the half-width there."""

    units: int
    width: float

    def missed(self, target: AccuracyTarget) -> float:
        """By how much the half-width misses the target, on either side, relative to the target."""
        return abs(self.width / target.half_width - 1)


def _likely(target: AccuracyTarget, low: int, alone: int, width_at_low: float, power: Power) -> int:
    """Units, above `low`, to begin a search with; `alone` where nothing is known at `low`.

    What is known at `low` is treated as another measurement of the same rows, so that information
    adds up. And a half-width falls no faster than a measurement's deviation.
    """
    known = target.half_width / width_at_low
    if not known:
        return alone
    if power is Power.SQUARE:
        together = math.hypot(low, math.sqrt(max(0.0, 1 - known**2)) * alone)
    else:
        together = low + max(0.0, 1 - known**2) * alone
    return max(int(together), min(int(low / known ** (2 / power)), 2 * low), low + 1)


def _guess(tried: Sequence[_Tried], target: AccuracyTarget, power: Power) -> float:
    """Slightly more than the units that meet the target, if widths behave as standard deviations.

    The information of a best linear unbiased estimate, one over its variance, is a quotient of
    linear functions of that of one row. Two points are fitted by a linear function, as if
    everything else were another measurement of the same row; three points by the quotient. Infinite
    if the fit never reaches the target.
    """
    unit = tried[-1].units  # scaled, so that nothing is too large for a float
    bought = [(one.units / unit) ** power for one in tried]
    reached = [(target.half_width / one.width) ** 2 for one in tried]
    found = _linear(bought[-2:], reached[-2:])
    if len(tried) > 2:  # noqa: PLR2004 - three points
        quotient = _quotient(bought[-3:], reached[-3:])
        is_bracketed = reached[-1] >= 1
        if bought[-2] < quotient < bought[-1] or (not is_bracketed and quotient > bought[-1]):
            found = quotient
        elif not is_bracketed:
            found = math.inf
    return unit * float(found ** (1 / power)) * (1 + SEARCH_SHARE / 2)


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


def practically_no_noise(target: AccuracyTarget) -> InvalidTarget:
    """The refusal of a target that no weight meets."""
    return InvalidTarget(
        f"half_width {target.half_width:g} at confidence {target.confidence:g} asks for almost "
        "no noise.",
        hint="Ask for a wider interval.",
    )


class NoiseKind(Protocol):
    """A kind of noise, and the units in which it is bought."""

    @property
    def is_gaussian(self) -> bool:
        """Whether it is Gaussian noise."""
        ...

    @property
    def power(self) -> Power:
        """How the information of a measurement, one over its variance, grows with its units."""
        ...

    @property
    def units_max(self) -> int:
        """The most units of one measurement."""
        ...

    def fresh(self, target: AccuracyTarget, multiplier: Fraction) -> int:
        """The units at which a fresh answer to ``multiplier * row`` meets a target."""
        ...

    def planned(
        self, block: QueryBlock, units: int, raised_from: int | None = None
    ) -> PlannedMeasurement:
        """A block to be measured with this noise."""
        ...

    def cost(self, units: int, rows_per_unit: int = 1) -> Fraction:
        """What a row with coefficients of 1 costs, in epsilon, where a unit has so many records."""
        ...

    def affordable(self, cost_units: int, rows_per_unit: int = 1) -> int:
        """The most units that cost at most so many units of epsilon."""
        ...

    def as_precise_as(self, rate: float) -> int:
        """The units of noise with the deviation of Laplace noise of scale ``1 / rate``."""
        ...


@dataclass(frozen=True, slots=True)
class LaplaceKind:
    """Laplace noise: every table has it."""

    is_gaussian: bool = False
    power: Power = Power.SQUARE
    units_max: int = WEIGHT_UNITS_MAX

    def fresh(self, target: AccuracyTarget, multiplier: Fraction) -> int:
        """The units of `weight_for`."""
        return weight_for(target, multiplier).units

    def planned(
        self, block: QueryBlock, units: int, raised_from: int | None = None
    ) -> PlannedMeasurement:
        """A block at a weight."""
        return PlannedMeasurement(block, Weight(units), raised_from)

    def cost(self, units: int, rows_per_unit: int = 1) -> Fraction:
        """A count costs its weight, for each record of a unit."""
        return Fraction(rows_per_unit * units, UNITS_PER_EPSILON)

    def affordable(self, cost_units: int, rows_per_unit: int = 1) -> int:
        """The weight that this buys, rounded down."""
        return cost_units // rows_per_unit

    def as_precise_as(self, rate: float) -> int:
        """The weight of that noise."""
        units: int = math.ceil(rate * UNITS_PER_EPSILON)
        return max(1, units)


@dataclass(frozen=True, slots=True)
class GaussianKind:
    """Gaussian noise on the terms of a table.

    Parameters
    ----------
    terms : GaussianTerms
        The table's; before its first Gaussian noise, those that it would have.
    """

    terms: GaussianTerms
    is_gaussian: bool = True
    power: Power = Power.LINEAR
    units_max: int = PRECISION_UNITS_MAX

    def fresh(self, target: AccuracyTarget, multiplier: Fraction) -> int:
        """The units of `precision_for`."""
        return precision_for(target, multiplier).units

    def planned(
        self, block: QueryBlock, units: int, raised_from: int | None = None
    ) -> PlannedMeasurement:
        """A block at a precision."""
        return PlannedMeasurement(block, Precision(units), raised_from, self.terms)

    def cost(self, units: int, rows_per_unit: int = 1) -> Fraction:
        """Its precision is the rho of a record, which costs the order of the table."""
        return Fraction(rows_per_unit**2 * units, UNITS_PER_PRECISION) * self.terms.order

    def affordable(self, cost_units: int, rows_per_unit: int = 1) -> int:
        """What is left of the cost at the table's order, rounded down."""
        cost = Fraction(cost_units, UNITS_PER_EPSILON) / (rows_per_unit**2 * self.terms.order)
        return int(cost * UNITS_PER_PRECISION)

    def as_precise_as(self, rate: float) -> int:
        """Its variance is ``2 / rate**2``, its precision one over twice that."""
        return max(1, math.ceil(Fraction(rate**2) / 4 * int(UNITS_PER_PRECISION)))


@dataclass(frozen=True, slots=True)
class OfferedKinds:
    """The kinds of noise that may be bought for a table now.

    Parameters
    ----------
    kinds : tuple of NoiseKind
    opening : Fraction
        The epsilon that the table's first Gaussian noise costs beyond its own; 0 once it is paid.
    """

    kinds: tuple[NoiseKind, ...]
    opening: Fraction = Fraction(0)


LAPLACE: Final = LaplaceKind()
ONLY_LAPLACE: Final = OfferedKinds((LAPLACE,))


@dataclass(frozen=True, slots=True)
class GaussianOffer:
    """An owner's offer of Gaussian noise for SQL.

    Parameters
    ----------
    delta : Fraction
        The probability with which the promise may fail.
    expected : Fraction
        The epsilon for which the order is best, if it is all spent.
    is_declared : bool
        Whether the owner expects that to be spent; otherwise it is a guess.
    """

    delta: Fraction
    expected: Fraction
    is_declared: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1 or self.expected <= 0:
            raise ValueError(
                "delta must lie strictly between 0 and 1, and expected must be positive"
            )

    @property
    def first_terms(self) -> GaussianTerms:
        """The terms of a table's first Gaussian noise."""
        return GaussianAccount().terms_for(self.delta, self.expected)


def offered_kinds(
    offer: GaussianOffer | None, account: GaussianAccount, units_of_rows: int
) -> OfferedKinds:
    """What may be bought now.

    Parameters
    ----------
    offer : GaussianOffer, optional
        None if the owner offers none.
    account : GaussianAccount
        The table's Gaussian noise so far.
    units_of_rows : int
        What was spent on rows so far, in units of 2**-40 epsilon.
    """
    if offer is None:
        return ONLY_LAPLACE
    if account.terms is not None:
        if account.terms.delta != offer.delta:  # from before the owner changed their offer
            return ONLY_LAPLACE
        return OfferedKinds((LAPLACE, GaussianKind(account.terms)))
    terms = account.terms_for(offer.delta, offer.expected)
    opening = constant_of(terms)
    if not offer.is_declared and units_of_rows < opening * UNITS_PER_EPSILON:
        return ONLY_LAPLACE
    return OfferedKinds((LAPLACE, GaussianKind(terms)), opening)
