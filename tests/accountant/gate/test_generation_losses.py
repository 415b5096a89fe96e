"""The loss of a person over all generations of a table, by enumeration and by their laws."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.cost.history_cost import CostState
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term
from cube.schema import RowsByLevel, Schema
from tests.accountant.gate import test_gaussian_loss as mixed_noise
from tests.support.fakes import KnownTable
from tests.support.generations import ANN, FUNDS, N_CELLS, ONE, check, renewed
from tests.support.seven_people import AGE, RECORDS, SCHEMA, SEX


def random_block(rng: np.random.Generator) -> QueryBlock:
    """A block of one or two rows with small coefficients, about some of the cells."""
    ages = Factor(("age",), rng.integers(-2, 3, size=AGE.size).astype(np.int64))
    sexes = Factor(("sex",), rng.integers(0, 2, size=SEX.size).astype(np.int64))
    terms = [Term(Fraction(1), (ages, sexes))]
    if rng.integers(2):
        terms.append(Term(Fraction(1), (Factor(("age",), rng.integers(0, 2, size=AGE.size)),)))
    partition = Partition(("sex",), np.arange(2, dtype=np.int64)) if rng.integers(2) else None
    return QueryBlock(LinearQuery(tuple(terms)), partition)


def coefficient(block: QueryBlock, at: dict[str, int]) -> int:
    """How much a record of a cell moves the row of its group."""
    total = 0
    for term in block.query.terms:
        values = [one.values[tuple(at[name] for name in one.axes)] for one in term.factors]
        total += int(term.scale) * int(np.prod(values))
    return total


def moved(block: QueryBlock) -> NDArray[np.int64]:
    """How much a record of each cell moves each row: (n_rows, N_CELLS)."""
    found = np.zeros((block.n_rows, N_CELLS), dtype=np.int64)
    for place, (age, sex) in enumerate(product(range(AGE.size), range(SEX.size))):
        row = 0 if block.partition is None else int(block.partition.labels[sex])
        found[row, place] = coefficient(block, {"age": age, "sex": sex})
    return found


def losses(gate: Gate, rows_max: int, by: RowsByLevel | None) -> list[int]:
    """For each generation, the largest loss of a unit: over all rows that it may have in it."""
    cells = list(product(range(AGE.size), range(SEX.size)))
    allowed = [
        chosen
        for n in range(rows_max + 1)
        for chosen in combinations_with_replacement(range(N_CELLS), n)
        if by is None
        or all(sum(cells[one][0] == age for one in chosen) <= by.rows for age in range(AGE.size))
    ]
    found = []
    for history in (*gate.history.earlier, gate.history):
        measured = [(moved(one.block), one.weight.units) for one in history.measurements]
        found.append(
            max(
                sum(
                    units * int(np.abs(rows[:, list(chosen)].sum(axis=1)).sum())
                    for rows, units in measured
                )
                for chosen in allowed
            )
        )
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bound", ["one row", "two rows", "two rows, one at each age"])
def test_no_unit_loses_more_than_was_charged_and_some_unit_does(
    ledger: Ledger, seed: int, bound: str
) -> None:
    """By enumeration over all rows that a unit may have in each generation.

    Within a generation some signs may cancel between a unit's rows, which no price relies on: a
    unit with one row loses exactly what is charged. What a cell has cost in all generations
    together, and what the last generation costs, are both less than the loss.
    """
    rng = np.random.default_rng(seed)
    rows_max = 1 if bound == "one row" else 2
    by = RowsByLevel("age", 1) if "at each" in bound else None
    schema = Schema(
        table="people",
        axes=SCHEMA.axes,
        n_records_max=1000,
        unit="who",
        rows_per_unit_max=rows_max,
        rows_per_unit_max_by=by,
    )
    gate = open_table(ledger, schema, FUNDS, KnownTable(schema, RECORDS), SystemNoise())
    bought = []
    for generation in range(3):
        if generation:
            renewed(gate, ledger, rng.integers(0, 2, size=(5 + generation, 2)).astype(np.int64))
        for _ in range(3):
            block, times = random_block(rng), int(rng.integers(1, 4))
            if not moved(block).any():
                continue
            bought.append(PlannedMeasurement(block, Weight(times * ONE.units)))
            gate.measure(bought[-1:], ANN, epsilon_cap=None)
    each = losses(gate, rows_max, by)
    charged = gate.history.units_spent
    assert sum(each) <= charged
    check(ledger)
    if rows_max == 1:
        assert sum(each) == charged
        own_cells = CostState().charged(bought).table_cost().units
        assert own_cells < sum(each)  # a server whose cells keep only their own cost is convicted
        assert each[-1] < sum(each)  # and so is one that forgets


def test_the_laws_of_both_noises_over_two_generations(ledger: Ledger, table: KnownTable) -> None:
    """A person who was in the dearest cell of either: summed up value by value.

    The constant of the Gaussian account is paid once. A server whose cells keep only their own cost
    is convicted.
    """
    gate = open_table(ledger, SCHEMA, FUNDS, table, SystemNoise())
    plans = []
    for sex in (0, 1):
        of_sex = Factor(("sex",), np.array([1 - sex, sex], dtype=np.int64))
        block = QueryBlock(LinearQuery((Term(Fraction(1), (of_sex,)),)))
        plans.append([replace(planned, block=block) for planned in mixed_noise.MIXED])
        if sex:
            renewed(gate, ledger)
        gate.measure(plans[-1], ANN, epsilon_cap=None)
    parts = [mixed_noise.losses(planned, 1) for plan in plans for planned in plan]
    constant = Fraction(mixed_noise.CONSTANT, UNITS_PER_EPSILON)
    charged = Fraction(gate.history.units_spent, UNITS_PER_EPSILON)
    each = Fraction(mixed_noise.priced(mixed_noise.MIXED)) - constant
    assert charged == 2 * each + constant
    assert mixed_noise.delta_of(parts, float(charged)) <= float(mixed_noise.DELTA)
    own = CostState().charged([*plans[0], *plans[1]]).table_cost().units
    forgetful = float(Fraction(own, UNITS_PER_EPSILON) + constant)
    assert mixed_noise.delta_of(parts, forgetful) > float(mixed_noise.DELTA)
    check(ledger)
