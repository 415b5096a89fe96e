"""Statistics with normal noise over the table of seven people."""

from fractions import Fraction

from accountant.cost.zcdp_account import best_terms
from cube.block import QueryBlock
from cube.gaussian import NormalCounts, NormalStatistic, NormalTerms, PlannedNormal, Rho
from tests.support.seven_people import BY_SEX

BILLIONTH = Fraction(1, 10**9)
TERMS = best_terms(BILLIONTH, Fraction(1, 2))
RHO = Rho.at_most(Fraction(1, 1000))
COUNTS = NormalCounts(BY_SEX)


def normally(
    *statistics: NormalStatistic | QueryBlock, rho: Rho = RHO, terms: NormalTerms = TERMS
) -> list[PlannedNormal]:
    """Each of them at a rho."""
    asked = (NormalCounts(one) if isinstance(one, QueryBlock) else one for one in statistics)
    return [PlannedNormal(one, rho, terms) for one in asked]
