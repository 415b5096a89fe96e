"""Statistics with Gaussian noise over the table of seven people."""

from fractions import Fraction

from accountant.cost.zcdp_account import best_terms
from cube.measurement import GaussianTerms, Rho
from cube.query import QueryBlock
from cube.statistic import GaussianCounts, GaussianStatistic, PlannedGaussian
from tests.support.seven_people import BY_SEX

BILLIONTH = Fraction(1, 10**9)
TERMS = best_terms(BILLIONTH, Fraction(1, 2))
RHO = Rho.at_most(Fraction(1, 1000))
COUNTS = GaussianCounts(BY_SEX)


def with_gaussian_noise(
    *statistics: GaussianStatistic | QueryBlock, rho: Rho = RHO, terms: GaussianTerms = TERMS
) -> list[PlannedGaussian]:
    """Each of them at a rho."""
    asked = (GaussianCounts(one) if isinstance(one, QueryBlock) else one for one in statistics)
    return [PlannedGaussian(one, rho, terms) for one in asked]
