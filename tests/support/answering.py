"""Answers of many simulated respondents at once, by the law of each channel."""

import numpy as np
from numpy.typing import NDArray

from local_dp.channels.channel import Floats
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.estimates.shares import Tally


def simulated(
    channel: AnyChannel, shares: Floats, n_answers: int, rng: np.random.Generator
) -> Tally:
    """The tally of respondents drawn from a population, who answer as the channel says."""
    return answered(channel, rng.choice(shares.size, n_answers, p=shares), rng)


def answered(channel: AnyChannel, cells: NDArray[np.int64], rng: np.random.Generator) -> Tally:
    """The tally of respondents whose true cells are given."""
    n = cells.size
    drawn: NDArray[np.int64]
    match channel:
        case RandomisedResponse():
            drawn = _response(
                cells, float(channel.keep), np.array(channel.weights, dtype=np.float64), rng
            )
        case UnaryEncoding():
            true = np.bincount(cells, minlength=channel.n_cells)  # bits have coins of their own
            counts = rng.binomial(true, 0.5) + rng.binomial(n - true, float(channel.noise))
            return Tally(channel, n, counts)
        case LocalHashing():
            seeds = rng.integers(channel.n_seeds, size=n)
            buckets = np.zeros(n, dtype=np.int64)
            place = 1
            for _ in range(channel.n_digits):
                buckets += (cells // place) * (seeds // place % channel.n_buckets)
                place *= channel.n_buckets
            buckets %= channel.n_buckets
            fakes: Floats = np.ones(channel.n_buckets)
            heard = _response(buckets, float(channel.keep), fakes, rng)
            drawn = seeds * channel.n_buckets + heard
    return Tally(channel, n, np.bincount(drawn, minlength=channel.n_tallies))


def _response(
    cells: NDArray[np.int64], keep: float, weights: Floats, rng: np.random.Generator
) -> NDArray[np.int64]:
    fakes = rng.choice(weights.size, cells.size, p=weights / weights.sum())
    return np.where(rng.random(cells.size) < keep, cells, fakes)
