"""An attacker on counts of units: who knows all but one unit, and in which groups it counts.

As in `test_attack.py`, in many worlds at once: what the likelihood ratio of the noisy counts shows
of epsilon must not pass what was charged, and the attack must convict a server that counts a unit
in more groups than it charges for. Each test is wrong about an honest gate with a probability of at
most 1e-4.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.exact import unit_counts
from accountant.exact.unit_counts import exact_bounded_rows, exact_unit_counts
from accountant.gate import release
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.grouping import Grouping
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from accountant.source import CellCounts, UnitCells
from cube.axis import IntegerAxis
from cube.measurement import Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from cube.statistic import BoundedRows, OfUnits, PlannedUnitCount, UnitCount
from tests.end_to_end.test_attack import N_WORLDS, epsilon_shown
from tests.support.groupings import each

ROWS_MAX = 3
AGES = 5
SCHEMA = Schema(
    table="orders",
    axes=(
        IntegerAxis(name="age", low=0, high=AGES - 1),
        IntegerAxis(name="world", low=0, high=N_WORLDS - 1),
    ),
    n_records_max=100 * N_WORLDS,
    unit="person",
    rows_per_unit_max=ROWS_MAX,
)
GROUPS = np.arange(AGES * N_WORLDS, dtype=np.int64).reshape(N_WORLDS, AGES).T
BY_AGE = QueryBlock(counting(), Partition(("age", "world"), GROUPS))
ONE_GROUP = QueryBlock(counting(), Partition(("world",), np.arange(N_WORLDS, dtype=np.int64)))
AGE = Factor(("age",), np.arange(AGES, dtype=np.int64))
SUM_OF_AGES = QueryBlock(counting([AGE]), ONE_GROUP.partition)
OTHERS = ((0, 0, 1), (2,), (1, 2, 4))  # the ages of other units' rows in each world
VICTIM = (0, 1, 3)
N_RUNS = 20_000


class Worlds:
    """A `Source`: in each world the same units, each with a digest that no other has."""

    def __init__(self, units: tuple[tuple[int, ...], ...]) -> None:
        rng = np.random.default_rng(8)  # the same digests, whether the last unit is there or not
        digests = rng.integers(0, 2**60, (len(OTHERS) + 1, N_WORLDS))
        rows = [
            (age, world, number * N_WORLDS + world, digests[number, world])
            for number, ages in enumerate(units)
            for age in ages
            for world in range(N_WORLDS)
        ]
        self.rows = np.array(rows, dtype=np.int64)

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        return key.hex()

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        return key.hex()

    def measure(self, grouping: Grouping) -> CellCounts:
        raise NotImplementedError(f"nobody asks for rows of {grouping.scope}")

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """Cells may be told apart that are counted alike."""
        places = [("age", "world").index(name) for name in grouping.scope]
        pairs, counts = np.unique(self.rows[:, [*places, 2, 3]], axis=0, return_counts=True)
        *levels, units, digests = (np.ascontiguousarray(column) for column in pairs.T)
        return UnitCells(tuple(levels), units, digests, np.zeros_like(units), counts)


@dataclass(frozen=True)
class Attack:
    """Groups, the most of them in which a unit counts, and a weight that makes it cost 1."""

    name: str
    count: OfUnits
    weight: Weight
    is_raised: bool = False


def costing_one(reach: int) -> Weight:
    """Rounded down: `reach` of them cost 1 at most, and nearly that."""
    return Weight(2**40 // reach)


ATTACKS = (
    Attack("once in a world", UnitCount(ONE_GROUP, 1), costing_one(1)),
    Attack("in all of its groups", UnitCount(BY_AGE, ROWS_MAX), costing_one(3)),
    Attack("in two of its groups", UnitCount(BY_AGE, 2), costing_one(2)),
    Attack("raised", UnitCount(ONE_GROUP, 1), costing_one(1), is_raised=True),
    Attack("two of its rows", BoundedRows(BY_AGE, 2, 2), costing_one(2)),
    Attack("a sum of its ages", BoundedRows(SUM_OF_AGES, ROWS_MAX, 3), costing_one(3)),
)

Attacked = Callable[[Attack], tuple[float, float]]


@pytest.fixture
def attacked(tmp_path: Path) -> Attacked:
    """Carries out an attack; what was charged for one run, and what it shows."""

    def carry_out(attack: Attack) -> tuple[float, float]:
        sources = [Worlds(OTHERS), Worlds((*OTHERS, VICTIM))]
        exact = [exact_in(source, attack.count) for source in sources]
        ratios, charged = [], []
        for place, source in enumerate(sources):
            with open_ledger(tmp_path / f"{place}.ledger") as ledger:
                gate = open_table(ledger, SCHEMA, Fraction(10**8), source, SystemNoise())
                found = [shown(gate, attack, *exact) for _ in range(N_RUNS // N_WORLDS)]
                ratios.append(np.concatenate(found))
                charged.append(float(gate.budget().spent) / len(found))
        assert charged[0] == charged[1]
        return charged[0], epsilon_shown(ratios[1], ratios[0])

    return carry_out


def exact_in(source: Worlds, count: OfUnits) -> NDArray[np.float64]:
    """The exact counts of each world, as the server counts them, (N_WORLDS, n)."""
    cells = source.measure_units(each(SCHEMA, *count.block.scope))
    found = release.exact_of_units(count, count.reach(ROWS_MAX), cells, SCHEMA)  # type: ignore[attr-defined]  # perhaps replaced
    return np.array(found, dtype=float).reshape(N_WORLDS, -1)


def shown(
    gate: Gate, attack: Attack, without: NDArray[np.float64], with_it: NDArray[np.float64]
) -> NDArray[np.float64]:
    """For each world, how much likelier its counts are with the unit."""
    first = len(gate.history.unit_counts.measurements)
    halves = [Weight(attack.weight.units // 2)] if attack.is_raised else []
    for place, weight in enumerate([*halves, attack.weight]):
        raised_from = first if place else None
        asked = PlannedUnitCount(attack.count, weight, raised_from)
        payment = gate.charge([], Payer("eve"), epsilon_cap=None, statistics=[asked])
        gate.complete(payment.seq)
    values = gate.history.unit_counts.measurements[-1].values.reshape(N_WORLDS, -1)
    further = np.abs(values - without) - np.abs(values - with_it)
    return np.asarray(float(attack.weight.exact) * further.sum(axis=1))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attacker_shows_no_more_of_a_unit_than_was_charged(
    attacked: Attacked, attack: Attack
) -> None:
    charged, shown = attacked(attack)
    assert charged == pytest.approx(1)
    assert 0.5 < shown <= 1, "an attack that shows next to nothing proves nothing"


def test_the_attack_convicts_a_server_that_counts_a_unit_in_all_of_its_groups(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It charges for one group, and counts three."""

    def in_all(count: UnitCount, _: int, cells: UnitCells, schema: Schema) -> list[int]:
        return exact_unit_counts(count, ROWS_MAX, cells, schema)

    monkeypatch.setattr(release, "exact_of_units", in_all)
    charged, shown = attacked(Attack("forgotten", UnitCount(BY_AGE, 1), costing_one(1)))
    assert charged == pytest.approx(1)
    assert shown > 1.5 * charged


def test_the_attack_convicts_a_server_that_cuts_no_sum(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It charges for a sum of 2, and the unit's ages add up to 4."""

    def in_full(asked: BoundedRows, _: int, cells: UnitCells, schema: Schema) -> list[int]:
        return exact_bounded_rows(replace(asked, sum_max=4 * ROWS_MAX), cells, schema)

    monkeypatch.setattr(release, "exact_of_units", in_full)
    attack = Attack("uncut", BoundedRows(SUM_OF_AGES, ROWS_MAX, 2), costing_one(2))
    charged, shown = attacked(attack)
    assert charged == pytest.approx(1)
    assert shown > 1.5 * charged


def test_the_attack_convicts_a_server_whose_groups_change_with_others(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the order of groups that of numbers of units in the table, others would move, too."""
    numbers_of_all = unit_counts.mixed

    def by_number(digests: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.uint64]:
        return numbers_of_all(digests * 0 + digests.size, groups)

    monkeypatch.setattr(unit_counts, "mixed", by_number)
    charged, shown = attacked(Attack("others move", UnitCount(BY_AGE, 1), costing_one(1)))
    assert charged == pytest.approx(1)
    assert shown > 1.2 * charged
