"""Several looks at a state of bits, each but the last announced: their loss by a walk, the law."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cube.exponential import decided
from streams.mechanism import AnnouncedLooks, Remix
from streams.randomness import GRID, GeometricNoise, TwoPoint
from streams.state import BitState
from tests.support.entropy import SeededWords

DEVIATIONS = 6  # odds of one in 500 million
ONE = Fraction(1)


def coarse(*keeps: int, p1: int = 11, alpha: int = 9) -> AnnouncedLooks:
    """Few digits: keeps in sixteenths, laws rounded down to 256ths."""
    law = first = TwoPoint(p1 * GRID // 16)
    remixes = []
    for keep in keeps:
        signal = Fraction(keep, 16) * law.separation / 2
        law = TwoPoint(GRID // 2 + max(1, int(signal * 256)) * (GRID // 256))
        remixes.append(Remix(keep * GRID // 16, law))
    return AnnouncedLooks(first, tuple(remixes), GeometricNoise(alpha * GRID // 16))


def seen(looks: AnnouncedLooks, life: Sequence[str], *, mixes: bool = True) -> list[Fraction]:
    """The law of the bits at all looks and of the release, for what last happened before each."""
    found: dict[tuple[int, ...], Fraction] = {(): ONE}
    bit_law: dict[tuple[int, ...], dict[int, Fraction]] = {
        (): {1: looks.first.p0, 0: looks.first.p1}
    }
    laws = [looks.first, *(remix.law for remix in looks.remixes)]
    for place, (event, law) in enumerate(zip(life, [*laws, looks.last], strict=True)):
        is_release = place == len(laws)
        after: dict[tuple[int, ...], Fraction] = {}
        laws_after: dict[tuple[int, ...], dict[int, Fraction]] = {}
        for past, chance in found.items():
            ones = bit_law[past][1]
            if event:
                ones = law.p1 if event == "+" else law.p0
            if is_release:
                alpha = looks.output.alpha
                for y in (-1, 0, 1, 2):
                    weight = ones * alpha ** abs(y - 1) + (1 - ones) * alpha ** abs(y)
                    after[(*past, y)] = chance * weight
                continue
            for bit in (0, 1):
                keep = ONE
                if mixes and place < len(looks.remixes):
                    keep = Fraction(looks.remixes[place].keep, GRID)
                kept = keep * bit + (1 - keep) / 2
                after[(*past, bit)] = chance * (ones if bit else 1 - ones)
                laws_after[(*past, bit)] = {1: kept, 0: 1 - kept}
        found, bit_law = after, laws_after
    return [found[key] for key in sorted(found)]


def largest(looks: AnnouncedLooks, *, mixes: bool = True) -> float | Fraction:
    n = len(looks.remixes) + 2
    laws = {tuple(seen(looks, life, mixes=mixes)) for life in product(("", "+", "-"), repeat=n)}
    found = Fraction(0)
    for one in laws:
        for other in laws:
            for a, b in zip(one, other, strict=True):
                if a and not b:
                    return math.inf
                found = max(found, a / b) if b else found
    return found


@pytest.mark.parametrize("keeps", [(), (5,), (13,), (9, 4)])
def test_all_looks_and_the_release_lose_at_most_the_product(keeps: tuple[int, ...]) -> None:
    looks = coarse(*keeps)
    ratio = largest(looks)
    assert ratio <= looks.loss
    assert ratio > looks.loss / looks.first.odds, "no look is counted in vain"


def test_without_coins_between_them_two_looks_are_convicted() -> None:
    assert largest(coarse(9), mixes=False) == math.inf


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_declared_epsilons_are_not_passed(epsilon: Fraction) -> None:
    looks = AnnouncedLooks.for_epsilons((epsilon, epsilon, epsilon), epsilon / 2)
    total = epsilon * 3 + epsilon / 2
    assert decided(total, lambda power: looks.loss <= power)
    assert decided(total - Fraction(1, 2**30), lambda power: looks.loss > power)
    assert looks.epsilon_units <= math.ceil(total * 2**40)
    # Of the specification, in closed form.
    first = math.expm1(epsilon) / (math.exp(epsilon) + math.tanh(epsilon / 2))
    assert math.isclose(looks.remixes[0].keep / GRID, first, rel_tol=1e-9)


def test_a_state_that_was_mixed_has_the_last_law(tmp_path: Path) -> None:
    looks = AnnouncedLooks.for_epsilons((Fraction(4), Fraction(3)), Fraction(1))
    n = 40_000
    path, name = tmp_path / "state", bytes(32)
    state = BitState.created(path, n, looks.first, name, entropy=SeededWords(4))
    state.redraw(np.arange(n // 2), present=True)
    (remix,) = looks.remixes
    state.remix(remix.keep, remix.law)
    state.redraw(np.arange(n // 4, 3 * n // 4), present=True)
    state.close()
    again = BitState.opened(path, n, remix.law, name)  # the file is of the new law
    for quarter, law in enumerate((remix.law.p1, remix.law.p1, remix.law.p1, remix.law.p0)):
        share = again.count_ones(quarter * n // 4, (quarter + 1) * n // 4) / (n // 4)
        deviation = math.sqrt(float(law * (1 - law)) / (n // 4))
        assert abs(share - float(law)) < DEVIATIONS * deviation
        assert abs(share - float(looks.first.p1)) > DEVIATIONS * deviation, "it was mixed"
    again.close()


def test_a_probability_of_keeping_lies_between() -> None:
    for keep in (0, GRID):
        with pytest.raises(ValueError, match="kept must lie between"):
            Remix(keep, TwoPoint(3 * GRID // 4))
