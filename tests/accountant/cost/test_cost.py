"""The table's cost against brute force over every cell of small cubes."""

import gc
import math
import weakref
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction, added, multiplied
from accountant.cost.elimination import Elimination, maximum
from accountant.cost.history_cost import CostState, price_of
from accountant.cost.row_cost import most_of, profile_of, row_cost
from accountant.cost.summed_costs import TableCost
from cube.encoding import decode_block, encode_block
from cube.measurement import (
    PRECISION_UNITS_MAX,
    UNITS_PER_EPSILON,
    PlannedMeasurement,
    Precision,
    Weight,
)
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.gaussian import TERMS

HUGE = 2**52  # the largest weight: with coefficients in the thousands, int64 overflows
FINEST = PRECISION_UNITS_MAX


@st.composite
def planned(draw: st.DrawFn) -> PlannedMeasurement:
    block = draw(blocks(whole=True).filter(lambda block: not block.query.is_constant))
    if draw(st.booleans()):
        units = draw(st.one_of(st.integers(1, 2**60), st.integers(FINEST - 9, FINEST)))
        return PlannedMeasurement(block, Precision(units), terms=TERMS)
    units = draw(st.one_of(st.integers(1, 9), st.integers(HUGE - 9, HUGE)))
    return PlannedMeasurement(block, Weight(units))


plans = st.lists(planned(), min_size=1, max_size=4)


def test_pricing_a_block_does_not_keep_it_alive() -> None:
    block = QueryBlock(counting([Factor(("a",), np.array([1, 0, 0]))]))
    profile_of(block)
    watched = weakref.ref(block)
    del block
    gc.collect()
    assert watched() is None


def cost_of(bought: PlannedMeasurement, coefficient: Fraction) -> Fraction:
    """What a row costs a cell, in units, by the definition."""
    if bought.terms is None:
        return bought.weight.units * abs(coefficient)
    rho = bought.weight.exact * coefficient**2
    return Fraction(math.ceil(bought.terms.order * rho * UNITS_PER_EPSILON))


def brute_force_cost(plan: list[PlannedMeasurement]) -> int:
    """The largest B over every cell of the cube, one cell after the other."""
    paid = [Fraction(0)] * int(np.prod(list(SIZES.values())))
    for bought in plan:
        for row in dense_rows(bought.block):
            for cell, coefficient in enumerate(row):
                paid[cell] += cost_of(bought, coefficient)
    largest = max(paid)
    assert largest.denominator == 1
    return int(largest)


@settings(deadline=None)
@given(plans)
def test_the_table_cost_is_the_largest_cost_of_any_cell(plan: list[PlannedMeasurement]) -> None:
    cost = CostState().charged(plan).table_cost()
    assert cost.units == brute_force_cost(plan)
    assert cost.exact


@settings(deadline=None)
@given(plans, st.integers(1, 12))
def test_a_bound_never_under_reports(plan: list[PlannedMeasurement], n_cells_max: int) -> None:
    state = CostState(n_cells_max=n_cells_max).charged(plan)
    cost = state.table_cost()
    truth = brute_force_cost(plan)
    assert cost.units >= truth
    if cost.exact:
        assert cost.units == truth


@settings(deadline=None)
@given(blocks(whole=True), st.integers(1, 12))
def test_a_profile_bound_is_nowhere_below_the_profile(block: QueryBlock, n_cells_max: int) -> None:
    truth = CellFunction.of_levels(tuple(sorted(SIZES)), _dense_magnitude(block))
    profile = profile_of(block, n_cells_max)
    gap = added([*profile.parts, truth.scaled(-1)])
    assert int(gap.values.min()) >= 0
    if profile.exact:
        assert gap.bound == 0
    assert profile.bound >= truth.bound


