"""Reads and checks the answer that a respondent sent, so that it can be counted.

A submission says which view was drawn and what was answered to which combinations, and nothing
else. It is refused whole unless it is one that the campaign's respondents can have sent; it says
nothing of who sent it, which is the server's to forget.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from cube.refusals import InvalidRequest
from local_dp.campaign import Campaign

HEXADECIMAL = re.compile(r"0|[1-9a-f][0-9a-f]*")
N_DIGITS_MAX = 1024  # of an answer by unary encoding with the most cells
N_CHARACTERS_MAX = 2**20


@dataclass(frozen=True)
class Submission:
    """An answer to a campaign.

    Parameters
    ----------
    view : int
    answers : tuple of (int, int)
        The places of the combinations that were answered, in rising order, and the answers.
    """

    view: int
    answers: tuple[tuple[int, int], ...]

    def counted_at(self, campaign: Campaign) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """For each combination, where its tally counts one more."""
        return tuple(
            (place, campaign.combinations[place].channel.tallies_of(answer))
            for place, answer in self.answers
        )


def read_submission(campaign: Campaign, digest: str, text: str) -> Submission:
    """The submission of a text.

    Parameters
    ----------
    campaign : Campaign
    digest : str
        Its name, which the text has to say.
    text : str

    Raises
    ------
    InvalidRequest
        If it is not one answer to each of as many combinations of one view as are asked for, or an
        answer is none of its channel's. The message quotes nothing of it.
    """
    if len(text) > N_CHARACTERS_MAX:
        raise InvalidRequest(f"An answer may have at most {N_CHARACTERS_MAX} characters.")
    try:
        value = json.loads(text)
        _require(isinstance(value, dict) and value.keys() == {"campaign", "view", "answers"})
        _require(value["campaign"] == digest)
        view = value["view"]
        _require(type(view) is int and 0 <= view < len(campaign.views))
        _require(isinstance(value["answers"], list))
        answers = tuple(_answer(one) for one in value["answers"])
        places = [place for place, _ in answers]
        _require(len(places) == campaign.n_answered and places == sorted(set(places)))
        _require(set(places) <= set(campaign.views[view]))
        found = Submission(view, answers)
        found.counted_at(campaign)
    except (ValueError, TypeError, RecursionError):
        raise InvalidRequest(
            "The text is not a valid answer to the campaign.",
            hint="An answer must name the campaign's digest and one of its views, and answer as "
            "many combinations of that view as the campaign asks for, each once.",
        ) from None
    return found


def _answer(value: Any) -> tuple[int, int]:
    place, answer = value
    _require(type(place) is int and isinstance(answer, str) and len(answer) <= N_DIGITS_MAX)
    _require(HEXADECIMAL.fullmatch(answer) is not None)
    return place, int(answer, 16)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError
