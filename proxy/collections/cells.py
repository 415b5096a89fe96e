"""What a collection says of every cell of some attributes: shares, and the likeliest ones.

The likeliest shares of some attributes: nowhere below 0, and without intervals.

By the answers to one combination alone, the one that says most of these attributes; what others
say of them has a part in the unbiased shares of `cells`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge
from local_dp.campaign import Campaign, Level
from local_dp.estimates import CollectionEstimates, NotCovered, likeliest
from planner.sql import listed

N_CELLS_MAX = 4096


@dataclass(frozen=True, slots=True)
class EstimatedShare:
    """The share of the respondents in one cell.

    Parameters
    ----------
    levels : tuple of str, int, bool or None
        One of each attribute.
    share, low, high : float
        The unbiased estimate, which may be below 0, and an interval.
    half_width_together : float
        The farther end of a wider interval: those of all cells hold together (Bonferroni).
    method : str
        How the interval was found: binomial, bounded or normal.
    """

    levels: tuple[Level, ...]
    share: float
    low: float
    high: float
    half_width_together: float
    method: str


def estimated_shares(
    estimates: CollectionEstimates, attributes: Sequence[str], confidence: float
) -> list[EstimatedShare]:
    """The cells of some attributes, the last attribute's levels first.

    Raises
    ------
    InvalidRequest
        If the attributes were not asked about together, or nobody has answered.
    InvalidTarget, TooLarge
    """
    scope = shown_scope(estimates, attributes)
    sizes = estimates.campaign.sizes(scope)
    every = 1 - (1 - confidence) / math.prod(sizes)  # of each cell, for all of them together
    if not 0 < confidence <= every < 1:
        raise InvalidTarget("A confidence is above 0 and below 1.", hint="The usual one is 0.95.")
    labels = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
    try:
        answers = estimates.answer(QueryBlock(counting([]), Partition(scope, labels)))
    except NotCovered as error:
        raise uncovered(estimates.campaign, error) from None
    found = []
    for place, answer in zip(np.ndindex(*sizes), answers, strict=True):
        low, high = answer.interval(confidence)
        below, above = answer.interval(every)
        levels = levels_at(estimates, scope, place)
        n = estimates.n_respondents
        method = answer.method.value
        together = max(answer.value - below, above - answer.value) / n
        found.append(EstimatedShare(levels, answer.value / n, low / n, high / n, together, method))
    return found


def shown_scope(estimates: CollectionEstimates, attributes: Sequence[str]) -> Scope:
    """The attributes that are shown, in their order.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    campaign = estimates.campaign
    scope = tuple(sorted(set(attributes)))
    unknown = [name for name in scope if name not in campaign.by_name]
    if not scope or unknown:
        raise InvalidRequest(
            f"There is no attribute {unknown[0][:64]!a}." if unknown else "No attribute is named.",
            hint=f"Attributes of {campaign.name}: {listed(tuple(campaign.by_name))}.",
        )
    if campaign.n_cells(scope) > N_CELLS_MAX:
        raise TooLarge(f"At most {N_CELLS_MAX} cells are shown at once.", hint="Name fewer.")
    return scope


def levels_at(
    estimates: CollectionEstimates, scope: Scope, place: Sequence[int]
) -> tuple[Level, ...]:
    """The level of each attribute at a place of their table."""
    by_name = estimates.campaign.by_name
    return tuple(by_name[name].levels[at] for name, at in zip(scope, place, strict=True))


def uncovered(campaign: Campaign, error: NotCovered) -> InvalidRequest:
    """What is said of attributes that no combination with answers has together."""
    if not error.covered:
        return InvalidRequest("Nobody has answered yet.")
    if campaign.covering(error.scope):
        return InvalidRequest(
            f"Nobody has answered about {listed(error.scope)} yet.",
            hint=f"Answered until now: {_together(error.covered)}.",
        )
    asked = _together([one.scope for one in campaign.combinations])
    return InvalidRequest(
        f"Nobody was asked about {listed(error.scope)} together.", hint=f"Asked about: {asked}."
    )


def _together(scopes: Sequence[Scope]) -> str:
    return "; ".join(", ".join(scope) for scope in scopes)


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
