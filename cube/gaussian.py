"""What is released with Gaussian noise, and the terms on which its privacy loss is accounted.

    GaussianCounts    the rows of a block
    Distance          the same as with Laplace noise (statistic.py)

The price is a `Rho` of zero-concentrated differential privacy, not a weight of the history: no
query is estimated from these values. Together with what is spent in epsilon it makes the guarantee
of a table (epsilon, delta)-differential privacy.

Nothing here touches data, noise or budget.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.measurement import PlannedMeasurement, Weight
from cube.statistic import Distance, PlannedStatistic

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


@dataclass(frozen=True, slots=True, eq=False)
class GaussianCounts:
    """The rows of a block, each released with independent Gaussian noise.

    Parameters
    ----------
    block : QueryBlock
        Its query has whole coefficients and no constant.
    """

    block: QueryBlock

    def __post_init__(self) -> None:
        PlannedMeasurement(self.block, Weight(1))  # raises unless the block can be measured


@dataclass(frozen=True, slots=True, eq=False)
class GaussianNoisyCounts:
    """The rows of a block with independent Gaussian noise of one standard deviation.

    They are not rows of the history: no SQL query is answered from them.
    """

    block: QueryBlock
    values: NDArray[np.float64]
    deviation: float


GaussianStatistic: TypeAlias = GaussianCounts | Distance


@dataclass(frozen=True, slots=True, eq=False)
class PlannedGaussian:
    """A statistic to release with Gaussian noise.

    Parameters
    ----------
    statistic : GaussianCounts or Distance
    rho : Rho
        The price of the whole statistic.
    terms : GaussianTerms
        The table's terms; for a table without Gaussian noise so far, those that it will have.
    """

    statistic: GaussianStatistic
    rho: Rho
    terms: GaussianTerms


Asked: TypeAlias = PlannedStatistic | PlannedGaussian
