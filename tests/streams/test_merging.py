"""Releases of several servers, added up: their law and loss, their files, what is refused."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.refusals import InvalidRequest, TooLarge
from streams.arrivals import Arrivals
from streams.epoch import Epoch
from streams.estimates import (
    LAW_ERROR,
    ErrorLaw,
    ReleasedCount,
    count_interval,
    estimated_density,
    mean_squared_error,
    ones_law,
)
from streams.mechanism import AnnouncedLooks, Mechanism, best_mechanism
from streams.merging import (
    FILE_BYTES_MAX,
    ServerRelease,
    _digest,
    merged,
    release_file,
    release_in,
)
from streams.population import Everyone, Population, Sample
from streams.randomness import GRID, GeometricNoise, TwoPoint
from streams.windows import Window, hypergeometric
from tests.streams.test_interval import by_convolution
from tests.support.entropy import SeededWords
from tests.support.pan_privacy import Number, OneUser, ratio_of, users, walked_mechanism

KEY = bytes(range(16))


def of(mechanism: Mechanism, seq: int = 1, **changes: Any) -> ServerRelease:
    """A release of a server with 500 of 2000 users in its sample."""
    declared = ServerRelease(
        stream="visits",
        epoch="2026-11-24",
        epochs="day",
        universe=2000,
        n_places=500,
        p1=mechanism.state.threshold,
        alpha=mechanism.output.threshold,
        levels=0,
        n_releases=1,
        has_departures=False,
        predicates=(),
        key=KEY.hex(),
        noisy_ones=(250 + seq,),
        opened=f"{seq:064x}",
        released=f"{seq + 1000:064x}",
        entry=seq,
    )
    return replace(declared, **changes)


MECHANISM = best_mechanism(Fraction(1), 500)
NORTH, SOUTH = (of(MECHANISM, seq) for seq in (1, 2))


def merged_counts(releases: dict[str, ServerRelease]) -> dict[str | None, ReleasedCount]:
    """Sums over servers that count distinct users."""
    found = merged(releases)
    return {name: one for name, one in found.items() if isinstance(one, ReleasedCount)}


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 30),
    st.floats(0, 1),
    st.integers(2, 5),
    st.integers(GRID // 2 + 2**50, GRID - 2**20).map(TwoPoint),
    st.floats(0.001, 0.9).map(lambda alpha: GeometricNoise(int(alpha * GRID))),
)
def test_the_law_of_the_sum_is_the_convolution(
    n_bits: int, density: float, n_servers: int, state: TwoPoint, noise: GeometricNoise
) -> None:
    """That of one server with a state for each; the other noises are added by hand."""
    mechanism = Mechanism(state, noise)
    occupied = hypergeometric(5 * n_bits, round(5 * n_bits * density), n_bits)
    start, law = by_convolution(mechanism, n_servers * n_bits, occupied)
    far = math.ceil(40 / noise.rate)
    alpha = float(noise.alpha)
    one = (1 - alpha) / (1 + alpha) * alpha ** np.abs(np.arange(-far, far + 1))
    for _ in range(n_servers - 1):
        start, law = start - far, np.convolve(law, one)
    found = ones_law(mechanism, n_bits, occupied, n_servers)
    for place, exact in enumerate(np.cumsum(law)):
        assert abs(found.probability_at_most(start + place) - exact) < 1e-11 < LAW_ERROR


@pytest.mark.parametrize("n_servers", [2, 10, 300])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_the_sum_is_unbiased_and_has_the_closed_error(n_servers: int, density: float) -> None:
    """By the exact law; 300 noises go far less than 300 times as far as one."""
    n, universe = 400, 3000
    mechanism = best_mechanism(Fraction(1, 2), n)
    law = ones_law(mechanism, n, hypergeometric(universe, round(universe * density), n), n_servers)
    chances = np.diff(law.at_most, prepend=0.0)
    errors = np.array([estimated_density(int(y), n, mechanism, n_servers) for y in law.values])
    errors -= density
    state, noise = mechanism.state, mechanism.output
    alpha = float(noise.alpha)
    of_ones = n_servers * (n * float(state.p0 * state.p1) + 2 * alpha / (1 - alpha) ** 2)
    closed = of_ones / (n * float(state.separation)) ** 2
    closed += density * (1 - density) / n * (universe - n) / (universe - 1)
    assert abs(float(chances @ errors)) < 1e-6 * math.sqrt(closed)
    assert math.isclose(float(chances @ errors**2), closed, rel_tol=1e-6)
    formula = mean_squared_error(
        mechanism, n, universe=universe, density=density, n_servers=n_servers
    )
    assert math.isclose(formula, closed, rel_tol=1e-9)


def test_servers_that_run_have_that_error(tmp_path: Path) -> None:
    """300 times all bits are drawn anew. The mean square has a relative deviation of .08.

    Between .67 and 1.33 of the formula but once in 20,000 runs; that of one state and one noise, or
    of three states and one noise, is below .6.
    """
    n, n_servers, n_runs = 60, 3, 300
    mechanism = Mechanism(TwoPoint(3 * GRID // 4), GeometricNoise(4 * GRID // 5))
    epochs = [
        Epoch(f"s{k}", "all", Everyone(n), mechanism, has_departures=True) for k in range(n_servers)
    ]
    states = [epoch.created(tmp_path / epoch.stream) for epoch in epochs]
    came = [np.arange(10 * k, 10 * k + 10) for k in range(n_servers)]
    for place, state in enumerate(states):
        state._entropy = SeededWords(place)
    entropy, errors = SeededWords(99), []
    for _ in range(n_runs):
        ones = 0
        for epoch, state, here in zip(epochs, states, came, strict=True):
            others = np.setdiff1d(np.arange(n), here)
            epoch.observe(state, Arrivals(others, False))
            epoch.observe(state, Arrivals(here))
            (noisy,) = epoch.released(state, entropy).noisy_ones
            ones += noisy
        errors.append(ReleasedCount(Everyone(n), mechanism, ones, n_servers).n_users - 30)
    for state in states:
        state.close()
    formula = n * n * mean_squared_error(mechanism, n, n_servers=n_servers)
    assert 0.67 < float(np.mean(np.square(errors))) / formula < 1.33
    assert abs(float(np.mean(errors))) < 4.5 * math.sqrt(formula / n_runs)
    shares = (
        3 * n * float(mechanism.state.p0 * mechanism.state.p1),
        float(mechanism.output.variance),
    )
    assert (shares[0] + shares[1]) / (shares[0] + 3 * shares[1]) < 0.6


@pytest.mark.parametrize("n_servers", [2, 7])
@pytest.mark.parametrize("population", [Everyone(300), Sample(2000, 300, KEY)])
@pytest.mark.parametrize("density", [0.02, 0.6])
def test_intervals_of_sums_cover_what_they_say_and_hardly_more(
    population: Population, density: float, n_servers: int
) -> None:
    """The exact coverage, by the law."""
    mechanism = best_mechanism(Fraction(1), population.n_bits)
    n_users = round(population.n_users_max * density)
    law = ones_law(mechanism, population.n_bits, population.occupied(n_users), n_servers)
    outer = 0.025 - LAW_ERROR
    held = [
        int(y)
        for y in law.values
        if min(law.probability_at_least(int(y)), law.probability_at_most(int(y))) > outer
    ]
    covered = law.probability_at_most(held[-1]) - law.probability_at_most(held[0] - 1)
    assert 0.95 <= covered < 0.96
    for ones, holds in ((held[0], 1), (held[-1], 1), (held[0] - 1, 0), (held[-1] + 1, 0)):
        interval = count_interval(ones, population, mechanism, 0.95, n_servers)
        assert (interval.low <= n_users <= interval.high) is bool(holds)
    assert ErrorLaw(population, mechanism, n_users, n_servers).half_width(0.95) > 0


def test_the_law_does_not_depend_on_who_came_where() -> None:
    """With one sample. With a sample for each server it does: that is why they have to agree."""
    one = hypergeometric(40, 20, 10)
    for k in range(21):
        here, there = hypergeometric(40, k, 10), hypergeometric(40, 20 - k, 10)
        apart = Window(here.start + there.start, np.convolve(here.weights, there.weights))
        assert math.isclose(apart.mean, one.mean)
        assert apart.variance > one.variance * (1 - 1e-9)
        assert (apart.variance > one.variance * 1.01) is (0 < k < 20)


def largest(seen: Callable[[OneUser], list[Number]]) -> Number:
    laws = {tuple(seen(life)) for life in users("+-", 1)}
    return max(ratio_of(one, other) for one in laws for other in laws)


def test_a_look_at_each_server_and_all_releases_lose_what_one_server_loses() -> None:
    """Walked in fractions: the user at one server; at the other one, somebody else."""
    walked = walked_mechanism(Mechanism(TwoPoint(11 * GRID // 16), GeometricNoise(9 * GRID // 16)))
    loss = Fraction(11, 5) * (Fraction(5, 16) + Fraction(11, 16) / Fraction(9, 16))
    elsewhere = walked.seen(OneUser("+", "-"))
    assert largest(lambda life: [a * b for a in walked.seen(life) for b in elsewhere]) == loss
    # One who comes to both in the same way loses twice the epsilon: hence `--people-overlap`.
    assert largest(lambda life: [a * b for a, b in product(walked.seen(life), repeat=2)]) == loss**2


def test_a_state_that_is_handed_over_is_a_second_look() -> None:
    """Whoever looked before sees the bit change: no epsilon is left, whatever was charged."""
    walked = walked_mechanism(MECHANISM)
    assert largest(walked.seen_twice) == math.inf


@pytest.mark.parametrize(
    ("n_bits", "narrower", "with_coins"), [(1000, 0.062, 4.7), (100_000, 0.013, 5.8)]
)
def test_what_it_would_gain_and_what_coins_would_cost(
    n_bits: int, narrower: float, with_coins: float
) -> None:
    """Figures of the proof, at epsilon 1: one noise for three servers; bits handed over mixed."""
    mechanism = best_mechanism(Fraction(1), n_bits)
    bits = 3 * n_bits * float(mechanism.state.p0 * mechanism.state.p1)
    noise = float(mechanism.output.variance)
    assert math.isclose(
        1 - math.sqrt((bits + noise) / (bits + 3 * noise)), narrower, abs_tol=0.0005
    )
    ours = math.sqrt(mean_squared_error(mechanism, n_bits))
    mixed = []
    for share in (0.4, 0.45, 0.5, 0.55, 0.6):
        part = Fraction(share)
        looks = AnnouncedLooks.for_epsilons((part, 1 - part), Fraction(1))
        signal = float(looks.last.separation)
        mixed.append(math.sqrt((1 - signal**2) / 4 / n_bits) / signal)
    assert math.isclose(min(mixed) / ours, with_coins, abs_tol=0.05)


def test_a_file_is_read_back_and_is_always_the_same() -> None:
    content = release_file(NORTH)
    assert release_in(content, "north") == NORTH
    assert release_file(release_in(content, "north")) == content


def test_every_change_of_a_file_is_seen() -> None:
    content = release_file(NORTH)
    for place in range(0, len(content) - 1, 7):
        changed = bytearray(content)
        changed[place] ^= 1
        if changed.split() == content.split():
            continue  # blanks between values say nothing
        with pytest.raises(InvalidRequest, match="north is not a release"):
            release_in(bytes(changed), "north")
    for end in (0, 1, len(content) // 2):
        with pytest.raises(InvalidRequest, match="not a release"):
            release_in(content[:end], "north")


def test_a_file_that_is_too_long_is_not_read() -> None:
    with pytest.raises(TooLarge, match="longer than any release"):
        release_in(b" " * (FILE_BYTES_MAX + 1), "north")


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": GRID - 1},
        {"alpha": 0},
        {"p1": GRID // 2},
        {"p1": -1},
        {"n_places": 2**40},
        {"n_places": 2000},
        {"universe": 2**40},
        {"universe": 0},
        {"universe": True},
        {"key": ""},
        {"key": "zz" * 16},
        {"noisy_ones": [2**60]},
        {"noisy_ones": [1.5]},
        {"noisy_ones": []},
        {"noisy_ones": {"a": 1}},
        {"predicates": ["paid"]},
        {"predicates": 1},
        {"epoch": ""},
        {"epoch": "a\nb"},
        {"epoch": "\ud800"},
        {"stream": "a" * 1000},
        {"opened": "abc"},
        {"entry": 0},
        {"levels": -1},
        {"levels": 1},
        {"levels": 101},
        {"levels": 3},
        {"levels": 1.5},
        {"n_releases": 2},
        {"kind": "another"},
        {"version": 1},
        {"more": 1},
    ],
)
def test_absurd_files_with_a_right_digest_are_refused(changes: dict[str, object]) -> None:
    content = json.loads(release_file(NORTH)) | changes
    del content["digest"]
    content["digest"] = _digest(content)
    with pytest.raises(InvalidRequest, match="not a release"):
        release_in(json.dumps(content).encode(), "north")


@pytest.mark.parametrize("content", [b"[" * 60_000, b"\xff", b"1" * 60_000, b"[]", b"null", b"NaN"])
def test_what_is_no_release_at_all_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not a release"):
        release_in(content, "north")


def test_a_sum_adds_up_each_predicate() -> None:
    mechanism = MECHANISM
    names = ("paid", "mobile")
    counts = merged_counts(
        {
            str(seq): of(mechanism, seq, predicates=names, noisy_ones=(300, 100 * seq, -seq))
            for seq in (1, 2, 4)
        }
    )
    assert list(counts) == [None, *names]
    assert [one.noisy_ones for one in counts.values()] == [900, 700, -7]
    assert all(one.n_servers == 3 for one in counts.values())
    # By hand: (ones - servers n p0) / (n (p1 - p0)) of the universe.
    p0, separation = float(mechanism.state.p0), float(mechanism.state.separation)
    assert math.isclose(
        counts["paid"].n_users, (700 - 1500 * p0) / (500 * separation) * 2000, rel_tol=1e-12
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"opened": NORTH.opened}, "of the same stream of the same server"),
        ({"epoch": "2026-11-25"}, "north is of the epoch 2026-11-24, and south of 2026-11-25"),
        ({"epochs": "week"}, "differ in the window of an epoch"),
        ({"key": bytes(16).hex()}, "differ in the sample"),
        ({"universe": 2001}, "differ in the universe"),
        ({"n_places": 501}, "differ in the number of bits"),
        ({"p1": NORTH.p1 + 1}, "law of the bits, which follows from epsilon"),
        ({"alpha": NORTH.alpha + 1}, "differ in the noise"),
        ({"has_departures": True}, "differ in the departures"),
        ({"predicates": ("paid",), "noisy_ones": (1, 2)}, "differ in the predicates"),
        ({"universe": 500, "key": ""}, "in the universe; in the sample"),
    ],
)
def test_what_cannot_be_added_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as caught:
        merged({"north": NORTH, "south": replace(SOUTH, **changes)})
    assert caught.value.hint


def test_one_release_is_no_sum_and_very_many_are_too_many() -> None:
    for n in (0, 1, 1001):
        with pytest.raises(TooLarge, match="cannot be added up"):
            merged({str(seq): of(MECHANISM, seq) for seq in range(1, n + 1)})
