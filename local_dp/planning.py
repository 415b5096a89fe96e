"""Plans a collection from public numbers: precision, number of respondents, epsilon.

Variances are those that intervals of estimates are made of: of the channels, with the drawing of
respondents from a population; no answer is looked at. The shares that are to come are not known, so
that a plan is for the least favourable share of a cell, and holds whatever the shares are, unless a
share is given. (The variance of one cell is not largest at equal shares, only the mean of all is.)
"""

import math
from collections.abc import Callable

from scipy.special import ndtri

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidTarget
from local_dp.campaign import EPSILON_UNITS_MAX, Campaign
from local_dp.channels import Channel, RandomisedResponse, best_channel

EPSILON_UNITS_MIN = UNITS_PER_EPSILON // 1024


def half_width(
    channel: Channel,
    n_answers: int,
    *,
    confidence: float = 0.95,
    share: float | None = None,
    simultaneous: bool = False,
) -> float:
    """The half-width of the interval of a cell's share.

    Parameters
    ----------
    channel : Channel
    n_answers : int
        The number of answers to this combination.
    confidence : float
    share : float, optional
        That the cell will have; by default the least favourable one.
    simultaneous : bool
        Whether the intervals of all cells hold together, by Bonferroni.
    """
    if n_answers < 1:
        raise InvalidTarget("The number of answers must be at least 1.")
    return _quantile(channel, confidence, simultaneous=simultaneous) * math.sqrt(
        _variance(channel, share) / n_answers
    )


def answers_needed(
    channel: Channel,
    width: float,
    *,
    confidence: float = 0.95,
    share: float | None = None,
    simultaneous: bool = False,
) -> int:
    """The number of answers with which `half_width` is at most `width`.

    ``z**2 r (1 - r) / (p**2 width**2)`` for randomised response, with ``r`` the rate of the cell's
    answer. (The published rule leaves out ``p``, which is why its blocks never agreed.)

    Examples
    --------
    >>> from fractions import Fraction
    >>> from local_dp.channels.randomised_response import RandomisedResponse
    >>> answers_needed(RandomisedResponse.uniform(4, Fraction(1, 2)), 0.02)
    9604
    >>> answers_needed(RandomisedResponse.uniform(4, Fraction(1, 2)), 0.02, share=1 / 4)
    7203
    """
    if not 0 < width < 1:
        raise InvalidTarget(f"The half-width of a share must be above 0 and below 1, not {width}.")
    quantile = _quantile(channel, confidence, simultaneous=simultaneous)
    return max(1, math.ceil(quantile**2 * _variance(channel, share) / width**2))


def respondents_needed(
    campaign: Campaign,
    width: float,
    *,
    confidence: float = 0.95,
    share: float | None = None,
    simultaneous: bool = False,
) -> int:
    """The number of respondents with which every combination has the precision, on average.

    Each combination is answered by its `Campaign.expected_share` of them. `share` is as of
    `half_width`, of a cell in every combination.
    """
    asked = {
        (one.channel, campaign.expected_share(place))
        for place, one in enumerate(campaign.combinations)
    }
    return max(
        math.ceil(
            answers_needed(
                channel, width, confidence=confidence, share=share, simultaneous=simultaneous
            )
            / part
        )
        for channel, part in asked
    )


def epsilon_units_needed(  # noqa: PLR0913 - what is asked, and how sure
    n_cells: int,
    n_answers: int,
    width: float,
    *,
    confidence: float = 0.95,
    share: float | None = None,
    at_least: int = EPSILON_UNITS_MIN,
) -> int:
    """The smallest epsilon, in units of 2**-40, at which the best channel has the precision.

    More epsilon is more precise as long as the channel is of one kind. But channels are chosen by
    their mean variance: where randomised response takes over, the least favourable share is known
    less well for a while.

    Parameters
    ----------
    n_cells, n_answers : int
    width, confidence : float
    share : float, optional
        The share of the cell, as in `half_width`.
    at_least : int
        An epsilon that is not gone below, such as that of another combination.

    Raises
    ------
    InvalidTarget
        If no epsilon that is private is enough.
    """
    if not 0 < width < 1 or n_answers < 1:
        raise InvalidTarget(
            "The half-width must lie strictly between 0 and 1, and the number of answers "
            "must be at least 1."
        )

    def is_enough(units: int) -> bool:
        channel = best_channel(n_cells, units)
        return half_width(channel, n_answers, confidence=confidence, share=share) <= width

    if is_enough(at_least):
        return at_least

    def is_response(units: int) -> bool:
        return isinstance(best_channel(n_cells, units), RandomisedResponse)

    low = at_least
    if not is_response(low) and is_response(EPSILON_UNITS_MAX):
        before, low = _first(is_response, low, EPSILON_UNITS_MAX)
        if is_enough(before):
            return _first(is_enough, at_least, before)[1]
        if is_enough(low):
            return low
    if not is_enough(EPSILON_UNITS_MAX):
        raise InvalidTarget(
            f"No epsilon gives a half-width of {width} with {n_answers} answers. Plan for "
            "more answers."
        )
    return _first(is_enough, low, EPSILON_UNITS_MAX)[1]


def _first(holds: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """Two numbers close together: it does not hold at the first, as at `low`, but at the second."""
    while high - low > UNITS_PER_EPSILON >> 20:  # a millionth is as exact as anybody needs
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _variance(channel: Channel, share: float | None) -> float:
    """Of one answer's part in the share of the least precise cell."""
    if share is not None and not 0 <= share <= 1:
        raise InvalidTarget(f"A share must be from 0 to 1, not {share}.")
    return channel.share_variance(share)


def _quantile(channel: Channel, confidence: float, *, simultaneous: bool) -> float:
    if not 0 < confidence < 1:
        raise InvalidTarget(f"The confidence must be above 0 and below 1, not {confidence}.")
    beyond = (1 - confidence) / (channel.n_cells if simultaneous else 1)
    return float(-ndtri(beyond / 2))
