"""Orders of a few people: a source of units, and counts of them by their definition."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from accountant.exact.unit_counts import exact_of_units
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.grouping import Grouping
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import NoiseSource, SystemNoise
from accountant.source import CellCounts, UnitCells
from cube.axis import CategoryAxis, IntegerAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.schema import Schema
from cube.statistic import OfUnits, PlannedUnitCount
from tests.support.groupings import each

ANN = Payer("ann")
CITY = CategoryAxis(name="city", values=("a", "b", "c"))
HOUR = IntegerAxis(name="hour", low=0, high=1)
ROWS_MAX = 3
EVERYBODY = QueryBlock(counting())
BY_CITY = QueryBlock(counting(), Partition(("city",), np.arange(3, dtype=np.int64)))
LATE = Factor(("hour",), np.array([0, 1], dtype=np.int64))
LATE_BY_CITY = QueryBlock(counting([LATE]), Partition(("city",), np.array([0, -1, 1])))
SIGNED = QueryBlock(  # 1 in every cell of the first city, and late in the others
    LinearQuery(
        (
            Term(Fraction(1), (Factor(("city",), np.array([1, 0, 0], dtype=np.int64)),)),
            Term(Fraction(1), (LATE,)),
            Term(
                Fraction(-1),
                (Factor(("city",), np.array([1, 0, 0], dtype=np.int64)), LATE),
            ),
        )
    ),
    Partition(("city", "hour"), np.arange(6, dtype=np.int64).reshape(3, 2)),
)
BLOCKS = (EVERYBODY, BY_CITY, LATE_BY_CITY, SIGNED)
QUARTER, HALF = Weight.at_least(Fraction(1, 4)), Weight.at_least(Fraction(1, 2))

Cell = tuple[int, int]
Unit = tuple[Cell, ...]  # the cells of its rows
CELLS: tuple[Cell, ...] = tuple(product(range(3), range(2)))


def schema(rows_max: int = ROWS_MAX) -> Schema:
    return Schema(
        table="orders",
        axes=(CITY, HOUR),
        n_records_max=100_000,
        unit="person",
        rows_per_unit_max=rows_max,
    )


class Orders:
    """A `Source` of units, each with a digest of its own and the cells of its rows.

    Rows were left out of those with odd digests.
    """

    def __init__(self, units: dict[int, Unit]) -> None:
        self.units = units

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        return f"{self.units} {len(key)}"

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        return f"the rows of {self.units} {len(key)}"

    def measure(self, grouping: Grouping) -> CellCounts:
        scope = grouping.scope
        counts = Counter(levels_of(cell, scope) for unit in self.units.values() for cell in unit)
        if not scope:
            return CellCounts((), np.array([sum(counts.values())], dtype=np.int64))
        levels = np.array(list(counts), dtype=np.int64).reshape(len(counts), len(scope))
        return CellCounts(tuple(levels.T), np.array(list(counts.values()), dtype=np.int64))

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """Cells may be told apart that are counted alike."""
        scope = grouping.scope
        pairs = Counter(
            (*levels_of(cell, scope), number, digest)
            for number, (digest, unit) in enumerate(sorted(self.units.items()))
            for cell in unit
        )
        table = np.array(sorted(pairs), dtype=np.int64).reshape(len(pairs), len(scope) + 2)
        *levels, numbers, digests = table.T
        n_rows = np.array([pairs[one] for one in sorted(pairs)], dtype=np.int64)
        return UnitCells(tuple(levels), numbers, digests, digests % 2, n_rows)


def levels_of(cell: Cell, scope: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(cell[("city", "hour").index(name)] for name in scope)


def counts(units: dict[int, Unit], count: OfUnits, rows_max: int = ROWS_MAX) -> list[int]:
    """The exact counts, as the gate computes them."""
    cells = Orders(units).measure_units(each(schema(rows_max), *count.block.scope))
    return exact_of_units(count, count.reach(rows_max), cells, schema(rows_max))


def group_of(block: QueryBlock, cell: Cell) -> int | None:
    """The group in which a row in a cell counts, from the definition; None if in none."""
    value = Fraction(0)
    for term in block.query.terms:
        coefficient = term.scale
        for factor in term.factors:
            coefficient *= int(factor.values[levels_of(cell, factor.axes)])
        value += coefficient
    if value == 0:
        return None
    if block.partition is None:
        return 0
    label = int(block.partition.labels[levels_of(cell, block.partition.axes)])
    return None if label < 0 else label


def counted_plainly(units: dict[int, Unit], block: QueryBlock) -> list[int]:
    """How many units have a row in each group, all groups of each."""
    found = [0] * block.n_rows
    for unit in units.values():
        for group in {group_of(block, cell) for cell in unit} - {None}:
            found[int(str(group))] += 1
    return found


def all_units(rows_max: int = ROWS_MAX) -> Iterator[Unit]:
    for n_rows in range(1, rows_max + 1):
        yield from combinations_with_replacement(CELLS, n_rows)


UNITS = st.lists(st.sampled_from(CELLS), min_size=1, max_size=ROWS_MAX).map(tuple)
TABLES = st.dictionaries(st.integers(0, 2**60 - 1), UNITS, max_size=5)


class gate_on:  # noqa: N801 - a context manager, as a function would be
    """The gate of a table of orders, with its ledger in a folder."""

    def __init__(self, folder: Path, noise: NoiseSource | None = None) -> None:
        self.ledger = open_ledger(folder / "orders.ledger")
        self.noise = noise or SystemNoise()

    def __enter__(self) -> Gate:
        units = {11: ((0, 0), (1, 1), (1, 1)), 12: ((0, 1),), 5: ((0, 0), (1, 0), (2, 0))}
        return open_table(self.ledger, schema(), Fraction(10), Orders(units), self.noise)

    def __exit__(self, *_: object) -> None:
        self.ledger.close()


def bought(gate: Gate, *asked: PlannedUnitCount, rows: Sequence[PlannedMeasurement] = ()) -> int:
    """What counts of units, and rows, are charged, in units; they are measured then."""
    payment = gate.charge(rows, ANN, epsilon_cap=None, statistics=asked)
    assert gate.complete(payment.seq) is not None
    return payment.units
