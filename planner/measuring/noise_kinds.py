"""The kinds of noise that a measurement may have, as the planner weighs them.

    Laplace     a weight: epsilon for each unit of a row's coefficient
    Gaussian    a precision: rho for each squared unit; where the table's owner offers a delta

What a measurement needs is searched in whole units of either (`weights.py`), and priced by the
gate. Nothing here draws noise, or knows what was measured.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

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
from cube.target import AccuracyTarget
from planner.measuring.weights import Power, precision_for, weight_for


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
