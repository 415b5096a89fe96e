"""The likeliest shares of some attributes: nowhere below 0, and without intervals.

By the answers to one combination alone, the one that says most of these attributes; what others
say of them has a part in the unbiased shares of `cells`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cube.query import Scope
from local_dp.campaign import Level
from local_dp.estimates.collection import CollectionEstimates, NotCovered
from local_dp.estimates.likelihood import likeliest
from proxy.collections.cells import levels_at, shown_scope, uncovered


@dataclass(frozen=True, slots=True)
class LikeliestShares:
    """The likeliest share of the respondents in each cell.

    Parameters
    ----------
    cells : tuple of (levels, share)
        One level of each attribute; shares are not below 0, and add up to 1.
    combination : tuple of str
        The attributes of the combination whose answers they are the likeliest by.
    n_answers : int
        To that combination.
    gap : float
        By how much the logarithm of the likelihood may at most be below its greatest.
    """

    cells: tuple[tuple[tuple[Level, ...], float], ...]
    combination: Scope
    n_answers: int
    gap: float


def likeliest_shares(estimates: CollectionEstimates, attributes: Sequence[str]) -> LikeliestShares:
    """The cells of some attributes, the last attribute's levels first.

    Raises
    ------
    InvalidRequest
        If the attributes were not asked about together, or nobody has answered.
    TooLarge, TooSlow
    """
    scope, campaign = shown_scope(estimates, attributes), estimates.campaign
    try:
        holder = estimates.most_precise(scope)
    except NotCovered as error:
        raise uncovered(estimates.campaign, error) from None
    wide = campaign.combinations[holder].scope
    found = likeliest(estimates.estimates[holder])
    summed = tuple(axis for axis, name in enumerate(wide) if name not in scope)
    shares = found.shares.reshape(campaign.sizes(wide)).sum(axis=summed)
    cells = tuple(
        (levels_at(estimates, scope, place), float(shares[place]))
        for place in np.ndindex(*campaign.sizes(scope))
    )
    return LikeliestShares(cells, wide, estimates.estimates[holder].n_answers, found.gap)
