"""What may be known of a collection: its campaign, who may answer, and how many have."""

from dataclasses import dataclass

from local_dp.campaign import Campaign


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a respondent is asked.

    Parameters
    ----------
    campaign : str
        The campaign's text, of which the respondent's device checks everything on its own.
    digest : str
        Its SHA-256, which an answer has to say.
    """

    campaign: str
    digest: str


@dataclass(frozen=True, slots=True)
class CollectionStatus:
    """A collection, as owners and analysts see it.

    Parameters
    ----------
    campaign : Campaign
    digest : str
        Of the campaign's text.
    n_respondents_max : int
    is_by_invitation : bool
        Whether only tokens that the owner has handed out count.
    is_closed : bool
    n_respondents : int
        How many have answered: a number that is not private, as an answer hides the row and not
        that somebody took part.
    opened_by : str
    """

    campaign: Campaign
    digest: str
    n_respondents_max: int
    is_by_invitation: bool
    is_closed: bool
    n_respondents: int
    opened_by: str

    @property
    def name(self) -> str:
        """Its name, which no table has."""
        return self.campaign.name
