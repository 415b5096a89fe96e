"""An attacker who knows all but one record, and picks the record, the queries and the test.

They ask the real gate the same plan many times on two tables that differ by one record, and guess
from the noisy values which of the two they see: by the likelihood ratio of the values, at the
threshold that worked best on the first half of them. On the second half, what they achieve bounds
the epsilon of the mechanism from below (Clopper and Pearson's limits on both rates).

To have many runs cheaply, a table holds many worlds, copies of the same few records in cells of
their own, and every query is asked by world. Worlds share no cell: each is a run of its own, on its
own pair of neighbours, and a plan costs what it costs in one of them.

That bound must not pass what the ledger charged for a plan. Each test is wrong about an honest gate
with a probability of at most ALPHA; and the same attack must convict noise that is 20 % too small.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from accountant.exact.exact_answers import exact_answers
from accountant.gate.gate import Gate
from accountant.gate.open_table import open_table
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger
from accountant.noise.gaussian import GaussianNoise
from accountant.noise.laplace import LatticeNoise, NoiseSource, SystemNoise
from cube.axis import IntegerAxis
from cube.block import Partition, QueryBlock
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, counting
from cube.schema import Schema
from tests.support.fakes import KnownTable

ALPHA = 1e-4
N_WORLDS = 500
SCHEMA = Schema(
    table="people",
    axes=(
        IntegerAxis(name="world", low=0, high=N_WORLDS - 1),
        IntegerAxis(name="age", low=0, high=4),
        IntegerAxis(name="visits", low=0, high=2),
    ),
    n_records_max=100 * N_WORLDS,
)
BY_WORLD = Partition(("world",), np.arange(N_WORLDS, dtype=np.int64))
KNOWN = np.array([[0, 0], [1, 2], [1, 1], [3, 0], [4, 2], [4, 2]], dtype=np.int64)
HALF, QUARTER = Weight.at_least(Fraction(1, 2)), Weight.at_least(Fraction(1, 4))


def factor(axis: str, *values: int) -> Factor:
    return Factor((axis,), np.array(values, dtype=np.int64))


EVERYONE = QueryBlock(counting(), BY_WORLD)
ADULTS = QueryBlock(counting([factor("age", 0, 0, 1, 1, 1)]), BY_WORLD)
OFTEN = QueryBlock(counting([factor("visits", 0, 1, 1)]), BY_WORLD)
SUM = QueryBlock(counting([factor("age", 0, 1, 2, 3, 4)]), BY_WORLD)
AGES = np.arange(5 * N_WORLDS, dtype=np.int64).reshape(N_WORLDS, 5).T
BY_AGE = QueryBlock(counting(), Partition(("age", "world"), AGES))


@dataclass(frozen=True)
class Attack:
    """A record that is there or not, and what is asked; `is_raised` buys it in two steps."""

    name: str
    record: tuple[int, int]
    blocks: tuple[QueryBlock, ...]
    weights: tuple[Weight, ...]
    is_raised: bool = False


ATTACKS = (
    Attack("one count", (3, 1), (EVERYONE,), (Weight.at_least(1),)),
    Attack("one group of several", (1, 0), (BY_AGE,), (Weight.at_least(1),)),
    Attack("a sum, at its largest value", (4, 0), (SUM,), (QUARTER,)),
    Attack("overlapping counts", (4, 2), (EVERYONE, ADULTS, OFTEN), (QUARTER, HALF, QUARTER)),
    Attack("a count that is raised", (2, 2), (ADULTS,), (Weight.at_least(1),), is_raised=True),
)


class QuieterNoise:
    """Noise at four fifths of the scale that was paid for."""

    def __init__(self) -> None:
        self._noise = SystemNoise()

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        return self._noise.discrete_laplace(_quieter(noise), size)

    def refined_laplace(
        self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
    ) -> tuple[int, ...]:
        return self._noise.refined_laplace(coarse, _quieter(fine), drawn)

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:
        return tuple(drawn * 4 // 5 for drawn in self._noise.discrete_gaussian(noise, size))


def _quieter(noise: LatticeNoise) -> LatticeNoise:
    weight = Weight(noise.weight.units * 5 // 4)
    return LatticeNoise(weight, noise.lattice_bits, noise.scale_in_steps * 4 / 5)


def likelihood_ratios(
    gate: Gate, attack: Attack, exact: Sequence[Sequence[NDArray[np.float64]]], n_runs: int
) -> tuple[NDArray[np.float64], Fraction]:
    """For each run, how much likelier what it shows is with the record; epsilon charged for one."""
    n_charges = n_runs // N_WORLDS
    ratios = [
        sum(
            float(weight.exact) * (np.abs(found - without) - np.abs(found - with_it)).sum(axis=1)
            for weight, found, without, with_it in zip(
                attack.weights, bought(gate, attack), *exact, strict=True
            )
        )
        for _ in range(n_charges)
    ]
    return np.concatenate(ratios), gate.budget().spent / n_charges


def bought(gate: Gate, attack: Attack) -> list[NDArray[np.float64]]:
    """The noisy values of a plan that is bought once more: for each block, (N_WORLDS, n_rows)."""
    weights = [Weight(one.units // 2) if attack.is_raised else one for one in attack.weights]
    first = len(gate.measurements())
    plan = [PlannedMeasurement(*one) for one in zip(attack.blocks, weights, strict=True)]
    measured = gate.measure(plan, Payer("eve"), epsilon_cap=None)
    if attack.is_raised:
        raises = [
            PlannedMeasurement(block, weight, first + place)
            for place, (block, weight) in enumerate(zip(attack.blocks, attack.weights, strict=True))
        ]
        measured = gate.measure(raises, Payer("eve"), epsilon_cap=None)
    return [np.array(one.values).reshape(N_WORLDS, -1) for one in measured]


def epsilon_shown(
    with_it: NDArray[np.float64], without: NDArray[np.float64], alpha: float = ALPHA
) -> float:
    """A lower bound on epsilon that is too high with a probability of at most `alpha`."""
    half = len(with_it) // 2
    thresholds = np.quantile(
        np.concatenate((with_it[:half], without[:half])), np.linspace(0, 1, 80)
    )
    sizes = [((with_it[:half] > t).mean(), (without[:half] > t).mean()) for t in thresholds]
    gains = [np.log(max(hit, 1e-9) / max(miss, 20 / half)) for hit, miss in sizes]
    threshold = thresholds[int(np.argmax(gains))]
    n_hits, n_misses = (int((one[half:] > threshold).sum()) for one in (with_it, without))
    n_runs = len(with_it) - half
    hits_at_least = beta.ppf(alpha / 2, n_hits, n_runs - n_hits + 1)
    misses_at_most = beta.ppf(1 - alpha / 2, n_misses + 1, n_runs - n_misses)
    return float(np.log(hits_at_least / misses_at_most))


def in_every_world(records: NDArray[np.int64]) -> NDArray[np.int64]:
    worlds = np.repeat(np.arange(N_WORLDS, dtype=np.int64), len(records))
    return np.column_stack((worlds, np.tile(records, (N_WORLDS, 1))))


def answers_by_world(block: QueryBlock, source: KnownTable) -> NDArray[np.float64]:
    exact = exact_answers(block, source.measure(block.scope), SCHEMA)
    return np.array(exact, dtype=float).reshape(N_WORLDS, -1)


@pytest.fixture
def attacked(tmp_path: Path) -> Callable[[Attack, NoiseSource, int], tuple[float, float]]:
    """Carries out an attack; what it shows of epsilon, and what was charged."""

    def carry_out(attack: Attack, noise: NoiseSource, n_runs: int) -> tuple[float, float]:
        tables = (KNOWN, np.vstack((KNOWN, [attack.record])))
        sources = [KnownTable(SCHEMA, in_every_world(records)) for records in tables]
        exact = [[answers_by_world(block, source) for block in attack.blocks] for source in sources]
        ratios = []
        charged = []
        for place, source in enumerate(sources):
            with open_ledger(tmp_path / f"{place}.ledger") as ledger:
                gate = open_table(ledger, SCHEMA, Fraction(10**8), source, noise)
                found, epsilon = likelihood_ratios(gate, attack, exact, n_runs)
                ratios.append(found)
                charged.append(epsilon)
        assert charged[0] == charged[1], "what is charged depends on nothing private"
        return epsilon_shown(ratios[1], ratios[0]), float(charged[0])

    return carry_out


Attacked = Callable[[Attack, NoiseSource, int], tuple[float, float]]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attacker_shows_no_more_than_was_charged(attacked: Attacked, attack: Attack) -> None:
    shown, charged = attacked(attack, SystemNoise(), 20_000)
    assert charged == 1
    assert 0.6 < shown <= charged, "an attack that shows next to nothing proves nothing"


@pytest.mark.parametrize("attack", [ATTACKS[0], ATTACKS[4]], ids=lambda attack: attack.name)
def test_the_attack_convicts_noise_that_is_a_fifth_too_small(
    attacked: Attacked, attack: Attack
) -> None:
    shown, charged = attacked(attack, QuieterNoise(), 80_000)
    assert shown > charged


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attacker_with_patience_shows_no_more_than_was_charged(
    attacked: Attacked, attack: Attack
) -> None:
    shown, charged = attacked(attack, SystemNoise(), 1_000_000)
    assert 0.95 < shown <= charged


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_every_attack_convicts_noise_that_is_a_fifth_too_small(
    attacked: Attacked, attack: Attack
) -> None:
    shown, charged = attacked(attack, QuieterNoise(), 200_000)
    assert shown > charged
