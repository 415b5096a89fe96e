"""A plan for a collection: of epsilon, respondents and precision, two determine the third."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest, InvalidTarget
from local_dp.campaign import Attribute, Campaign
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.planning import (
    EPSILON_UNITS_MIN,
    epsilon_units_needed,
    half_width,
    respondents_needed,
)
from local_dp.views import PAIR
from proxy.collections.design import designed_campaign

N_GIVEN: Final = 2
N_RESPONDENTS_MAX: Final = 10**11  # more than there are people
CONFIDENCE: Final = 0.95
CHANNELS: Final = {
    RandomisedResponse: "randomised response",
    UnaryEncoding: "unary encoding",
    LocalHashing: "local hashing",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign, how many answer it, and how precise that is.

    Parameters
    ----------
    campaign : Campaign
    n_respondents : int
    confidence : float
    share : float, optional
        Of the cell whose precision it is; the least favourable one, if it is left out.
    """

    campaign: Campaign
    n_respondents: int
    confidence: float
    share: float | None = None

    def n_answers(self, place: int) -> int:
        """How many answer a combination, on average and rounded down; at least one."""
        return max(1, int(self.campaign.expected_share(place) * self.n_respondents))

    def half_width(self, place: int) -> float:
        """The half-width of the interval of a cell's share, the widest that there can be.

        Of a cell that has the plan's share, if there is one.
        """
        return half_width(
            self.campaign.combinations[place].channel,
            self.n_answers(place),
            confidence=self.confidence,
            share=self.share,
        )

    def channel_name(self, place: int) -> str:
        """How a combination is answered, in words."""
        return CHANNELS[type(self.campaign.combinations[place].channel)]

    def keep(self, place: int) -> float:
        """How often the truth is told: the true cell, its bucket, or (one half) its bit.

        This is what epsilon becomes. Otherwise a fake is told, which may be the truth as well.
        """
        channel = self.campaign.combinations[place].channel
        return 0.5 if isinstance(channel, UnaryEncoding) else float(channel.keep)

    @property
    def widest(self) -> float:
        """The half-width of the least precise combination."""
        places = range(len(self.campaign.combinations))
        alike = {
            (self.campaign.combinations[place].channel, self.n_answers(place)): place
            for place in places
        }
        return max(map(self.half_width, alike.values()))


def made_plan(  # noqa: PLR0913 - two of three numbers, and how
    attributes: Sequence[Attribute],
    *,
    epsilon: str | None,
    n_respondents: int | None,
    width: float | None,
    confidence: float = CONFIDENCE,
    size: int = PAIR,
    share: float | None = None,
) -> Plan:
    """The plan that two of three numbers determine.

    It holds whatever the shares of cells are, or for cells of a share that is given.

    Raises
    ------
    InvalidRequest, InvalidTarget
    """
    if sum(one is not None for one in (epsilon, n_respondents, width)) != N_GIVEN:
        raise InvalidRequest("Give two of epsilon, respondents and half-width.")
    named = "1" if epsilon is None else epsilon
    campaign = designed_campaign("plan", attributes, epsilon=named, size=size)
    if n_respondents is None and width is not None:
        n_respondents = respondents_needed(campaign, width, confidence=confidence, share=share)
    if n_respondents is None:
        raise AssertionError("two of three were given")
    if not 1 <= n_respondents <= N_RESPONDENTS_MAX:
        raise InvalidTarget(f"A plan is for 1 to {N_RESPONDENTS_MAX} respondents.")
    plan = Plan(campaign, n_respondents, confidence, share)
    if epsilon is not None or width is None:
        return plan
    units = _epsilon_units(plan, width)
    exact = designed_campaign(
        "plan", attributes, epsilon=f"{units / UNITS_PER_EPSILON:.12f}", size=size
    )
    return Plan(exact, n_respondents, confidence, share)


def _epsilon_units(plan: Plan, width: float) -> int:
    """The smallest epsilon at which every combination of a plan has the precision."""
    asked = {
        (plan.campaign.n_cells(one.scope), plan.n_answers(place))
        for place, one in enumerate(plan.campaign.combinations)
    }
    units: int = EPSILON_UNITS_MIN
    before = 0
    while units > before:  # again, as what is enough for one may be more than was for another
        before = units
        for n_cells, n_answers in sorted(asked, reverse=True):  # most cells need most, mostly
            units = epsilon_units_needed(
                n_cells,
                n_answers,
                width,
                confidence=plan.confidence,
                share=plan.share,
                at_least=units,
            )
    return units
