"""Chooses the channel with the least variance at an epsilon.

For few cells that is randomised response, for many unary encoding, whose answers have a bit for
each cell; beyond what anybody wants to send, local hashing. The choice depends on the number of
cells and on epsilon alone.

What is compared is the mean variance over cells at equal shares, where that mean is largest. It is
the published rule (unary encoding from about ``3 exp(epsilon) + 2`` cells on), and right for tables
as a whole. A single cell with a large share is known less well, by each channel differently; its
variance decides how many respondents are planned for (`planning`), and not the channel. A campaign
that is open has the channels of its text, whatever would be chosen today.
"""

from collections.abc import Iterator
from typing import TypeAlias

from local_dp.channels.channel import Channel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import N_CELLS_MAX, RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding

AnyChannel: TypeAlias = RandomisedResponse | UnaryEncoding | LocalHashing
N_BITS_MAX = 2**10  # of one answer: 128 bytes


def best_channel(n_cells: int, epsilon_units: int, *, n_bits_max: int = N_BITS_MAX) -> AnyChannel:
    """The channel of least variance at an epsilon, with uniform fake answers.

    Parameters
    ----------
    n_cells : int
    epsilon_units : int
        In units of 2**-40; no channel loses more.
    n_bits_max : int
        The size of an answer above which unary encoding is not considered.

    Examples
    --------
    >>> from cube.measurement import UNITS_PER_EPSILON
    >>> [type(best_channel(size, UNITS_PER_EPSILON)).__name__ for size in (4, 100, 10_000)]
    ['RandomisedResponse', 'UnaryEncoding', 'LocalHashing']
    """
    return min(_candidates(n_cells, epsilon_units, n_bits_max), key=_variance)


def _candidates(n_cells: int, epsilon_units: int, n_bits_max: int) -> Iterator[AnyChannel]:
    if n_cells <= N_CELLS_MAX:
        yield RandomisedResponse.for_epsilon((1,) * n_cells, epsilon_units)
    if n_cells <= n_bits_max:
        yield UnaryEncoding.for_epsilon(n_cells, epsilon_units)
    else:
        yield LocalHashing.for_epsilon(n_cells, epsilon_units)


def _variance(channel: Channel) -> float:
    return channel.typical_variance
