"""Plans for a collection, from public numbers alone: precision, respondents, epsilon.

Variances are those of the channels, with what randomisation adds; no answer is looked at. The
shares that are to come are not known, so that a plan is made for equal ones, or for a given one.
"""

import math

import numpy as np
from scipy.special import ndtri

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidTarget
from local_dp.campaign import EPSILON_UNITS_MAX, Campaign
from local_dp.channels.channel import Channel
from local_dp.channels.choice import best_channel

N_CELLS_LOOKED_AT = 64  # of which the least precise is planned for; in most channels all are alike
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
        To this combination.
    confidence : float
    share : float, optional
        That the cell will have; the others have equal parts of the rest. By default all are equal.
    simultaneous : bool
        Whether the intervals of all cells hold together, by Bonferroni.
    """
    if n_answers < 1:
        raise InvalidTarget("A half-width is planned for at least one answer.")
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
    7203
    """
    if not 0 < width < 1:
        raise InvalidTarget(f"The half-width of a share is above 0 and below 1, not {width}.")
    quantile = _quantile(channel, confidence, simultaneous=simultaneous)
    return max(1, math.ceil(quantile**2 * _variance(channel, share) / width**2))


def respondents_needed(
    campaign: Campaign, width: float, *, confidence: float = 0.95, simultaneous: bool = False
) -> int:
    """The number of respondents with which every combination has the precision, on average.

    Each combination is answered by its `Campaign.expected_share` of them.
    """
    shares = {
        (one.channel, campaign.expected_share(place))
        for place, one in enumerate(campaign.combinations)
    }
    return max(
        math.ceil(
            answers_needed(channel, width, confidence=confidence, simultaneous=simultaneous) / share
        )
        for channel, share in shares
    )


def epsilon_units_needed(
    n_cells: int,
    n_answers: int,
    width: float,
    *,
    confidence: float = 0.95,
    at_least: int = EPSILON_UNITS_MIN,
) -> int:
    """The smallest epsilon, in units of 2**-40, at which the best channel has the precision.

    Parameters
    ----------
    n_cells, n_answers : int
    width, confidence : float
    at_least : int
        An epsilon that is not gone below, such as that of another combination.

    Raises
    ------
    InvalidTarget
        If no epsilon that is private is enough.
    """
    low: int = at_least
    high: int = EPSILON_UNITS_MAX
    if not 0 < width < 1 or n_answers < 1:
        raise InvalidTarget("A half-width between 0 and 1, and at least one answer, are needed.")

    def is_enough(units: int) -> bool:
        return half_width(best_channel(n_cells, units), n_answers, confidence=confidence) <= width

    if not is_enough(high):
        raise InvalidTarget(f"{n_answers} answers are too few for {width} at any epsilon.")
    if is_enough(low):
        return low
    while high - low > UNITS_PER_EPSILON >> 20:  # a millionth is as exact as anybody needs
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _variance(channel: Channel, share: float | None) -> float:
    """Of one answer's part in the share of the least precise cell."""
    n_cells = channel.n_cells
    n_looked_at = min(n_cells, N_CELLS_LOOKED_AT)
    if share is None:
        rates = channel.rates(np.full(n_cells, 1 / n_cells))
        return float(channel.variances(np.eye(n_cells, n_looked_at), rates).max())
    if not 0 <= share <= 1:
        raise InvalidTarget(f"A share is from 0 to 1, not {share}.")
    widest = 0.0
    for cell in range(n_looked_at):
        shares = np.full(n_cells, (1 - share) / (n_cells - 1))
        shares[cell] = share
        one = np.zeros((n_cells, 1))
        one[cell] = 1.0
        widest = max(widest, float(channel.variances(one, channel.rates(shares))[0]))
    return widest


def _quantile(channel: Channel, confidence: float, *, simultaneous: bool) -> float:
    if not 0 < confidence < 1:
        raise InvalidTarget(f"A confidence is above 0 and below 1, not {confidence}.")
    beyond = (1 - confidence) / (channel.n_cells if simultaneous else 1)
    return float(-ndtri(beyond / 2))
