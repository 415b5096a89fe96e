"""The loss of a unit with several rows, over every way in which they can be in a table's cells."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.cost.history_cost import CostState, price_of
from accountant.cost.row_cost import most_of
from accountant.cost.zcdp_account import GaussianAccount, cost_of
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.query import QueryBlock, counting
from tests.support.cubes import blocks, dense_rows
from tests.support.examples import examples
from tests.support.gaussian import TERMS

PLANNED = st.builds(
    lambda block, size, is_gaussian: (
        PlannedMeasurement(block, Precision(size * 2**70), terms=TERMS)
        if is_gaussian
        else PlannedMeasurement(block, Weight(size * 2**30))
    ),
    blocks(whole=True).filter(lambda block: not block.query.is_constant),
    st.integers(1, 1000),
    st.booleans(),
)
PLANS = st.lists(PLANNED, min_size=1, max_size=4)


def units_of_rows(n_cells: int, n_rows: int) -> Iterator[Counter[int]]:
    """All units with so many rows, by the cells that these are in."""
    for cells in combinations_with_replacement(range(n_cells), n_rows):
        yield Counter(cells)


@lru_cache(maxsize=16)
def rows_of(block: QueryBlock) -> list[list[Fraction]]:
    """The coefficients of each row, of every cell; many units are held against the same plan."""
    return [[Fraction(one) for one in row] for row in dense_rows(block)]


def loss(plan: Sequence[PlannedMeasurement], unit: Counter[int]) -> Fraction:
    """What all rows of a plan lose of a unit, exactly, at the table's order."""
    total = Fraction(0)
    for planned in plan:
        for row in rows_of(planned.block):
            moved = sum((n * row[cell] for cell, n in unit.items()), Fraction(0))
            if planned.terms is None:
                total += planned.laplace_weight.exact * abs(moved)
            else:
                total += planned.terms.order * planned.precision.exact * moved**2
    return total


def cost(plan: Sequence[PlannedMeasurement], rows_per_unit: int) -> Fraction:
    """What a plan costs, in epsilon; exact on tables as small as these."""
    found = CostState(rows_per_unit=rows_per_unit).cost_with(plan)
    assert found.exact
    return Fraction(found.units, UNITS_PER_EPSILON)


def largest_loss(plan: Sequence[PlannedMeasurement], n_rows: int) -> Fraction:
    """Of the units in which one cell holds most; all of them where they are few."""
    n_cells = len(rows_of(plan[0].block)[0])
    one_cell = (Counter({cell: n_rows}) for cell in range(n_cells))
    several = units_of_rows(n_cells, n_rows) if n_rows <= 2 else ()
    return max(loss(plan, unit) for unit in (*one_cell, *several))


@settings(deadline=None, max_examples=examples(40))
@given(PLANS, st.integers(1, 5))
def test_no_unit_loses_more_than_is_charged_and_some_unit_loses_that(
    plan: list[PlannedMeasurement], n_rows: int
) -> None:
    """Rounding up adds a unit for each row of each block; nothing else lies between."""
    charged, lost = cost(plan, n_rows), largest_loss(plan, n_rows)
    n_rounded = sum(one.block.n_rows + 1 for one in plan)
    assert lost <= charged <= lost + Fraction(n_rounded, UNITS_PER_EPSILON)


@settings(deadline=None, max_examples=examples(20))
@given(PLANS, st.integers(2, 5))
def test_a_cost_that_forgets_the_rows_of_a_unit_is_convicted(
    plan: list[PlannedMeasurement], n_rows: int
) -> None:
    lost = largest_loss(plan, n_rows)
    if lost > Fraction(100, UNITS_PER_EPSILON):  # far beyond what rounding adds
        assert cost(plan, 1) < lost


def test_counting_rows_once_is_not_enough_for_gaussian_noise() -> None:
    """Three records of a unit move a count by three, and its rho by nine."""
    count = PlannedMeasurement(QueryBlock(counting()), Precision(2**75), terms=TERMS)
    lost = loss([count], Counter({0: 3}))
    assert 3 * cost([count], 1) < lost <= cost([count], 3)


@settings(deadline=None, max_examples=examples(40))
@given(PLANS, st.integers(1, 5))
def test_the_bound_of_a_price_counts_units_too(plan: list[PlannedMeasurement], n_rows: int) -> None:
    state = CostState(rows_per_unit=n_rows)
    price = price_of(state, 0, plan)
    assert price.units_after == state.cost_with(plan).units
    assert price.units_after <= sum(most_of(one, rows_per_unit=n_rows) for one in plan)
    after = price_of(state.charged(plan), price.units_after, plan[:1])
    assert after.units_after >= price.units_after


@pytest.mark.parametrize("n_rows", [1, 3, 20])
def test_the_rho_of_a_statistic_counts_the_square(n_rows: int) -> None:
    account = GaussianAccount(rows_per_unit=n_rows).followed_by(12_345_678, TERMS)
    expected = cost_of(TERMS, n_rows**2 * 12_345_678) * UNITS_PER_EPSILON
    assert expected <= account.units < expected + 1
    more = account.most_rho_units(TERMS, Fraction(1))
    assert account.followed_by(more, TERMS).units <= account.units + UNITS_PER_EPSILON
    assert (
        account.followed_by(more + 1, TERMS).units > account.units + UNITS_PER_EPSILON - n_rows**2
    )
