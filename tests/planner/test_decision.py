"""Decisions: the grid of looks, and that claims are decided rightly, whatever the truth is.

Noise at the widths of the grid is drawn as it is refined, from the narrowest outwards: noise of
scale b that is widened to scale c stays as it is with probability (b / c)**2, and otherwise gets
Laplace noise of scale c added.
"""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.query import QueryBlock, counting
from cube.target import AccuracyTarget
from inference.noise_law.law import SingleLaplaceLaw
from inference.posterior import NotEstimable, Posterior
from planner.decision import RATIO, Decision
from planner.workload import Aggregate, Part
from proxy.engine.answers.decisions import ask_until_decided, is_decided
from proxy.engine.answers.wanted_blocks import Step, asked_of

CONFIDENCE = 0.95
FLOOR, FARTHEST = 10.0, 20_000.0
PER_SCALE = -math.log1p(-CONFIDENCE)  # the half-width of noise of scale 1
N_PATHS = 600
DEVIATIONS = 4.0  # beyond the bound in 3 of 100,000 runs; it is far from reached


def part_for(decision: Decision) -> Part:
    target = AccuracyTarget(half_width=FLOOR, confidence=CONFIDENCE)
    blocks = (QueryBlock(counting()),)
    aggregate = Aggregate("n", "COUNT(*)", blocks, target, decision=decision)
    return Part("p", "t", (), (aggregate,), (), (), CONFIDENCE, None, 1, is_searched=True)


def path(widths: np.ndarray, rng: np.random.Generator) -> dict[float, float]:
    """The noise at every width."""
    noises, scale, noise = {}, 0.0, 0.0
    for width in widths[::-1].tolist():
        wider = width / PER_SCALE
        if rng.random() >= (scale / wider) ** 2:
            noise += rng.laplace(0.0, wider)
        scale = wider
        noises[width] = noise
    return noises


def look_until_decided(part: Part, gap: float, noises: dict[float, float]) -> tuple[float, float]:
    """The value and the width with which a search ends; the truth is `gap` above the end 0."""
    (one,) = asked_of([part], None)
    step = Step()
    ask_until_decided(step, 0, one, part, [NotEstimable("never measured")])
    while True:
        width = step.half_widths[0]
        rows = [Posterior(gap + noises[width], SingleLaplaceLaw(width / PER_SCALE))]
        if is_decided(one, part, rows):
            return rows[0].value, width
        step = Step()
        ask_until_decided(step, 0, one, part, rows)


def misses(gap: float, looks_per_error: float, seed: int) -> tuple[float, float]:
    """The shares of wrong decisions, and of intervals that miss, over the error probabilities."""
    rng = np.random.default_rng(seed)
    decision = Decision((0.0,), error=0.2, farthest=FARTHEST)
    stated = replace(decision, error=0.2 * looks_per_error)
    part, n_looks = part_for(stated), decision.n_looks(FLOOR)
    cut = math.log(n_looks / 0.2)  # in scales: the interval at each look has its share of 0.2
    wrong = outside = 0
    for _ in range(N_PATHS):
        value, width = look_until_decided(part, gap, path(decision.widths(FLOOR), rng))
        scale = width / PER_SCALE
        wrong += value < 0 and -value >= scale * math.log(1 / (2 * stated.error_of_look(FLOOR)))
        outside += abs(value - gap) > cut * scale
    return wrong / N_PATHS, outside / N_PATHS


BOUND = 0.2 + DEVIATIONS * math.sqrt(0.2 * 0.8 / N_PATHS)


@pytest.mark.parametrize("gap", [3.0, 300.0])
def test_a_decision_is_wrong_no_more_often_than_stated(gap: float) -> None:
    wrong, outside = misses(gap, 1.0, random.SystemRandom().getrandbits(64))
    assert wrong <= BOUND
    assert outside <= BOUND


def test_without_sharing_the_error_among_the_looks_it_would_be() -> None:
    """Each look has the whole error probability: close to an end, about half are wrong."""
    n_looks = Decision((0.0,), 0.2, FARTHEST).n_looks(FLOOR)
    wrong, _ = misses(0.1, min(n_looks, 4.9), random.SystemRandom().getrandbits(64))
    assert wrong > BOUND


@given(
    ends=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4, unique=True),
    error=st.floats(1e-6, 0.4),
    farthest=st.floats(1e-3, 1e9),
    floor=st.floats(1e-3, 1e6),
)
def test_the_errors_of_all_looks_add_up_to_the_error(
    ends: list[float], error: float, farthest: float, floor: float
) -> None:
    decision = Decision(tuple(ends), error, farthest)
    widths = decision.widths(floor)
    assert widths[-1] == floor
    assert np.all(np.diff(widths) < 0)
    assert widths[0] <= max(farthest / 2, floor) * (1 + 1e-6)
    assert widths[0] * RATIO >= min(farthest / 2, widths[0] * RATIO) * (1 - 1e-6)
    n_looks = widths.size + 1
    assert decision.error_of_look(floor) * n_looks * len(ends) <= error * (1 + 1e-12)


def test_nothing_is_decided_about_no_end() -> None:
    with pytest.raises(ValueError, match="needs ends"):
        Decision((), 0.1, 1.0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Decision((1.0,), 1.0, 1.0)
