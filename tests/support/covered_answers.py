"""How often intervals of a collection's answers hold the truth, in simulated collections."""

import numpy as np

from cube.measurement import UNITS_PER_EPSILON
from local_dp.channels.channel import Floats
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.estimates.laws import IntervalMethod, answers
from local_dp.estimates.shares import estimated
from tests.support.answering import simulated

KINDS: tuple[type[AnyChannel], ...] = (RandomisedResponse, UnaryEncoding, LocalHashing)
SIZES = (4, 24, 500)
CONFIDENCE = 0.95
N_CELLS_ASKED = 60


def channel_of(kind: type[AnyChannel], n_cells: int, epsilon: float) -> AnyChannel:
    """A channel of a kind, with equal fakes."""
    units = int(epsilon * UNITS_PER_EPSILON)
    if kind is RandomisedResponse:
        return RandomisedResponse.for_epsilon((1,) * n_cells, units)
    if kind is UnaryEncoding:
        return UnaryEncoding.for_epsilon(n_cells, units)
    return LocalHashing.for_epsilon(n_cells, units)


def covered(kind: type[AnyChannel], n_cells: int, *, n_trials: int, seed: int) -> Floats:
    """For each simulated collection, the part of its intervals that hold the truth.

    Epsilon 1, shares that fall as one over the rank; asked for cells, half of them together, and a
    sum. There are answers enough, even in the rarest cell, for intervals by the normal law.
    """
    channel = channel_of(kind, n_cells, 1.0)
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1.0, n_cells + 1)
    shares /= shares.sum()
    queries = np.column_stack(
        [
            np.eye(n_cells)[:, : min(n_cells, N_CELLS_ASKED)],
            np.arange(n_cells) % 2 == 0,
            np.arange(n_cells) / n_cells,
        ]
    ).astype(float)
    truth = shares @ queries
    found = []
    n_answers = 5000 if n_cells < max(SIZES) else 50_000
    for _ in range(n_trials):
        given = answers(estimated([simulated(channel, shares, n_answers, rng)]), queries)
        if any(one.method is not IntervalMethod.NORMAL for one in given):
            raise AssertionError("answers are few")
        ends = np.array([one.interval(CONFIDENCE) for one in given])
        found.append(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
    return np.array(found)
