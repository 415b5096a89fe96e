"""What is released with Gaussian noise, and the terms on which it is accounted.

    NormalCounts    the rows of a block
    Distance        the same as with Laplace noise (statistic.py)

What is bought is `Rho`, zero-concentrated differential privacy, and not a weight of the history:
no query is estimated from these values. Together with what was paid in epsilon they make a table
(epsilon, delta)-private.

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

RHO_UNIT_BITS: Final = 60  # a unit would buy a deviation of a billion records for a count
UNITS_PER_RHO: Final = 2**RHO_UNIT_BITS
RHO_UNITS_MAX: Final = 2**63  # a rho of 8: a deviation of a quarter of a record is no noise
DELTA_MIN: Final = Fraction(1, 10**30)  # whoever wants less wants none
DELTA_MAX: Final = Fraction(1, 1000)  # each record may be shown with this probability
ORDER_UNIT_BITS: Final = 10  # of an order: finer than a price can tell
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
        """The largest rho not above `rho`, for who divides a budget."""
        return cls(int(Fraction(rho) * UNITS_PER_RHO))

    @property
    def exact(self) -> Fraction:
        """The rho as an exact number."""
        return Fraction(self.units, UNITS_PER_RHO)


@dataclass(frozen=True, slots=True)
class GaussianTerms:
    """On which terms all Gaussian noise of a table is accounted, once and for ever.

    Parameters
    ----------
    delta : Fraction
        The probability with which nothing is promised.
    order : Fraction
        The Renyi order at which rho is converted to epsilon: above 1, whole units of 2**-10. Any
        is sound; one is best for each epsilon.
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
    """The rows of a block, each released with Gaussian noise of its own.

    Parameters
    ----------
    block : QueryBlock
        Its query has whole coefficients and no constant.
    """

    block: QueryBlock

    def __post_init__(self) -> None:
        PlannedMeasurement(self.block, Weight(1))  # checks the block as that of a measured row


@dataclass(frozen=True, slots=True, eq=False)
class GaussianNoisyCounts:
    """The rows of a block with independent Gaussian noise of one standard deviation.

    They are no rows of the history: nothing that is asked in SQL is answered from them.
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
        What is paid for all of it.
    terms : GaussianTerms
        The table's; of a table that has none yet, those it is to have.
    """

    statistic: GaussianStatistic
    rho: Rho
    terms: GaussianTerms


Asked: TypeAlias = PlannedStatistic | PlannedGaussian