@settings(deadline=None)
@given(planned(), st.integers(1, 12))
def test_the_cost_of_a_row_is_nowhere_below_what_a_cell_pays(
    bought: PlannedMeasurement, n_cells_max: int
) -> None:
    """Also where the profile is only a bound, of several parts."""
    sizes = _dense_magnitude(bought.block)
    costs = [int(cost_of(bought, Fraction(size))) for size in sizes.ravel().tolist()]
    truth = np.array(costs, dtype=object).reshape(sizes.shape)
    cost = row_cost(bought, profile_of(bought.block, n_cells_max))
    gap = added([*cost.parts, CellFunction.of_levels(tuple(sorted(SIZES)), -truth)])
    assert int(gap.values.min()) >= 0
    if cost.exact:
        assert gap.bound == 0
    assert most_of(bought) >= max(costs)


def _dense_magnitude(block: QueryBlock) -> NDArray[np.int64]:
    rows = np.array([[int(value) for value in row] for row in dense_rows(block)], dtype=np.int64)
    magnitudes: NDArray[np.int64] = np.abs(rows).sum(axis=0)
    return magnitudes.reshape([SIZES[name] for name in sorted(SIZES)])


@settings(deadline=None)
@given(plans)
def test_the_order_of_purchases_does_not_matter(plan: list[PlannedMeasurement]) -> None:
    forwards = CostState().charged(plan).table_cost()
    one_by_one = CostState()
    for bought in reversed(plan):
        one_by_one = one_by_one.charged([bought])
    assert one_by_one.table_cost() == forwards


@settings(deadline=None)
@given(plans, plans, st.integers(1, 12))
def test_spending_never_falls_and_a_plan_costs_at_most_the_sum_of_its_parts(
    history: list[PlannedMeasurement], plan: list[PlannedMeasurement], n_cells_max: int
) -> None:
    before = CostState(n_cells_max=n_cells_max).charged(history)
    units_spent = before.table_cost().units
    price = price_of(before, units_spent, plan)
    assert units_spent <= price.units_after
    assert price.units_after >= brute_force_cost([*history, *plan])
    bounds = [(bought, profile_of(bought.block).bound) for bought in plan]
    units = sum(cost_of(bought, Fraction(bound)) for bought, bound in bounds)
    assert price.epsilon <= units / UNITS_PER_EPSILON


@settings(deadline=None)
@given(st.lists(plans, min_size=1, max_size=5), st.integers(1, 24))
def test_what_is_added_to_a_known_cost_is_never_under_reported(
    purchases: list[list[PlannedMeasurement]], n_cells_max: int
) -> None:
    state, everything = CostState(n_cells_max=n_cells_max), list[PlannedMeasurement]()
    for plan in purchases:
        state = state.charged(plan)
        everything += plan
        cost = state.table_cost()  # known from here on: the next purchase starts from it
        truth = brute_force_cost(everything)
        assert cost.units >= truth
        assert cost.units == truth or not cost.exact


FIVE = {"age": 6, "city": 5, "gender": 2, "hours": 7, "income": 3}


def _conjunction(rng: np.random.Generator) -> PlannedMeasurement:
    """A range or a set on one to four of five columns, perhaps by another column's levels."""
    names = rng.permutation(list(FIVE))[: rng.integers(1, 5)]
    factors = []
    for name in sorted(names):
        values = np.zeros(FIVE[name], dtype=np.int64)
        values[rng.permutation(FIVE[name])[: rng.integers(1, FIVE[name] + 1)]] = 1
        factors.append(Factor((str(name),), values))
    partition = None
    others = sorted(FIVE.keys() - set(names))
    if rng.random() < 0.3:
        partition = Partition((others[0],), np.arange(FIVE[others[0]], dtype=np.int64) - 1)
    return PlannedMeasurement(QueryBlock(counting(factors), partition), Weight(_units(rng)))


def _units(rng: np.random.Generator) -> int:
    return int(rng.integers(1, 1000))


