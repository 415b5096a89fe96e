"""Which channel answers best at an epsilon: the one with the least variance.

For few cells that is randomised response, for many unary encoding, whose answers have a bit for
each cell; beyond what anybody wants to send, local hashing. The choice depends on the number of
cells and on epsilon alone, so the largest error over all shares is compared: that at equal shares.
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
