"""What may be known of a collection: its campaign, its size, its name.

How large a collection may be: at how many places its answers are counted, of all combinations.

Respondents decide which of them have answers. So opening a campaign makes its servers hold that
many numbers, and reading its counts sends that many.

What a new collection may be called: a table's name that SQL needs no quotes for, and no other's.

A collection keeps its name for ever, so that what is no good as one is refused before it is noted.
Those that a ledger has already are read as they are.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from cube.refusals import InvalidRequest, NameTaken, TooLarge
from local_dp.campaign import Campaign
from planner.domain import PRIVACY_SCHEMA
from planner.sql import is_new_name, shortened
from proxy.api import DB_SCHEMA

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


SCHEMAS: Final = frozenset({PRIVACY_SCHEMA, DB_SCHEMA, "pg_catalog", "information_schema"})


def check_new_name(name: str, synthetic: Collection[str]) -> None:
    """Refuse a name that would mean something else, or nothing, in SQL.

    Parameters
    ----------
    synthetic : collection of str
        The names of synthetic tables that the creator may know of.

    Raises
    ------
    InvalidRequest, NameTaken
    """
    if not is_new_name(name) or name.casefold() in SCHEMAS:
        raise InvalidRequest(
            f"{shortened(name)!a} cannot be the name of a collection.",
            hint="Use letters, digits and _, not starting with a digit, and neither an SQL keyword "
            "nor a schema's name: it is a table in SQL.",
        )
    if name.casefold() in {one.casefold() for one in synthetic}:
        raise NameTaken(
            f"{name} is the name of a synthetic table.",
            hint="Take another name: this one would then stand for the collection.",
        )


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a respondent is asked.

    Parameters
    ----------
    campaign : str
        The campaign's text; the respondent's device checks all of it on its own.
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
    digest : str
        The digest of the campaign's text.
    is_by_invitation : bool
        Whether only tokens that the owner has handed out count.
    n_respondents : int
        How many have answered: a number that is not private, as an answer hides the row and not
        that somebody took part.
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