@settings(deadline=None)
@given(plans, plans, st.integers(1, 4))
def test_a_plan_costs_the_same_whether_it_was_priced_before_or_not(
    paid: list[PlannedMeasurement], plan: list[PlannedMeasurement], n_cells_max: int
) -> None:
    priced, plain = (CostState(n_cells_max).charged(paid) for _ in range(2))
    assert priced.table_cost() == plain.table_cost()
    assert priced.cost_with(plan) == priced.cost_with(plan)
    priced.cost_with(plan[:1])  # of another plan nothing is taken
    assert priced.cost_with(plan).units >= brute_force_cost([*paid, *plan])
    after = [state.charged(plan).table_cost() for state in (priced, plain)]
    if after[0].exact or after[1].exact:
        assert after[0] == after[1]
    # Two bounds may differ, as boxes are divided in the order in which rows come.
    assert min(one.units for one in after) >= brute_force_cost([*paid, *plan])
    again = [replace(one, block=decode_block(encode_block(one.block))) for one in plan]
    assert priced.charged(again).table_cost() == after[0]


@settings(deadline=None)
@given(st.lists(st.lists(planned(), min_size=1, max_size=2), min_size=2, max_size=8))
def test_a_sum_that_grows_has_the_maximum_of_a_sum_made_at_once(
    steps: list[list[PlannedMeasurement]],
) -> None:
    """Also where a message stays what it was, and nothing beyond it is computed again."""
    grown, functions = Elimination(), list[CellFunction]()
    for plan in steps:
        new = [part for one in plan for part in row_cost(one).parts]
        grown = grown.added(new)
        functions += new
        assert grown.maximum == maximum(functions)


@pytest.mark.parametrize("n_cells_max", [2**16, 300, 40])
def test_thousands_of_predicates_on_five_columns_cost_what_the_dearest_cell_pays(
    n_cells_max: int,
) -> None:
    """Bought in turns of all sizes; brute force over all 1,260 cells after each."""
    rng = np.random.default_rng(5)
    state, paid = CostState(n_cells_max=n_cells_max), np.zeros(list(FIVE.values()), dtype=np.int64)
    for n_bought in (1, 3, 1, 40, 1, 1, 200, 1, 1, 1000, 1, 1):
        plan = [_conjunction(rng) for _ in range(n_bought)]
        state = state.charged(plan)
        for bought in plan:
            paid += bought.weight.units * _over_five(bought.block)
        cost = state.table_cost()
        assert cost.units >= paid.max()
        if n_cells_max == 2**16:
            assert cost.exact
        if cost.exact:
            assert cost.units == paid.max()


def _over_five(block: QueryBlock) -> NDArray[np.int64]:
    inside = np.ones(list(FIVE.values()), dtype=np.int64)
    arrays = [(factor.axes, factor.values) for factor in block.query.terms[0].factors]
    if block.partition is not None:
        arrays.append((block.partition.axes, (block.partition.labels >= 0).astype(np.int64)))
    for (name,), values in arrays:
        inside = inside * values.reshape([-1 if name == other else 1 for other in FIVE])
    return inside


def test_a_state_lets_go_of_those_before_it_once_its_cost_is_known() -> None:
    first = CostState().charged([PlannedMeasurement(_row([1, 0]), Weight(3))])
    watched, last = weakref.ref(first), first.charged([PlannedMeasurement(_row([0, 1]), Weight(5))])
    del first
    assert last.table_cost() == TableCost(5, exact=True)
    gc.collect()
    assert watched() is None


def test_the_worked_example_of_the_paper_costs_three_eighths() -> None:
    """Xiao & Xiong 2012, equations 11 and 12, and the example after Theorem 5.4."""
    rows = [
        ([1, 1, 0, 0], 50),
        ([0, 0, 1, 1], 100),
        ([0, 0, 0, 1], 50),
        ([0, 0, 1, 0], 100),
        ([0, 1, 0, 1], 100),
        ([2, 1, 0, 0], 25),  # the paper's 0.05 over a sensitivity of 2, in thousandths
        ([0, 0, 2, -1], 25),
        ([0, -1, 0, 1], 100),
    ]
    plan = [PlannedMeasurement(_row(coefficients), Weight(units)) for coefficients, units in rows]
    paid = added([part for bought in plan for part in _paid(bought)])
    assert paid.values[paid.classes[0].of_level].tolist() == [100, 275, 250, 375]
    assert CostState().charged(plan).table_cost() == TableCost(375, exact=True)


