"""What is released with Gaussian noise and is no row of the history.

    GaussianCounts    the rows of a block: in older ledgers, where Gaussian rows were no history yet
    Distance          the same as with Laplace noise (statistic.py)

The price is a `Rho` of zero-concentrated differential privacy, not a weight of the history: no
query is estimated from these values. Together with what is spent in epsilon it makes the guarantee
of a table (epsilon, delta)-differential privacy.

Nothing here touches data, noise or budget.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.gaussian_terms import GaussianTerms, Rho
from cube.measurement import PlannedMeasurement, Weight
from cube.statistic import Distance, PlannedStatistic, PlannedUnitCount


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


Asked: TypeAlias = PlannedStatistic | PlannedGaussian | PlannedUnitCount
