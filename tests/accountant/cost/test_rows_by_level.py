"""The loss of a unit with at most so many rows at each level of an axis, over every such unit."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.cost.history_cost import CostState, price_of
from accountant.cost.row_cost import most_of, row_cost, rows_in_block, rows_in_one
from cube.classes import tiled
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.pieces import runs_of
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.schema import RowsByLevel
from tests.accountant.cost.test_units import PLANS, loss
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples
from tests.support.gaussian import TERMS

LAPLACE = st.lists(
    st.builds(
        lambda block, units: PlannedMeasurement(block, Weight(units)),
        blocks(whole=True).filter(lambda block: not block.query.is_constant),
        st.integers(1, 1000),
    ),
    min_size=1,
    max_size=6,
)
AXES = st.sampled_from(sorted(SIZES))
BOUNDS = st.tuples(st.integers(1, 3), st.integers(2, 9)).filter(lambda pair: pair[0] < pair[1])


def costs_of_cells(plan: list[PlannedMeasurement]) -> np.ndarray:
    """What one row of a unit pays in each cell, by listing cells."""
    total = sum(
        one.laplace_weight.units * np.array([abs(int(x)) for x in row], dtype=object)
        for one in plan
        for row in dense_rows(one.block)
    )
    return np.asarray(total).reshape([SIZES[name] for name in sorted(SIZES)])


def largest_sum(by_level: list[int], m: int, k: int) -> int:
    """Over every number of rows at each level."""
    ways = product(range(m + 1), repeat=len(by_level))
    return max(
        sum(n * most for n, most in zip(way, by_level, strict=True))
        for way in ways
        if sum(way) <= k
    )


def by_levels(plan: list[PlannedMeasurement], axis: str) -> list[int]:
    costs = np.moveaxis(costs_of_cells(plan), sorted(SIZES).index(axis), 0)
    return [int(most) for most in costs.reshape(SIZES[axis], -1).max(axis=1)]


def levels_of_cells(axis: str) -> np.ndarray:
    """The level of every cell on an axis."""
    sizes = [SIZES[name] for name in sorted(SIZES)]
    return np.asarray(np.indices(sizes)[sorted(SIZES).index(axis)].ravel())


def depends_on(plan: list[PlannedMeasurement], axis: str) -> bool:
    """Whether a cost does; else all rows of a unit are charged, whatever the number of levels."""
    return any(axis in part.axes for one in plan for part in row_cost(one).parts)


@settings(deadline=None, max_examples=examples(200))
@given(LAPLACE, AXES, BOUNDS, st.sampled_from([2**16, 2, 5, 12]), st.integers(0, 6))
def test_the_cost_is_the_largest_loss_however_it_is_reached(
    plan: list[PlannedMeasurement], axis: str, bound: tuple[int, int], n_cells: int, n_before: int
) -> None:
    """At once, one by one, and in tables of a few cells: never below; and equal where it says so.

    Where all tables fit, it always says so.
    """
    m, k = bound
    most = by_levels(plan, axis)
    largest = largest_sum(most, m, k) if depends_on(plan, axis) else k * most[0]
    first = CostState(n_cells, k, RowsByLevel(axis, m)).charged(plan[:n_before])
    first.table_cost()
    grown = first
    for planned in plan[n_before:]:
        grown = grown.charged([planned])
    for found in (first.cost_with(plan[n_before:]), grown.table_cost()):
        assert found.units >= largest
        if found.exact or n_cells == 2**16:
            assert (found.units, found.exact) == (largest, True)


def test_an_example_that_no_simpler_formula_gets_right() -> None:
    """Days that cost 5, 3, 3 and 2: with two rows a day and seven in all, 2*5 + 2*3 + 2*3 + 2."""
    days = ((1, 1, 1, 1), (1, 1, 1, 0), (1, 0, 0, 0))
    plan = [
        PlannedMeasurement(counting_days(day), Weight(units))
        for day, units in zip(days, (2, 1, 2), strict=True)
    ]
    state = CostState(rows_per_unit=7, by=RowsByLevel("day", 2))
    assert state.cost_with(plan).units == 24
    assert CostState(rows_per_unit=7).cost_with(plan).units == 35


def has_one_sign(block: QueryBlock) -> bool:
    """Whether no row has coefficients of both signs, which cancel where a unit has both."""
    return all(min(row) >= 0 or max(row) <= 0 for row in dense_rows(block))


ONE_SIGN = st.lists(
    st.builds(
        lambda block, units: PlannedMeasurement(block, Weight(units)),
        blocks(whole=True).filter(lambda one: not one.query.is_constant and has_one_sign(one)),
        st.integers(1, 1000),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=examples(60))
@given(ONE_SIGN, AXES, BOUNDS)
def test_some_unit_loses_all_that_is_charged(
    plan: list[PlannedMeasurement], axis: str, bound: tuple[int, int]
) -> None:
    """The one whose rows are in the dearest cells of the dearest levels."""
    m, k = bound[0], min(bound[1], bound[0] * SIZES[axis])
    charged = CostState(rows_per_unit=k, by=RowsByLevel(axis, m)).cost_with(plan).units
    costs, level = costs_of_cells(plan).ravel(), levels_of_cells(axis)
    unit: Counter[int] = Counter()
    for cell in np.argsort(-costs, kind="stable").tolist():
        if not any(level[other] == level[cell] for other in unit):
            unit[cell] += min(m, k - unit.total())
    assert loss(plan, unit) == Fraction(charged, UNITS_PER_EPSILON)


@settings(deadline=None, max_examples=examples(60))
@given(PLANS, AXES, BOUNDS, st.randoms(use_true_random=False))
def test_no_unit_loses_more_with_either_kind_of_noise(
    plan: list[PlannedMeasurement],
    axis: str,
    bound: tuple[int, int],
    drawn: Random,
) -> None:
    """Units of random rows that keep both bounds, and units that fill level after level."""
    m, k = bound
    charged = CostState(rows_per_unit=k, by=RowsByLevel(axis, m)).cost_with(plan).units
    level = levels_of_cells(axis)
    n_cells = level.size
    for _ in range(20):
        cells = [drawn.randrange(n_cells) for _ in range(3 * k)]
        cells += [cell for cell in cells for _ in range(m)]
        unit: Counter[int] = Counter()
        at_level: Counter[int] = Counter()
        for cell in cells:
            if unit.total() < k and at_level[level[cell]] < m:
                unit[cell] += 1
                at_level[level[cell]] += 1
        assert loss(plan, unit) <= Fraction(charged, UNITS_PER_EPSILON)


def counting_days(is_counted: Sequence[int]) -> QueryBlock:
    factor = Factor(("day",), np.array(is_counted, dtype=np.int64))
    return QueryBlock(LinearQuery((Term(Fraction(1), (factor,)),), Fraction(0)))


@pytest.mark.parametrize(("m", "k", "n_days"), [(2, 7, 10), (2, 7, 3), (1, 10, 10)])
def test_gaussian_noise_by_day_costs_a_unit_what_its_rows_of_a_day_cost(
    m: int, k: int, n_days: int
) -> None:
    """A count of each day moves by m on each day: m squared a day. A count of all moves by k."""
    rate = TERMS.order * Precision(2**70).exact * UNITS_PER_EPSILON
    state = CostState(rows_per_unit=k, by=RowsByLevel("day", m))
    price = {}
    for is_grouped in (True, False):
        block = counting_days([1] * n_days + [0])
        if is_grouped:
            days = np.append(np.arange(n_days), -1)
            block = QueryBlock(counting(), Partition(("day",), days))
        price[is_grouped] = state.cost_with(
            [PlannedMeasurement(block, Precision(2**70), terms=TERMS)]
        ).units
    n_rows = min(k, m * n_days)
    assert n_rows * m * rate <= price[True] < n_rows * m * (rate + 1)
    assert n_rows**2 * rate <= price[False] < n_rows * (n_rows * rate + 1)


@settings(deadline=None, max_examples=examples(60))
@given(LAPLACE, AXES, BOUNDS)
def test_no_price_is_above_that_of_the_rows_that_a_block_can_be_about(
    plan: list[PlannedMeasurement], axis: str, bound: tuple[int, int]
) -> None:
    m, k = bound
    by = RowsByLevel(axis, m)
    state = CostState(rows_per_unit=k, by=by)
    price = price_of(state, 0, plan)
    at_most = sum(most_of(one, rows_per_unit=k, by=by) for one in plan)
    # What is the same at all levels is summed without their number, which a block may know.
    assert price.units_after == min(state.cost_with(plan).units, at_most)
    assert price.units_after <= CostState(rows_per_unit=k).cost_with(plan).units
    left = state.charged(plan)
    assert left.units_without(plan) == 0


@settings(deadline=None, max_examples=examples(100))
@given(blocks(whole=True).filter(lambda block: not block.query.is_constant), AXES)
def test_levels_of_a_block_and_of_its_rows_are_counted(block: QueryBlock, axis: str) -> None:
    """At least those at which a coefficient is not 0, by listing them."""
    place, by = sorted(SIZES).index(axis), RowsByLevel(axis, 1)
    sizes = [SIZES[name] for name in sorted(SIZES)]
    touched = [
        (np.moveaxis(np.array(row, dtype=object).reshape(sizes), place, 0) != 0)
        .reshape(SIZES[axis], -1)
        .any(axis=1)
        for row in dense_rows(block)
    ]
    assert np.any(touched, axis=0).sum() <= rows_in_block(block, by, 100) <= 100
    most = max(int(one.sum()) for one in touched)
    assert most <= rows_in_one(block, by, 100) <= rows_in_block(block, by, 100)


def test_levels_of_groups_are_counted_in_every_form() -> None:
    """Days in groups of 3, 5 and 2, beside a column of two: written out, in runs, and in tiles."""
    days = np.repeat([0, 1, 2, -1], [3, 5, 2, 4])
    together = np.stack((days, np.where(days >= 0, days + 3, -1)))
    halves = runs_of(np.array([0, 1]))
    tiles = tiled((runs_of(days + 1), halves), np.array([[-1, -1], [0, 3], [1, 4], [2, 5]]))
    for partition in (
        Partition(("day",), days),
        Partition(("day",), runs_of(days)),
        Partition(("a", "day"), together),
        Partition(("day", "half"), tiles),
    ):
        assert rows_in_one(QueryBlock(counting(), partition), RowsByLevel("day", 2), 100) == 10