def _row(coefficients: list[int]) -> QueryBlock:
    return QueryBlock(counting([Factor(("cell",), np.array(coefficients, dtype=np.int64))]))


def _paid(bought: PlannedMeasurement) -> list[CellFunction]:
    return [part.scaled(bought.weight.units) for part in profile_of(bought.block).parts]


def test_the_rows_of_a_group_by_cost_what_one_row_costs() -> None:
    grouped = QueryBlock(counting(), Partition(("age",), np.arange(74, dtype=np.int64)))
    state = CostState().charged([PlannedMeasurement(grouped, Weight.at_least(0.5))])
    assert state.table_cost().units == UNITS_PER_EPSILON // 2
    assert not profile_of(grouped).parts[0].axes, (
        "a full GROUP BY charges every cell alike: no axis is needed"
    )


def test_predicates_that_exclude_each_other_compose_in_parallel() -> None:
    weight = Weight.at_least(0.5)
    state = CostState()
    for level in range(40):
        indicator = np.zeros(40, dtype=np.int64)
        indicator[level] = 1
        query = counting([Factor(("age",), indicator)])
        state = state.charged([PlannedMeasurement(QueryBlock(query), weight)])
    assert state.table_cost().units == weight.units


def test_a_cube_of_ten_to_the_thirty_cells_is_no_obstacle() -> None:
    """Thirty axes of ten levels; adjacent axes must differ: all 29 rows can be 1 at once."""
    state = CostState()
    for place in range(29):
        axes = (f"axis{place:02}", f"axis{place + 1:02}")
        values = 1 - np.eye(10, dtype=np.int64)
        block = QueryBlock(counting([Factor(axes, values)]))
        state = state.charged([PlannedMeasurement(block, Weight(3))])
    cost = state.table_cost()
    assert (cost.units, cost.exact) == (29 * 3, True)


def test_terms_that_cancel_cost_nothing_extra() -> None:
    adults = np.array([0, 1, 1], dtype=np.int64)
    query = LinearQuery(
        (
            Term(Fraction(1), (Factor(("a",), adults),)),
            Term(Fraction(1), (Factor(("a",), 1 - adults),)),
        )
    )
    profile = profile_of(QueryBlock(query))
    assert [part.axes for part in profile.parts] == [()]
    assert profile.bound == 1


def test_magnitudes_beyond_int64_stay_exact() -> None:
    function = CellFunction.of_levels(("a",), np.array([2**40, -(2**39)], dtype=np.int64))
    cubed = multiplied([function, function, function])
    assert cubed.values.tolist() == [2**120, -(2**117)]
    assert maximum([cubed, cubed]).value == 2**121


@pytest.mark.parametrize("value", [2**61, 2**62 - 1, 2**62, 2**63 - 1])
def test_nothing_wraps_around_near_the_end_of_int64(value: int) -> None:
    function = CellFunction.constant(value)
    assert added([function] * 4).bound == 4 * value
    assert multiplied([function, function]).bound == value**2
    assert function.scaled(5).bound == 5 * value
    assert maximum([function] * 5).value == 5 * value


def test_a_row_that_is_not_whole_is_no_profile() -> None:
    half = LinearQuery((Term(Fraction(1, 2), ()),))
    with pytest.raises(ValueError, match="must be whole numbers"):
        profile_of(QueryBlock(half))


def test_a_function_has_one_value_for_each_product_of_classes() -> None:
    function = CellFunction.of_levels(("a",), np.array([0, 1, 1], dtype=np.int64))
    with pytest.raises(ValueError, match="each product of classes"):
        CellFunction(function.axes, function.classes, np.zeros(3, dtype=np.int64))
    with pytest.raises(ValueError, match="nothing to combine"):
        added([])
