"""A plan for a collection: of epsilon, respondents and precision, two determine the third."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidRequest
from local_dp.campaign import Attribute, Campaign
from local_dp.planning import epsilon_units_needed, half_width, respondents_needed
from proxy.cli.collection_design import designed_campaign

N_GIVEN: Final = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign, how many answer it, and how precise that is.

    Parameters
    ----------
    campaign : Campaign
    n_respondents : int
    confidence : float
    """

    campaign: Campaign
    n_respondents: int
    confidence: float

    def n_answers(self, place: int) -> int:
        """How many answer a combination, on average and rounded down; at least one."""
        return max(1, int(self.campaign.expected_share(place) * self.n_respondents))

    def half_width(self, place: int) -> float:
        """The half-width of the interval of a cell's share, where all cells have equal shares."""
        channel = self.campaign.combinations[place].channel
        return half_width(channel, self.n_answers(place), confidence=self.confidence)

    @property
    def widest(self) -> float:
        """That of the least precise combination."""
        return max(self.half_width(place) for place in range(len(self.campaign.combinations)))


def made_plan(  # noqa: PLR0913 - two of three numbers, and how
    attributes: Sequence[Attribute],
    *,
    epsilon: str | None,
    n_respondents: int | None,
    width: float | None,
    confidence: float,
    size: int,
) -> Plan:
    """The plan that two of three numbers determine.

    Raises
    ------
    InvalidRequest, InvalidTarget
    """
    if sum(one is not None for one in (epsilon, n_respondents, width)) != N_GIVEN:
        raise InvalidRequest("Give two of --epsilon, --respondents and --half-width.")
    named = "1" if epsilon is None else epsilon
    campaign = designed_campaign("plan", attributes, epsilon=named, size=size)
    if n_respondents is None and width is not None:
        n_respondents = respondents_needed(campaign, width, confidence=confidence)
    if n_respondents is None:
        raise AssertionError("two of three were given")
    plan = Plan(campaign, n_respondents, confidence)
    if epsilon is not None or width is None:
        return plan
    units = max(
        epsilon_units_needed(
            campaign.n_cells(one.scope), plan.n_answers(place), width, confidence=confidence
        )
        for place, one in enumerate(campaign.combinations)
    )
    exact = designed_campaign(
        "plan", attributes, epsilon=f"{units / UNITS_PER_EPSILON:.12f}", size=size
    )
    return Plan(exact, n_respondents, confidence)
