"""Predicates: each has bits and a number of its own, and all that is seen loses the product."""

import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.exponential import decided
from cube.refusals import InvalidRequest
from streams.arrivals import Arrivals
from streams.epoch import Epoch
from streams.mechanism import Mechanism, best_mechanism
from streams.population import Everyone
from streams.randomness import GRID, GeometricNoise, TwoPoint
from streams.state import BitState

CAME, HELD, LEFT = "+", "!", "-"  # arrived; arrived while the predicate held; left
WORDS = ("", CAME, HELD, LEFT)
BITS = ((0, 0), (0, 1), (1, 0), (1, 1))
COARSE = st.builds(
    Mechanism,
    st.integers(129, 255).map(lambda p1: TwoPoint(p1 * GRID // 256)),
    st.integers(1, 255).map(lambda alpha: GeometricNoise(alpha * GRID // 256)),
)


def law(mechanism: Mechanism, before: str, after: str) -> tuple[Fraction, ...]:
    """The joint law of a user's two bits at the look and the two released numbers.

    Walked draw by draw: a pair of bits, each event drawing anew what it touches.
    """
    p0, p1, alpha = mechanism.state.p0, mechanism.state.p1, mechanism.output.alpha

    def drawn(bits: dict[tuple[int, int], Fraction], event: str) -> dict[tuple[int, int], Fraction]:
        ones = p0 if event == LEFT else p1
        found = dict.fromkeys(BITS, Fraction(0))
        for (_, b), weight in bits.items():
            for c, d in found:
                part = weight * (ones if c else 1 - ones)
                # The predicate's bit stays if it did not hold, and is drawn by itself if it did.
                part *= int(d == b) if event == CAME else (ones if d else 1 - ones)
                found[c, d] += part
        return found

    def walked(
        bits: dict[tuple[int, int], Fraction], events: str
    ) -> dict[tuple[int, int], Fraction]:
        for event in events:
            bits = drawn(bits, event)
        return bits

    start = {(a, b): (p0 if a else 1 - p0) * (p0 if b else 1 - p0) for a, b in BITS}
    seen: list[Fraction] = []
    for look, chance in walked(start, before).items():
        end = walked({look: Fraction(1)}, after)
        seen.extend(
            chance
            * sum(weight * alpha ** (abs(y - a) + abs(z - b)) for (a, b), weight in end.items())
            for y, z in product(range(-1, 3), repeat=2)
        )
    return tuple(seen)


def largest_ratio(mechanism: Mechanism) -> Fraction:
    laws = {law(mechanism, before, after) for before in WORDS for after in WORDS}
    return max(
        max(a / b for a, b in zip(one, other, strict=True)) for one in laws for other in laws
    )


@settings(max_examples=3, deadline=None)
@given(COARSE)
def test_two_estimators_lose_the_product_of_their_losses(mechanism: Mechanism) -> None:
    assert largest_ratio(mechanism) == mechanism.loss**2


def test_the_walk_convicts_an_epsilon_that_is_not_divided() -> None:
    whole = Mechanism(TwoPoint(200 * GRID // 256), GeometricNoise(100 * GRID // 256))
    assert math.log(largest_ratio(whole)) > 1.9 * math.log(whole.loss)


@settings(max_examples=20)
@given(st.integers(2**35, 2**44), st.integers(1, 16), st.integers(1, 10**6))
def test_equal_parts_of_an_epsilon_are_together_no_more_than_it(
    units: int, n_predicates: int, n_bits: int
) -> None:
    n = 1 + n_predicates
    mechanism = best_mechanism(Fraction(units // n, 2**40), n_bits)
    assert n * mechanism.epsilon_units <= units
    part = Fraction(units, n * 2**40)
    assert decided(part, lambda power: mechanism.loss <= power)


def certain(predicates: tuple[str, ...], folder: Path) -> tuple[Epoch, BitState]:
    """An epoch whose bits say who is present: another bit once in 10**8."""
    mechanism = Mechanism.for_epsilon(Fraction(30), state=Fraction(25))
    epoch = Epoch("visits", "day", Everyone(37), mechanism, True, predicates)
    state = BitState.created(folder / "day", epoch.n_bits, mechanism.state, epoch.state_name)
    return epoch, state


def test_each_predicate_has_bits_of_its_own(tmp_path: Path) -> None:
    epoch, state = certain(("paid", "mobile"), tmp_path)
    assert state.n_bits == 3 * 37
    ids = np.arange(30)
    epoch.observe(state, Arrivals(ids, where={"paid": ids < 12, "mobile": ids % 2 == 0}))
    epoch.observe(state, Arrivals(ids[:5]))  # once more, and now nothing held
    stretches = [state.count_ones(start, start + 37) for start in (0, 37, 74)]
    assert stretches == [30, 12, 15]
    epoch.observe(state, Arrivals(np.array([2, 3]), present=False))  # they leave all of them
    done = epoch.released(state)
    assert len(done.noisy_ones) == 3
    # The noise of a release is 0 but for once in 100; beyond 4 never.
    for predicate, n in ((None, 28), ("paid", 10), ("mobile", 14)):
        assert abs(done.count(predicate).n_users - n) < 4.5
    assert done.released(state) is done
    state.close()


def test_a_predicate_that_was_not_declared_is_refused_and_nobody_noted(tmp_path: Path) -> None:
    for predicates, said in ((("paid",), "Its predicates are paid"), ((), "It has no predicates")):
        folder = tmp_path / str(len(predicates))
        folder.mkdir()
        epoch, state = certain(predicates, folder)
        with pytest.raises(InvalidRequest, match="not declared with this predicate") as caught:
            epoch.observe(state, Arrivals(np.arange(5), where={"mobile": True}))
        assert said in str(caught.value.hint)
        assert state.count_ones() == 0
        state.close()


def test_a_release_has_a_number_for_each(tmp_path: Path) -> None:
    epoch, state = certain(("paid",), tmp_path)
    state.close()
    with pytest.raises(ValueError, match="for all users and one for each"):
        Epoch("visits", "day", Everyone(37), epoch.mechanism, True, ("paid",), (3,))
    with pytest.raises(ValueError, match="is not released yet"):
        epoch.count("paid")
