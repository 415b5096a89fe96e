"""Shares by inversion: unbiasedness, the predicted errors."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.measurement import UNITS_PER_EPSILON
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.estimates.shares import Tally, estimated, merged, project_simplex
from tests.support.answering import simulated
from tests.support.collections_of_answers import survey_marginal
from tests.support.published_protocol import floored_weights

HALF = Fraction(1, 2)
CHANNELS: list[AnyChannel] = [
    RandomisedResponse((1, 3, 2, 2), Fraction(1, 3)),
    UnaryEncoding(4, Fraction(1, 4)),
    LocalHashing(4, 3, HALF),
]


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=12), st.floats(0.1, 5))
def test_the_projection_is_the_nearest_point(values: list[float], total: float) -> None:
    given_values = np.array(values)
    found = project_simplex(given_values, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    # Its optimality: one threshold for all that are kept, and nothing above it is dropped.
    lowered = given_values - found
    kept = found > 0
    assert np.ptp(lowered[kept]) < 1e-9
    assert (given_values[~kept] <= lowered[kept].max() + 1e-9).all()
    assert np.allclose(project_simplex(found, total), found)


def test_blocks_of_one_channel_are_one_block() -> None:
    channel = CHANNELS[0]
    one = Tally.of_answers(channel, [0, 1, 1])
    other = Tally.of_answers(channel, [3])
    empty = Tally.of_answers(channel, [])
    (both,) = merged([one, empty, other])
    assert both.counts.tolist() == [1, 2, 0, 1]
    with pytest.raises(ValueError, match="at least one answer"):
        estimated([empty])
    with pytest.raises(ValueError, match="different numbers of cells"):
        estimated([one, Tally.of_answers(UnaryEncoding(5, Fraction(1, 4)), [3])])


def test_counts_that_cannot_be_are_refused() -> None:
    response, bits = CHANNELS[0], CHANNELS[1]
    for channel, n, counts in (
        (response, 3, [1, 1, 0, 0]),
        (response, 3, [4, -1, 0, 0]),
        (response, 3, [3, 0, 0]),
        (bits, 3, [4, 0, 0, 0]),
    ):
        with pytest.raises(ValueError, match=r"count|answer"):
            Tally(channel, n, np.array(counts))


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_raw_shares_add_up_to_one(channel: AnyChannel) -> None:
    tally = simulated(channel, np.full(4, 0.25), 100, np.random.default_rng(2))
    assert estimated([tally]).shares.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_simulated_answers_have_the_law_of_the_channel(channel: AnyChannel) -> None:
    """The support that the statistical tests rest on; 5 standard errors, odds of 1e-5 at most."""
    truth = np.array([0.5, 0.3, 0.15, 0.05])
    n = 200_000
    seen = simulated(channel, truth, n, np.random.default_rng(3)).rates
    expected = channel.rates(truth)
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected / n)).all()


def test_later_blocks_with_tables_made_of_earlier_answers_stay_unbiased() -> None:
    """Floored tables; 400 trials: the mean is within 4 standard errors, odds of .0006."""
    rng = np.random.default_rng(4)
    truth, floor, keep = np.array([0.7, 0.2, 0.1, 0.0]), Fraction(1, 2), Fraction(1, 2)
    found = []
    for _ in range(400):
        tallies = [simulated(RandomisedResponse.uniform(4, keep), truth, 60, rng)]
        for _ in range(3):
            so_far = estimated(tallies).shares
            channel = RandomisedResponse(floored_weights(so_far, floor), keep)
            assert Fraction(min(channel.weights), sum(channel.weights)) >= floor / 4
            tallies.append(simulated(channel, truth, 60, rng))
        found.append(estimated(tallies).shares)
    errors = np.std(found, axis=0) / math.sqrt(400)
    assert (np.abs(np.mean(found, axis=0) - truth) < 4 * errors).all()


# Survey, uniform fakes: the mean sum of absolute errors, predicted and as simulated once.
PREDICTED = [
    (("A", "T"), "1/2", 0.0628, 2.30, (0.065, 0.063, 0.061)),
    (("A", "T"), "221/1000", 0.1440, 1.27, (0.144, 0.140, 0.145)),
    (("E", "O", "R"), "1/2", 0.0561, 2.20, (0.056,)),
    (("E", "O", "R"), "221/1000", 0.1334, 1.18, (0.135,)),
]


@pytest.mark.parametrize(("scope", "keep", "predicted", "epsilon", "simulations"), PREDICTED)
def test_errors_on_the_survey_are_as_predicted(
    scope: tuple[str, ...],
    keep: str,
    predicted: float,
    epsilon: float,
    simulations: tuple[float, ...],
) -> None:
    """5000 answers, 100 trials: within 10 % of the prediction, 3 standard errors or more."""
    truth = survey_marginal(scope).ravel()
    channel = RandomisedResponse.uniform(truth.size, Fraction(keep))
    assert math.log(channel.ratio) == pytest.approx(epsilon, abs=0.005)
    rates = channel.rates(truth)
    formula = np.sqrt(2 / math.pi * rates * (1 - rates) / 5000).sum() / float(Fraction(keep))
    assert formula == pytest.approx(predicted, abs=5.1e-5)
    rng = np.random.default_rng(5)
    errors = [
        np.abs(estimated([simulated(channel, truth, 5000, rng)]).shares - truth).sum()
        for _ in range(100)
    ]
    assert np.mean(errors) == pytest.approx(predicted, rel=0.1)
    assert all(np.mean(errors) == pytest.approx(one, rel=0.15) for one in simulations)


@pytest.mark.parametrize(("epsilon", "n_cells"), [(1.0, 20), (3.0, 40)])
def test_errors_of_other_channels_are_as_typical(epsilon: float, n_cells: int) -> None:
    """Mean squared errors over 60 trials and all cells: within 10 %, at least 4 standard errors."""
    units = int(epsilon * UNITS_PER_EPSILON)
    truth = np.full(n_cells, 1 / n_cells)
    rng = np.random.default_rng(6)
    for channel in (
        UnaryEncoding.for_epsilon(n_cells, units),
        LocalHashing.for_epsilon(n_cells, units),
    ):
        squares = [
            ((estimated([simulated(channel, truth, 2000, rng)]).shares - truth) ** 2).mean()
            for _ in range(60)
        ]
        assert np.mean(squares) * 2000 == pytest.approx(channel.typical_variance, rel=0.1)
