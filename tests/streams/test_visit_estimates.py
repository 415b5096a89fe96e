"""What a release of counters says of visits: by convolution, by enumeration, and by streams."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inference.noise_law.law import NoiseLaw
from streams.counters import CounterMechanism, best_counter_mechanism
from streams.estimates import LAW_ERROR
from streams.population import Everyone, Population, Sample
from streams.randomness import GRID, GeometricNoise, TwoPoint
from streams.visit_estimates import (
    ReleasedVisits,
    Statistic,
    Users,
    VisitEstimate,
    at_least,
    exactly,
    sum_law,
    visits_up_to,
)
from streams.windows import Window, hypergeometric

DEVIATIONS = 5  # odds of one in two million
LEVELS = 3


def mechanism_of(levels: int, p1: float = 0.8, alpha: float = 0.5) -> CounterMechanism:
    return CounterMechanism(levels, TwoPoint(int(p1 * GRID)), GeometricNoise(int(alpha * GRID)))


def by_convolution(
    mechanism: CounterMechanism, steps: Sequence[int], n: Sequence[int], n_servers: int = 1
) -> dict[int, float]:
    """The law written out: one cell after another, then one noise after another."""
    p1, alpha = float(mechanism.state.p1), float(mechanism.output.alpha)
    far = math.ceil(40 / mechanism.output.rate)
    noise = {z: (1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in range(-far, far + 1)}
    parts: list[dict[int, float]] = []
    for n_visits, n_users in enumerate(n):
        one: dict[int, float] = {}
        for c, step in enumerate(steps):
            ones = p1 if n_visits > c else 1 - p1
            for value, chance in ((step, ones), (-step, 1 - ones)):
                one[value] = one.get(value, 0.0) + chance / len(steps)
        parts += [one] * n_users
    of_noise = [{step * z: chance for z, chance in noise.items()} for step in steps if step]
    parts += n_servers * of_noise
    law = {0: 1.0}
    for part in parts:
        after: dict[int, float] = {}
        for a, p in law.items():
            for b, q in part.items():
                after[a + b] = after.get(a + b, 0.0) + p * q
        law = after
    return law


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=4).filter(any),
    st.floats(0.55, 0.98),
    st.floats(0.01, 0.3),
    st.data(),
)
def test_the_law_of_a_sum_is_the_convolution(
    steps: list[int], p1: float, alpha: float, data: st.DataObject
) -> None:
    counts = st.lists(st.integers(0, 3), min_size=len(steps) + 1, max_size=len(steps) + 1)
    n = data.draw(counts.filter(any))
    mechanism = mechanism_of(len(steps), p1, alpha)
    found = sum_law(mechanism, Statistic(tuple(steps)), Users(np.array(n), Window.certain(0)))
    total = 0.0
    for value, chance in sorted(by_convolution(mechanism, steps, n).items()):
        total += chance
        assert abs(found.probability_at_most(value) - total) < 1e-11 < LAW_ERROR


@pytest.mark.parametrize("statistic", [at_least(2, 3), exactly(2, 3), Statistic((-1, 0, 0))])
def test_the_law_for_a_sample_is_a_mixture_over_who_is_in_it(statistic: Statistic) -> None:
    mechanism, n_bits = mechanism_of(3), 12
    within = hypergeometric(40, 15, n_bits)
    found = sum_law(mechanism, statistic, Users(np.array([n_bits, 0, 0, 0]), within))
    asked = int(np.argmax(np.abs(statistic.weights)))
    mixed: dict[int, float] = {}
    for k, weight in zip(within.values.tolist(), within.weights.tolist(), strict=True):
        n = [n_bits - k, 0, 0, 0]
        n[asked] += k
        for value, chance in by_convolution(mechanism, statistic.steps, n).items():
            mixed[value] = mixed.get(value, 0.0) + weight * chance
    total = 0.0
    for value, chance in sorted(mixed.items()):
        total += chance
        assert abs(found.probability_at_most(value) - total) < 1e-11


def expected_release(mechanism: CounterMechanism, visits: Sequence[int]) -> list[Fraction]:
    """The mean of each released number, in fractions: the law of a cell, user by user."""
    levels, p1 = mechanism.levels, mechanism.state.p1
    return [
        sum(((2 * p1 - 1) * (1 if v > c else -1) / levels for v in visits), Fraction(0))
        for c in range(levels)
    ]


@pytest.mark.parametrize(
    ("statistic", "weight"),
    [
        (at_least(2, 4), lambda v: v >= 2),
        (exactly(3, 4), lambda v: v == 3),
        (visits_up_to(4, 4), lambda v: min(v, 4)),
        (visits_up_to(2, 4), lambda v: min(v, 2)),
        (Statistic((1, 3, 5, 7)), lambda v: min(v, 4) ** 2),
    ],
)
def test_an_estimate_is_unbiased_whatever_the_visits(
    statistic: Statistic, weight: "object"
) -> None:
    """Of users who came far beyond the levels, too."""
    assert callable(weight)
    mechanism = mechanism_of(4)
    visits = [0, 0, 1, 2, 3, 3, 4, 5, 9, 100]
    mean = expected_release(mechanism, visits)
    estimate = ReleasedVisits(Everyone(10), mechanism, (0,) * 4).estimate(statistic)
    of_mean = sum(step * one for step, one in zip(statistic.steps, mean, strict=True))
    assert math.isclose(estimate.of_sum(float(of_mean)), sum(map(weight, visits)), abs_tol=1e-9)


def released(
    mechanism: CounterMechanism, visits: NDArray[np.int64], rng: np.random.Generator
) -> tuple[int, ...]:
    """A release, drawn from the law of cells."""
    c = rng.integers(0, mechanism.levels, visits.size)
    p1, alpha = float(mechanism.state.p1), float(mechanism.output.alpha)
    signs = 2 * (rng.random(visits.size) < np.where(visits > c, p1, 1 - p1)) - 1
    sums = np.bincount(c, signs, mechanism.levels).astype(np.int64)
    noise = rng.geometric(1 - alpha, (2, mechanism.levels))
    return tuple((sums + noise[0] - noise[1]).tolist())


def covered(estimates: Sequence[VisitEstimate], truth: float, factor: float = 1.0) -> int:
    """How many intervals hold the truth, at `factor` of their width."""
    found = 0
    for one in estimates:
        interval = one.interval(0.95)
        middle, half = (interval.low + interval.high) / 2, (interval.high - interval.low) / 2
        found += abs(truth - middle) <= factor * half + 1e-9
    return found


@pytest.mark.slow
@pytest.mark.parametrize("population", [Everyone(2000), Sample(6000, 2000, bytes(16))])
@pytest.mark.parametrize("epsilon", [1, 4])
def test_intervals_cover_as_often_as_they_say(epsilon: int, population: Population) -> None:
    """Of 600, 570 are to cover; below 543 or above 591 is beyond 5 deviations, and half as wide
    ones are found out."""
    levels, n_streams = 5, 600
    mechanism = best_counter_mechanism(Fraction(epsilon), population.n_bits, levels)
    rng = np.random.default_rng(epsilon)
    n_all = population.n_users_max
    visits = rng.poisson(2.0, n_all) * (rng.random(n_all) < 0.8)
    drawn = []
    for _ in range(n_streams):
        in_it = rng.permutation(n_all)[: population.n_bits]
        drawn.append(ReleasedVisits(population, mechanism, released(mechanism, visits[in_it], rng)))
    cropped = np.minimum(visits, levels)
    for statistic in (at_least(3, levels), exactly(1, levels), visits_up_to(levels, levels)):
        truth = float(statistic.weights[cropped].sum())
        estimates = [one.estimate(statistic) for one in drawn]
        assert 543 <= covered(estimates, truth) <= 591
        assert covered(estimates, truth, 0.5) < 500


def test_an_interval_holds_what_the_release_does_not_contradict() -> None:
    """By the two tails, written out for each number of users."""
    mechanism, n = mechanism_of(LEVELS, 0.9, 0.3), 30
    estimate = ReleasedVisits(Everyone(n), mechanism, (3, -2, -6)).estimate(at_least(2, LEVELS))
    interval = estimate.interval(0.8)
    kept = []
    for value in range(n + 1):
        law = by_convolution(mechanism, estimate.statistic.steps, [n - value, 0, value, 0])
        at_most = sum(chance for y, chance in law.items() if y <= estimate.noisy_sum)
        less = sum(chance for y, chance in law.items() if y < estimate.noisy_sum)
        if at_most > 0.1 and 1 - less > 0.1:
            kept.append(value)
    assert (interval.low, interval.high) == (kept[0], kept[-1])


def test_the_law_of_the_error_is_that_of_the_sum() -> None:
    mechanism, n = mechanism_of(LEVELS), 200
    estimate = ReleasedVisits(Everyone(n), mechanism, (20, -5, -9)).estimate(
        visits_up_to(LEVELS, LEVELS)
    )
    law: NoiseLaw = estimate.law
    rough = LEVELS / float(mechanism.state.separation) / 2
    noise = float(LEVELS * mechanism.output.variance)
    least = rough * math.sqrt(n * 4 * float(mechanism.state.p0 * mechanism.state.p1) + noise)
    assert least <= law.gaussian <= rough * math.sqrt(n + noise)
    assert law.tail(0.0) >= 0.5
    assert math.isclose(law.tail(1.96 * law.gaussian), 0.025, abs_tol=0.004)
    assert math.isclose(law.tail(-law.gaussian), 1 - law.tail(law.gaussian))
    with pytest.raises(ValueError, match="NaN"):
        law.tail(math.nan)
    assert law.scales.size == 0
    assert law.tail_error == LAW_ERROR


def test_the_spread_falls_and_adds_up() -> None:
    found = ReleasedVisits(Everyone(100), mechanism_of(LEVELS), (-40, 40, -500)).spread
    assert found.min() >= 0
    assert math.isclose(found.sum(), 100)


def test_a_release_far_outside_gives_an_interval_at_the_end() -> None:
    mechanism = mechanism_of(LEVELS)
    for noisy, end in ((-1000, 0), (1000, 50)):
        one = ReleasedVisits(Everyone(50), mechanism, (noisy,) * 3).estimate(at_least(1, LEVELS))
        interval = one.interval(0.9)
        assert interval.low == interval.high == end


def test_what_is_no_statistic_is_refused() -> None:
    with pytest.raises(ValueError, match="not all 0"):
        Statistic((0, 0))
    with pytest.raises(ValueError, match="up to 200"):
        Statistic((201, 0))
    for k in (0, 4):
        with pytest.raises(ValueError, match="from 1 to 3"):
            at_least(k, 3)
    with pytest.raises(ValueError, match="from 1 to 2"):
        exactly(3, 3)
    with pytest.raises(ValueError, match="confidence"):
        ReleasedVisits(Everyone(9), mechanism_of(3), (0, 0, 0)).estimate(at_least(1, 3)).interval(1)
