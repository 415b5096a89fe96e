"""How large a collection may be: at how many places its answers are counted, of all combinations.

Respondents decide which of them have answers, so whoever opens a campaign makes its servers hold
that many numbers, and whoever reads its counts is sent them.
"""

from typing import Final

from cube.refusals import TooLarge
from local_dp.campaign import Campaign

N_PLACES_MAX: Final = 2**24  # 128 MB of counts


def n_places_of(campaign: Campaign) -> int:
    """At how many places the answers to a campaign are counted."""
    return sum(one.channel.n_tallies for one in campaign.combinations)


def check_size(campaign: Campaign) -> None:
    """Refuse a campaign whose answers would be counted at too many places.

    Raises
    ------
    TooLarge
    """
    n_places = n_places_of(campaign)
    if n_places > N_PLACES_MAX:
        raise TooLarge(
            f"The answers to {campaign.name} are counted at {n_places} places, and those to a "
            f"collection at {N_PLACES_MAX} at most.",
            hint="Give attributes fewer levels, or ask about fewer of them together: --size 1.",
        )
