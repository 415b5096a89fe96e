"""The largest variance of a share: against every cell and every mixture of it with another."""

from fractions import Fraction

import numpy as np
import pytest

from cube.measurement import UNITS_PER_EPSILON
from local_dp.channels.choice import AnyChannel, best_channel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding

SHARES = np.linspace(0, 1, 101)
EXACT: list[AnyChannel] = [
    RandomisedResponse.uniform(2, Fraction(9, 10)),
    RandomisedResponse.uniform(5, Fraction(1, 10)),  # its rates stay below 1/2
    RandomisedResponse((9, 1, 1), Fraction(1, 10)),  # one of its rates stays above
    RandomisedResponse((1, 2, 5), Fraction(1, 2)),
    UnaryEncoding.for_epsilon(2, UNITS_PER_EPSILON),
    UnaryEncoding.for_epsilon(8, 2 * UNITS_PER_EPSILON),
    LocalHashing(2, 7, Fraction(1, 2)),
]
BOUNDED = [
    LocalHashing.for_epsilon(n_cells, epsilon * UNITS_PER_EPSILON)
    for n_cells, epsilon in [(3, 1), (3, 2), (9, 1), (9, 2), (9, 3), (12, 2), (20, 1)]
]


def variance(channel: AnyChannel, share: float, cell: int, other: int) -> float:
    """The variance of one cell's share where a second cell has all the rest.

    A variance is linear in the shares of the others, so that one of these is the largest.
    """
    shares = np.zeros(channel.n_cells)
    shares[cell], shares[other] = share, 1 - share
    one = np.zeros((channel.n_cells, 1))
    one[cell] = 1
    return float(channel.variances(one, channel.rates(shares))[0])


def largest(channel: AnyChannel, share: float) -> float:
    cells = range(channel.n_cells)
    return max(
        variance(channel, share, one, other) for one in cells for other in cells if one != other
    )


@pytest.mark.parametrize("channel", EXACT, ids=repr)
def test_it_is_the_largest_over_cells_and_shares(channel: AnyChannel) -> None:
    by_share = [largest(channel, share) for share in SHARES]
    assert [channel.share_variance(share) for share in SHARES] == pytest.approx(by_share)
    most = channel.share_variance()
    assert max(by_share) <= most * (1 + 1e-12)
    assert max(by_share) > most * (1 - 1e-4)  # the top of a parabola, a step of .01 away


@pytest.mark.parametrize("channel", BOUNDED, ids=repr)
def test_of_hashing_it_is_a_bound_that_is_nearly_reached(channel: LocalHashing) -> None:
    by_share = {share: largest(channel, share) for share in SHARES[::10]}
    most = max(by_share.values())
    for share, exact in by_share.items():
        found = channel.share_variance(share)
        assert exact <= found * (1 + 1e-12)
        assert found <= exact + 2 * most / channel.n_cells
    assert most <= channel.share_variance() * (1 + 1e-12)
    assert channel.share_variance() <= most * (1 + 1 / channel.n_cells)


def test_randomised_response_is_least_precise_where_its_rate_is_one_half() -> None:
    channel = RandomisedResponse.uniform(4, Fraction(1, 2))
    rate = float(channel.rates(np.array([0.75, 0.25, 0, 0]))[0])
    assert rate == 0.5
    assert channel.share_variance() == channel.share_variance(0.75) == pytest.approx(1.0)


@pytest.mark.parametrize(("n_cells", "epsilon", "times"), [(24, 3, 6.2), (12, 2, 3.3), (6, 1, 1.6)])
def test_equal_shares_are_not_the_least_favourable(
    n_cells: int, epsilon: int, times: float
) -> None:
    """How many times as many answers the least favourable share of one cell needs."""
    channel = best_channel(n_cells, epsilon * UNITS_PER_EPSILON)
    found = channel.share_variance() / channel.share_variance(1 / n_cells)
    assert found == pytest.approx(times, rel=0.05)
    # The mean over cells is what is largest there.
    equal = np.full(n_cells, 1 / n_cells)
    skewed = np.array([0.5, *[0.5 / (n_cells - 1)] * (n_cells - 1)])
    means = [
        channel.variances(np.eye(n_cells), channel.rates(shares)).mean()
        for shares in (equal, skewed)
    ]
    assert means[0] > means[1]
    assert means[0] == pytest.approx(channel.typical_variance)
