"""A campaign as canonical JSON text, and back; its digest is its name for ever.

The text is what respondents read, in whatever language they are written: probabilities are
``"numerator/denominator"``, all other numbers are whole and below 2**53. Reading checks everything
that making a campaign checks, and refuses what it does not know.
"""

import json
import re
from fractions import Fraction
from hashlib import sha256
from typing import Any

from cube.encoding import canonical_json
from cube.refusals import InvalidRequest
from local_dp.campaign import Attribute, Campaign, Combination
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding

FORMAT = 1
N_CHARACTERS_MAX = 2**24
PROBABILITY = re.compile(r"([0-9]{1,40})/([0-9]{1,40})")


def campaign_text(campaign: Campaign) -> str:
    """The one JSON text of a campaign."""
    return canonical_json(
        {
            "format": FORMAT,
            "name": campaign.name,
            "attributes": [
                {"name": one.name, "levels": list(one.levels)} for one in campaign.attributes
            ],
            "combinations": [
                {"attributes": list(one.scope), "channel": _channel_json(one.channel)}
                for one in campaign.combinations
            ],
            "views": [list(view) for view in campaign.views],
            "answers": campaign.n_answered,
            "epsilon": campaign.epsilon_units,
        }
    )


def campaign_digest(text: str) -> str:
    """The name of a campaign: the SHA-256 of its text, in hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


def read_campaign(text: str) -> Campaign:
    """The campaign of a text.

    Raises
    ------
    InvalidRequest
        If the text is no campaign, or one that does not hold what it has to.
    """
    if len(text) > N_CHARACTERS_MAX:
        raise InvalidRequest(f"A campaign is at most {N_CHARACTERS_MAX} characters long.")
    try:
        value = json.loads(text)
        fields = _fields(
            value, {"format", "name", "attributes", "combinations", "views", "answers", "epsilon"}
        )
        if fields["format"] != FORMAT:
            raise ValueError(f"format {fields['format']!r} is not known")  # noqa: TRY301
        campaign = Campaign(
            _text(fields["name"]),
            tuple(_attribute(one) for one in _list(fields["attributes"])),
            _combinations(fields["combinations"], fields["attributes"]),
            tuple(tuple(_whole(place) for place in _list(view)) for view in _list(fields["views"])),
            _whole(fields["epsilon"]),
            _whole(fields["answers"]),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"This is no campaign: {error}.") from None
    if campaign_text(campaign) != text:
        raise InvalidRequest("A campaign has one text: sorted keys, no spaces, lowest terms.")
    return campaign


def _channel_json(channel: AnyChannel) -> dict[str, Any]:
    match channel:
        case RandomisedResponse():
            return {
                "kind": "randomised_response",
                "keep": _ratio(channel.keep),
                "weights": list(channel.weights),
            }
        case UnaryEncoding():
            return {"kind": "unary_encoding", "noise": _ratio(channel.noise)}
        case LocalHashing():
            return {
                "kind": "local_hashing",
                "keep": _ratio(channel.keep),
                "buckets": channel.n_buckets,
            }


def _attribute(value: object) -> Attribute:
    fields = _fields(value, {"name", "levels"})
    return Attribute(_text(fields["name"]), tuple(_list(fields["levels"])))


def _combinations(value: object, attributes: object) -> tuple[Combination, ...]:
    sizes = {
        one["name"]: len(one["levels"])
        for one in _list(attributes)  # read before as attributes, so that these fields are there
    }
    found = []
    for one in _list(value):
        fields = _fields(one, {"attributes", "channel"})
        scope = tuple(_text(name) for name in _list(fields["attributes"]))
        n_cells = 1
        for name in scope:
            if name not in sizes:
                raise ValueError(f"no attribute is called {name}")
            n_cells *= sizes[name]
        found.append(Combination(scope, _channel(fields["channel"], n_cells)))
    return tuple(found)


def _channel(value: object, n_cells: int) -> AnyChannel:
    kind = value.get("kind") if isinstance(value, dict) else None
    match kind:
        case "randomised_response":
            fields = _fields(value, {"kind", "keep", "weights"})
            weights = tuple(_whole(weight) for weight in _list(fields["weights"]))
            return RandomisedResponse(weights, _probability(fields["keep"]))
        case "unary_encoding":
            fields = _fields(value, {"kind", "noise"})
            return UnaryEncoding(n_cells, _probability(fields["noise"]))
        case "local_hashing":
            fields = _fields(value, {"kind", "keep", "buckets"})
            buckets = _whole(fields["buckets"])
            return LocalHashing(n_cells, buckets, _probability(fields["keep"]))
    raise ValueError(f"no channel is of the kind {kind!r}")


def _ratio(probability: Fraction) -> str:
    return f"{probability.numerator}/{probability.denominator}"


def _probability(value: object) -> Fraction:
    match = PROBABILITY.fullmatch(_text(value))
    if match is None or int(match[2]) == 0:
        raise ValueError(f"{value!r} is no probability")
    return Fraction(int(match[1]), int(match[2]))


def _fields(value: object, names: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != names:
        raise ValueError(f"an object with {', '.join(sorted(names))} is expected")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a list is expected")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is expected")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value
