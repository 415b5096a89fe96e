"""Prices of Gaussian noise, and the terms on which a table's privacy loss by it is accounted.

    Rho          what a whole release costs, in zero-concentrated differential privacy
    Precision    what a row costs for each squared unit by which one record moves it
    GaussianTerms    the delta and the order at which rho becomes epsilon, one pair a table

Nothing here touches data, noise or budget.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

RHO_UNIT_BITS: Final = 60  # one unit gives a count a standard deviation near a billion records
UNITS_PER_RHO: Final = 2**RHO_UNIT_BITS
RHO_UNITS_MAX: Final = 2**63  # a rho of 8: a deviation of a quarter of a record is no noise
DELTA_MIN: Final = Fraction(1, 10**30)  # less is practically zero
DELTA_MAX: Final = Fraction(1, 1000)  # a record may be exposed with this probability
ORDER_UNIT_BITS: Final = 10  # of an order: finer than any price shows
ORDER_MAX: Final = 2**20


@dataclass(frozen=True, slots=True, order=True)
class Rho:
    """Zero-concentrated differential privacy, in units of 2**-60.

    >>> Rho.at_most(0.5).exact
    Fraction(1, 2)
    """

    units: int

    def __post_init__(self) -> None:
        if type(self.units) is not int:
            raise TypeError("a rho is a whole number of units")
        if not 0 < self.units <= RHO_UNITS_MAX:
            raise ValueError(f"a rho is 1 to {RHO_UNITS_MAX} units, not {self.units}")

    @classmethod
    def at_most(cls, rho: float | Fraction) -> "Rho":
        """The largest rho not above `rho`, for callers that divide a budget."""
        return cls(int(Fraction(rho) * UNITS_PER_RHO))

    @property
    def exact(self) -> Fraction:
        """The rho as an exact number."""
        return Fraction(self.units, UNITS_PER_RHO)


@dataclass(frozen=True, slots=True)
class GaussianTerms:
    """The terms on which all Gaussian noise of a table is accounted; they never change.

    Parameters
    ----------
    delta : Fraction
        The probability with which the epsilon guarantee may fail.
    order : Fraction
        The Renyi order at which rho is converted to epsilon: above 1, in whole units of 2**-10.
        Every order is sound; for each epsilon one of them is best.
    """

    delta: Fraction
    order: Fraction

    def __post_init__(self) -> None:
        if not DELTA_MIN <= self.delta <= DELTA_MAX:
            raise ValueError("a delta is 1e-30 to 1e-3")
        if not 1 < self.order <= ORDER_MAX or 2**ORDER_UNIT_BITS % self.order.denominator:
            raise ValueError("an order is above 1, in units of 2**-10, up to 2**20")


PRECISION_UNIT_BITS: Final = 100  # fine enough for sums of billions, in cents
UNITS_PER_PRECISION: Final = 2**PRECISION_UNIT_BITS
PRECISION_UNITS_MAX: Final = 8 * UNITS_PER_PRECISION  # as for a rho: more is no noise


@dataclass(frozen=True, slots=True, order=True)
class Precision:
    """The rho that a row costs a cell for each squared unit of its coefficient, in 2**-100.

    It is half of one over the variance of the row's Gaussian noise: of two independent values of a
    row, the precisions add up, and so do their costs.

    >>> Precision.at_least(Fraction(1, 8)).exact
    Fraction(1, 8)
    """

    units: int

    def __post_init__(self) -> None:
        if type(self.units) is not int:
            raise TypeError("a precision is a whole number of units")
        if not 0 < self.units <= PRECISION_UNITS_MAX:
            raise ValueError(f"a precision is 1 to {PRECISION_UNITS_MAX} units, not {self.units}")

    @classmethod
    def at_least(cls, rho: float | Fraction) -> "Precision":
        """The smallest precision not below `rho`: rounding goes towards more cost."""
        exact = Fraction(rho) * UNITS_PER_PRECISION
        return cls(max(1, -(-exact.numerator // exact.denominator)))

    @property
    def exact(self) -> Fraction:
        """The precision as an exact number."""
        return Fraction(self.units, UNITS_PER_PRECISION)
