"""Every private value on the way of a release moves by no more than was paid for, on neighbours.

Record and replay is not a statistical test: nothing of it can fail by chance but the last test,
whose odds it says. The teeth are faults of every stage, each of which is convicted.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from accountant.noise.lattice_noise import LatticeNoise, SystemNoise
from cube.exponential import epsilon_units_of
from local_dp.campaign import Attribute, Campaign, Combination, campaign_text
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.draws import Response
from local_dp.respondent import Asked, check_campaign
from streams.epoch import Epoch
from streams.mechanism import best_mechanism
from streams.population import Everyone
from streams.state import BitState
from tests.support.recorded import Convicted, Drawn, Tape, compared, recorded
from tests.support.recorded_devices import compared_answers, compared_states
from tests.support.recorded_worlds import WORLDS, World, asking, neighbours, served
from tests.support.seeded_faults import FAULTS, ONE_ROW, SEVERAL, Fault

N_SEEDS = 8  # a fault need not show between every two tables


def replayed(world: World, seed: int, n_units: int = 60) -> tuple[Tape, Tape]:
    one, other = neighbours(world, seed, n_units)
    tape = recorded(served(world, one), asking(world))
    return tape, recorded(served(world, other), asking(world), tape)


@pytest.mark.parametrize("world", [ONE_ROW, SEVERAL], ids=lambda world: world.name)
def test_a_unit_moves_nothing_that_is_not_paid_for(world: World) -> None:
    found = compared(*replayed(world, seed=5, n_units=30))
    assert found.n_values >= 5
    assert 0 < found.share <= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_unit_moves_nothing_in_a_whole_history(world: World, seed: int) -> None:
    found = compared(*replayed(world, seed))
    assert found.n_values >= 100
    assert 0 < found.share <= 1


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_in_a_stage_is_convicted_there(fault: Fault) -> None:
    stages = []
    for seed in range(N_SEEDS):
        try:
            with fault.put_in():
                compared(*replayed(fault.world, seed, fault.n_units))
        except Convicted as convicted:
            stages.append(convicted.stage)
            break
    assert stages
    assert stages[0] in fault.stages


def test_the_same_rows_lose_nothing() -> None:
    rows, _ = neighbours(ONE_ROW, 1, 20)
    tape = recorded(served(ONE_ROW, rows), asking(ONE_ROW))
    again = recorded(served(ONE_ROW, rows[::-1]), asking(ONE_ROW), tape)
    assert compared(tape, again).share == 0


QUESTION = Attribute("q", (0, 1, 2))
CHANNELS = (
    RandomisedResponse.uniform(3, Fraction(2, 7)),
    RandomisedResponse((1, 4, 2), Fraction(1, 3)),
    LocalHashing(3, 3, Fraction(2, 5)),
)


def asked_by(channel: Any) -> Asked:
    """A campaign of one question, which says just what its channel loses."""
    question = (Combination(("q",), channel),)
    campaign = Campaign("one", (QUESTION,), question, ((0,),), epsilon_units_of(channel.ratio))
    return check_campaign(campaign_text(campaign))


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_a_respondent_s_answer_tells_what_the_campaign_says(channel: Any) -> None:
    asked = asked_by(channel)
    shares = [compared_answers(asked, {"q": 0}, {"q": level}).share for level in (1, 2)]
    assert 0.99 < max(shares) <= 1


def _keeps_twice() -> AbstractContextManager[Any]:
    def draw(self: Response, cell: int, below: Callable[[int], int]) -> int:
        first = RIGHT(self, cell, below)
        return first if first == cell else RIGHT(self, cell, below)

    return mock.patch.object(Response, "draw", draw)


RIGHT = Response.draw


def test_a_device_that_draws_again_is_convicted() -> None:
    asked = asked_by(CHANNELS[0])
    with _keeps_twice(), pytest.raises(Convicted):
        compared_answers(asked, {"q": 0}, {"q": 1})


EPOCH = Epoch("visits", "day", Everyone(40), best_mechanism(Fraction(1), 40), predicates=("paid",))
VISITS = [3, 7, 39, 7, 0, 12, 3, 7]


@pytest.mark.parametrize("seed", range(20))
def test_a_user_of_a_stream_moves_the_own_bits_and_one_of_each_number(
    seed: int, tmp_path: Path
) -> None:
    found = compared_states(EPOCH, VISITS, 7, tmp_path, seed)
    assert found.n_values == 82


def _without_a_draw() -> AbstractContextManager[Any]:
    def redraw(self: BitState, places: Any, *, present: bool) -> None:
        self._entropy.words(places.size)
        self._write(places, np.full(places.size, present, dtype=np.uint8))

    return mock.patch.object(BitState, "redraw", redraw)


def _neighbours_too() -> AbstractContextManager[Any]:
    right = BitState.redraw

    def redraw(self: BitState, places: Any, *, present: bool) -> None:
        right(self, places, present=present)
        self._write((places + 1) % self.n_bits, np.ones(places.size, dtype=np.uint8))

    return mock.patch.object(BitState, "redraw", redraw)


@pytest.mark.parametrize("fault", [_without_a_draw, _neighbours_too])
def test_a_fault_of_a_state_is_convicted(
    fault: Callable[[], AbstractContextManager[Any]], tmp_path: Path
) -> None:
    with fault(), pytest.raises(Convicted) as caught:
        compared_states(EPOCH, VISITS, 7, tmp_path, 0)
    assert caught.value.stage == "state"


def laplace_draws(scaled_by: int = 1) -> list[float]:
    """Magnitudes of recorded noise, over the scale of its law; of raises, over that of the last."""
    world = replace(WORLDS[0], statements=WORLDS[0].statements[:5])
    right = SystemNoise.discrete_laplace

    def faulty(self: SystemNoise, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        return tuple(value // scaled_by for value in right(self, noise, size))

    sizes: list[float] = []
    with mock.patch.object(SystemNoise, "discrete_laplace", faulty):
        for seed in range(12):
            rows, _ = neighbours(world, seed, 20)
            for event in recorded(served(world, rows), asking(world)).events:
                if isinstance(event, Drawn) and isinstance(event.laws[-1], LatticeNoise):
                    sizes += [abs(step) / event.laws[-1].scale_in_steps for step in event.noise]
    return sizes


@pytest.mark.slow
def test_recorded_noise_is_as_wide_as_its_law() -> None:
    """The magnitudes follow the exponential law; they are told from it once in a million runs."""
    assert stats.kstest(laplace_draws(), "expon").pvalue > 1e-6
    assert stats.kstest(laplace_draws(scaled_by=2), "expon").pvalue < 1e-6
