"""Published vectors of the respondent's side: entropy in, answer out, for other languages.

``python -m tests.support.answer_vectors`` writes them to `PATH`. Each has the text of a campaign, a
row, the bytes of entropy in hexadecimal digits, and the answer; the bytes are used up exactly.
The last ones have levels that their campaign does not list.
"""

import json
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import (
    Attribute,
    Campaign,
    Combination,
    campaign_text,
    designed_views,
    planned_campaign,
)
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.respondent import Entropy, Level, check_campaign, randomised
from tests.support.collections_of_answers import survey_campaign

PATH = Path(__file__).parent.parent / "local_dp" / "vectors.json"
N_OF_EACH = 6


class Tape:
    """Bytes that are known, and how many of them were read."""

    def __init__(self, tape: bytes) -> None:
        self._tape = tape
        self.n_read = 0

    def read(self, n_bytes: int) -> bytes:
        """The next bytes."""
        found = self._tape[self.n_read : self.n_read + n_bytes]
        assert len(found) == n_bytes, "the tape is too short"
        self.n_read += n_bytes
        return found


def campaigns() -> list[Campaign]:
    """Every channel, several combinations of a view, many views, levels of every JSON type."""
    mixed = (Attribute("m", ("é", "\u2028", 0, False, None, -(2**53) + 1)),)
    wide = (Attribute("w", tuple(range(40))),)
    three = tuple(Attribute(name, (False, True, None)) for name in "abc")
    epsilon = UNITS_PER_EPSILON
    weighted = RandomisedResponse((5, 1, 1, 2, 7, 3), Fraction(2, 37))
    response = RandomisedResponse.for_epsilon((1,) * 3, epsilon)
    return [
        Campaign("weighted", mixed, (Combination(("m",), weighted),), ((0,),), epsilon),
        Campaign(
            "bits",
            wide,
            (Combination(("w",), UnaryEncoding.for_epsilon(40, epsilon)),),
            ((0,),),
            epsilon,
        ),
        Campaign(
            "hashes",
            wide,
            (Combination(("w",), LocalHashing.for_epsilon(40, 2 * epsilon)),),
            ((0,),),
            2 * epsilon,
        ),
        Campaign(
            "two of three",
            three,
            tuple(Combination((name,), response) for name in "abc"),
            ((0, 1, 2), (2, 0)),
            2 * epsilon,
            2,
        ),
        survey_campaign(epsilon),
        replace(survey_campaign(epsilon, n_answered=3), name="all of a view"),
        planned_campaign("triples", three, designed_views("abc", 3), epsilon_units=epsilon // 2),
    ]


def unlisted() -> list[tuple[Campaign, dict[str, Level]]]:
    """Rows with levels that are not listed: of another type, another text, one of three, all."""
    weighted, _, hashes, two_of_three, survey, *_ = campaigns()
    answers: dict[str, Level] = {"A": "young", "E": "high", "O": "emp", "R": "big", "S": "F"}
    return [
        (weighted, {"m": "no such level"}),
        (weighted, {"m": True}),
        (hashes, {"w": "7"}),
        (two_of_three, {"a": 0, "b": True, "c": "true"}),
        (survey, {**answers, "T": None}),
    ]


def tape_of(seed: str) -> bytes:
    return b"".join(sha256(seed.encode() + bytes([block])).digest() for block in range(40))


def vector(campaign: Campaign, row: dict[str, Level], tape: bytes) -> dict[str, Any]:
    text, reader = campaign_text(campaign), Tape(tape)
    answer = randomised(check_campaign(text), row, Entropy(reader.read).below)
    used = tape[: reader.n_read].hex()
    return {"campaign": text, "row": row, "entropy": used, "answer": answer}


def vectors() -> list[dict[str, Any]]:
    """All vectors, always the same."""
    found = []
    for campaign in campaigns():
        for number in range(N_OF_EACH):
            tape = tape_of(f"{campaign.name} {number}")
            row: dict[str, Level] = {
                one.name: one.levels[tape[place] % len(one.levels)]
                for place, one in enumerate(campaign.attributes)
            }
            found.append(vector(campaign, row, tape))
    for campaign, row in unlisted():
        found += [
            vector(campaign, row, tape_of(f"{campaign.name} {row} unlisted {number}"))
            for number in range(N_OF_EACH)
        ]
    return found


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), indent=1) + "\n")
