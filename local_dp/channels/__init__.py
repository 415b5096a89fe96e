"""Channels randomise answers by exact probabilities, and estimates come from counts of answers.

Each channel belongs to one combination of attributes. Drawing is the respondent's business
(`local_dp.respondent`); which combinations there are is the campaign's.
"""

from local_dp.channels.channel import Channel, Floats
from local_dp.channels.choice import AnyChannel, best_channel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding

__all__ = [
    "AnyChannel",
    "Channel",
    "Floats",
    "LocalHashing",
    "RandomisedResponse",
    "UnaryEncoding",
    "best_channel",
]
