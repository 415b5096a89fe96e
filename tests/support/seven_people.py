"""Seven people at the gate: their table, blocks that are asked over it, and how they are bought."""

from fractions import Fraction

import numpy as np

from accountant.gate.gate import Gate
from accountant.ledger.limits import Payer
from cube.axis import CategoryAxis, IntegerAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema

AGE = IntegerAxis(name="age", low=0, high=5)
SEX = CategoryAxis(name="sex", values=("Female", "Male"))
SCHEMA = Schema(table="people", axes=(AGE, SEX), n_records_max=1000)
RECORDS = np.array([[0, 0], [1, 0], [1, 1], [5, 1], [5, 1], [3, 0], [2, 1]], dtype=np.int64)
BUDGET = Fraction(1)
QUARTER, HALF = Weight.at_least(Fraction(1, 4)), Weight.at_least(Fraction(1, 2))
EVERYONE = QueryBlock(counting())
ADULTS = QueryBlock(counting([Factor(("age",), np.array([0, 0, 1, 1, 1, 1], dtype=np.int64))]))
BY_SEX = QueryBlock(ADULTS.query, Partition(("sex",), np.arange(2, dtype=np.int64)))
FRESH = PlannedMeasurement(BY_SEX, QUARTER)
RAISE = PlannedMeasurement(BY_SEX, HALF, raised_from=0)


def plan(*blocks: QueryBlock, weight: Weight = QUARTER) -> list[PlannedMeasurement]:
    return [PlannedMeasurement(block, weight) for block in blocks]


def buy(gate: Gate, *plan: PlannedMeasurement, cap: Fraction | None = None) -> None:
    gate.measure(plan, Payer("ann"), epsilon_cap=cap)
