"""Whether Gaussian noise may be bought for a table now, on which terms, and what it costs to begin.

The first Gaussian noise of a table pays a constant, and fixes the order at which all of it is
accounted for good. An owner who says what they expect to be spent has chosen the order, and it is
begun at once. Otherwise it is begun once as much was spent on rows as the constant costs: as with
ski rental, at most twice is then spent of what Laplace noise alone would have cost.

Decided from charges and settings alone. Nothing here buys anything.
"""

from dataclasses import dataclass
from fractions import Fraction

from accountant.cost.zcdp_account import GaussianAccount, constant_of
from cube.measurement import UNITS_PER_EPSILON
from planner.measuring.noise_kinds import LAPLACE, ONLY_LAPLACE, GaussianKind, OfferedKinds


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
            raise ValueError("a delta is a probability, and what is expected is positive")


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
