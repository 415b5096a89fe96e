"""An epoch: open, then released once; arrivals and departures, and what is refused."""

import contextlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cube.refusals import InvalidRequest
from streams.arrivals import Arrivals
from streams.epoch import Epoch
from streams.mechanism import best_mechanism
from streams.population import Buckets, Everyone
from streams.state import BitState
from tests.support.entropy import SeededWords, WrittenWords

MECHANISM = best_mechanism(Fraction(1), 10_000)
OPEN = Epoch("visits", "day", Everyone(10_000), MECHANISM)


def begun(epoch: Epoch, folder: Path) -> BitState:
    return BitState.created(
        folder / epoch.name,
        epoch.population.n_bits,
        epoch.mechanism.state,
        epoch.state_name,
        entropy=SeededWords(1),
    )


def test_an_epoch_releases_once_and_then_says_the_same_for_ever(tmp_path: Path) -> None:
    state = begun(OPEN, tmp_path)
    OPEN.observe(state, Arrivals(np.arange(4000)))
    done = OPEN.released(state)
    assert not done.is_open
    nothing_is_drawn = WrittenWords()
    state.redraw(np.arange(10_000), present=True)
    again = done.released(state, nothing_is_drawn)
    assert again == done
    assert nothing_is_drawn.n_drawn == 0
    assert again.count().n_users == done.count().n_users
    with pytest.raises(InvalidRequest, match="over"):
        done.observe(state, Arrivals(np.arange(3)))
    state.close()


def test_a_release_is_the_number_of_ones_and_noise(tmp_path: Path) -> None:
    state = begun(OPEN, tmp_path)
    threshold = MECHANISM.output.threshold
    trials = [threshold - 1, threshold - 1, threshold] + [0] * 253 + [threshold]
    done = OPEN.released(state, WrittenWords(*trials))
    assert done.noisy_ones == (state.count_ones() + 2,)
    state.close()


def test_who_left_is_counted_no_more(tmp_path: Path) -> None:
    """The deviation of an estimate is 105 users; six of them once in 500 million."""
    epoch = Epoch("visits", "night", Everyone(10_000), MECHANISM, has_departures=True)
    state = begun(epoch, tmp_path)
    epoch.observe(state, Arrivals(np.arange(8000)))
    epoch.observe(state, Arrivals(np.arange(6000), present=False))
    epoch.observe(state, Arrivals(np.arange(1000)))  # some come again
    done = epoch.released(state)
    assert abs(done.count().n_users - 3000) < 6 * 105 * 1.3
    interval = done.count().interval(0.999998)
    assert interval.low < 3000 < interval.high
    state.close()


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    state = begun(OPEN, tmp_path)
    held = state.path.read_bytes()
    with pytest.raises(InvalidRequest, match="departures"):
        OPEN.observe(state, Arrivals(np.arange(3), present=False))
    with pytest.raises(InvalidRequest, match="universe"):
        OPEN.observe(state, Arrivals(np.array([1, 2, 10_000])))
    assert state.path.read_bytes() == held
    state.close()


@pytest.mark.parametrize(("kind", "density"), [("uniform", 0.6321), ("zipf", 0.2445)])
def test_streams_of_the_publication_have_their_densities(
    tmp_path: Path, kind: str, density: float
) -> None:
    """A hundred thousand arrivals of as many users; .005 is five deviations of all together."""
    universe = 100_000
    rng = np.random.default_rng(7)
    ranks = (
        np.cumsum(1 / np.arange(1, universe + 1)) if kind == "zipf" else np.arange(universe) + 1.0
    )
    arrivals = np.searchsorted(ranks, rng.uniform(0, ranks[-1], universe))
    mechanism = best_mechanism(Fraction(3), universe)
    epoch = Epoch("visits", kind, Everyone(universe), mechanism)
    path = tmp_path / kind
    with contextlib.closing(
        BitState.created(path, universe, mechanism.state, epoch.state_name)
    ) as state:
        epoch.observe(state, Arrivals(arrivals))
        done = epoch.released(state)
    assert abs(done.count().density - density) < 0.005
    interval = done.count().interval(0.999998)
    assert interval.low <= np.unique(arrivals).size <= interval.high


def test_nobody_leaves_a_bucket() -> None:
    with pytest.raises(ValueError, match="share buckets"):
        Epoch("visits", "day", Buckets(100, bytes(16)), MECHANISM, has_departures=True)
