"""The auditor's cost of rows: against brute force over every cell, and the server's account."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.costs import bound as axis_tables
from accountant.auditor.costs import history as cost
from accountant.auditor.costs import history as search
from accountant.auditor.costs import tables
from accountant.auditor.costs.bound import Bound
from accountant.auditor.costs.history import Finding, Paid, cells_above, climbed, follow
from accountant.auditor.costs.tables import Row
from accountant.auditor.noise import Price, RowNoise, Terms, price_per_square
from accountant.auditor.rows import BlockReader
from accountant.cost.history_cost import CostState, price_of
from cube.encoding import encode_block
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Precision, Weight
from cube.query import Factor, LinearQuery, QueryBlock, Term, counting
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples
from tests.support.gaussian import TERMS

Purchase = tuple[QueryBlock, int | Precision]  # weights in units


def has_coefficients(block: QueryBlock) -> bool:
    return any(term.scale for term in block.query.terms)


WHOLE = blocks(whole=True).filter(has_coefficients)
UNITS = st.integers(1, 20)
PRECISIONS = st.integers(1, 2**60).map(Precision)
PURCHASES = st.lists(st.tuples(WHOLE, UNITS), min_size=1, max_size=8)
MIXED = st.lists(st.tuples(WHOLE, st.one_of(UNITS, PRECISIONS)), min_size=1, max_size=8)


def rows_of(purchases: Sequence[Purchase]) -> list[Row]:
    reader = BlockReader()
    return [
        Row(reader.block(encode_block(block)).share, priced(weight)) for block, weight in purchases
    ]


def priced(weight: int | Precision) -> Price:
    """The price of a row, as the auditor reads it from a charge."""
    if isinstance(weight, int):
        return Price(weight)
    terms = Terms(TERMS.delta, TERMS.order)
    return price_per_square(RowNoise(weight.units, scale=1.0), terms)


def cost_of(weight: int | Precision, coefficient: Fraction) -> int:
    """What a row costs a cell, in units, by the definition."""
    if isinstance(weight, int):
        return weight * int(abs(coefficient))
    units: int = math.ceil(TERMS.order * weight.exact * coefficient**2 * UNITS_PER_EPSILON)
    return units


def paid(purchases: Sequence[Purchase], charged: Sequence[int]) -> list[Paid]:
    rows = rows_of(purchases)
    return [
        Paid(place + 1, (row,), units)
        for place, (row, units) in enumerate(zip(rows, charged, strict=True))
    ]


def planned(block: QueryBlock, weight: int | Precision) -> PlannedMeasurement:
    """The same purchase, as the server prices it."""
    if isinstance(weight, int):
        return PlannedMeasurement(block, Weight(weight))
    return PlannedMeasurement(block, weight, terms=TERMS)


def costs_of_cells(purchases: Sequence[Purchase]) -> list[list[int]]:
    """What every cell has cost after each purchase, looked at one by one."""
    costs = [0] * int(np.prod(list(SIZES.values())))
    after = []
    for block, weight in purchases:
        rows = dense_rows(block)
        costs = [
            before + sum(cost_of(weight, row[cell]) for row in rows)
            for cell, before in enumerate(costs)
        ]
        after.append(costs)
    return after


@settings(deadline=None, max_examples=examples(50))
@given(MIXED)
def test_a_history_charged_to_the_last_unit_is_found_to_cost_that_exactly(
    purchases: list[Purchase],
) -> None:
    charged = [max(costs) for costs in costs_of_cells(purchases)]
    assert follow(paid(purchases, charged)) == Finding(charged[-1], exact=True)


@settings(deadline=None, max_examples=examples(50))
@given(MIXED, st.data())
def test_one_unit_too_little_is_found_at_the_first_charge_that_lacks_it(
    purchases: list[Purchase], data: st.DataObject
) -> None:
    costs = [max(costs) for costs in costs_of_cells(purchases)]
    place = data.draw(st.integers(0, len(costs) - 1))
    generous = [units + data.draw(st.integers(0, 3)) for units in costs]
    charged = [min(units, costs[place] - 1) if n <= place else units
               for n, units in enumerate(generous)]  # fmt: skip
    charged = list(itertools.accumulate(charged, max))
    first = next(
        n for n, (units, due) in enumerate(zip(charged, costs, strict=True)) if units < due
    )
    found = follow(paid(purchases, charged))
    assert (found.unpaid, found.cost) == (first + 1, costs[first])


@settings(deadline=None, max_examples=examples(50))
@given(MIXED)
def test_the_auditor_and_the_server_agree(purchases: list[Purchase]) -> None:
    state, spent, charged = CostState(), 0, []
    for block, weight in purchases:
        plan = [planned(block, weight)]
        spent = price_of(state, spent, plan).units_after
        state = state.charged(plan)
        charged.append(spent)
    found, server = follow(paid(purchases, charged)), state.table_cost()
    assert found.unpaid is None
    assert not found.open
    assert found.units == server.units
    assert found.exact
    assert server.exact


@settings(deadline=None, max_examples=examples(50))
@given(MIXED, st.integers(0, 3))
def test_the_bound_holds_and_keeps_the_sum_at_every_cell_whatever_was_moved(
    purchases: list[Purchase], n_back: int
) -> None:
    history = Bound(rows_of(purchases))
    after = costs_of_cells(purchases)
    for n_rows in [*range(1, len(purchases) + 1), max(1, len(purchases) - n_back)]:
        history.go_to(n_rows)
        largest = max(after[n_rows - 1])
        assert history.value >= largest
        for change in (history.sweep, history.gather, history.sweep):
            before = history.value
            change()
            assert largest <= history.value <= before
            for axis in history.layout.classes:
                assert int(history.most(axis).max()) >= largest
        cells = cells_above(history, -1)
        assert cells is not None
        assert int(cells.values.max(initial=0)) == largest


@pytest.mark.parametrize("n_small_max", [0, 6, 2**10])
def test_a_table_read_alone_or_with_others_holds_its_rows_and_what_was_moved(
    n_small_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(axis_tables, "N_SMALL_MAX", n_small_max)

    @settings(deadline=None, max_examples=examples(25))
    @given(MIXED)
    def check(purchases: list[Purchase]) -> None:
        history = Bound(rows_of(purchases))
        for n_rows in range(1, len(purchases) + 1):
            history.go_to(n_rows)
            history.sweep()
            for number in history.in_use:
                one = history.tables[number]
                moved = [history.largest(number, place) for place in range(one.values.ndim)]
                assert (one.tilted == one.values + sum(np.ix_(*moved))).all()
                assert one.peak == one.tilted.max()

    check()


@settings(deadline=None, max_examples=examples(50))
@given(MIXED, st.data())
def test_every_cell_above_a_threshold_is_found_and_none_below(
    purchases: list[Purchase], data: st.DataObject
) -> None:
    rows = rows_of(purchases)
    history = Bound(rows)
    history.go_to(len(rows))
    for _ in range(data.draw(st.integers(0, 2))):
        history.sweep()
    costs = costs_of_cells(purchases)[-1]
    threshold = data.draw(st.integers(min(costs) - 1, max(costs) + 1))
    cells = cells_above(history, threshold)
    assert cells is not None
    assert set(cells.values.tolist()) == {units for units in costs if units > threshold}
    summed = cells.nothing + sum(cells.costs(row) for row in rows)
    assert summed.tolist() == cells.values.tolist()


@settings(deadline=None, max_examples=examples(50))
@given(MIXED)
def test_the_cell_found_by_hill_climbing_has_the_stated_cost(purchases: list[Purchase]) -> None:
    rows = rows_of(purchases)
    history = Bound(rows)
    history.go_to(len(rows))
    cell = climbed(history)
    assert cell.n_cells == 1
    cost_of_it = sum(int(cell.costs(row)[0]) for row in rows)
    assert cost_of_it in costs_of_cells(purchases)[-1]


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that every way round them is taken."""
    monkeypatch.setattr(tables, "N_TABLE_CELLS_MAX", 4)
    monkeypatch.setattr(axis_tables, "N_SMALL_MAX", 2)
    monkeypatch.setattr(search, "N_FOUND_MAX", 3)
    monkeypatch.setattr(search, "N_LOOKED_AT_MAX", 8)
    monkeypatch.setattr(cost, "N_CHECKED_MAX", 2)
    monkeypatch.setattr(cost, "N_SWEEPS_MAX", 1)
    monkeypatch.setattr(cost, "N_TRIED_MAX", 2)


@pytest.mark.usefixtures("_tiny")
@settings(deadline=None, max_examples=examples(50))
@given(MIXED, st.integers(0, 2))
def test_what_is_too_large_to_examine_is_left_open_and_never_called_right(
    purchases: list[Purchase], missing: int
) -> None:
    costs = [max(costs) for costs in costs_of_cells(purchases)]
    charged = [max(0, units - missing) for units in costs]
    found = follow(paid(purchases, charged))
    too_little = [n + 1 for n, units in enumerate(charged) if units < costs[n]]
    if found.unpaid is not None:
        assert found.unpaid in too_little
        assert found.cost is not None
        assert charged[found.unpaid - 1] < found.cost <= costs[found.unpaid - 1]
    else:
        assert set(too_little) <= set(found.open)
        assert found.units >= costs[-1]
        assert not found.exact or found.units == costs[-1]


@settings(deadline=None, max_examples=examples(50))
@given(PURCHASES, st.integers(0, 1))
def test_numbers_beyond_64_bits_change_nothing(
    purchases: list[tuple[QueryBlock, int]], missing: int
) -> None:
    many = [(block, units * 2**40) for block, units in purchases]
    large: list[Purchase] = [(QueryBlock(LinearQuery((Term(Fraction(2**39), ()),))), 2**50), *many]
    small = [max(costs) for costs in costs_of_cells([*purchases])]
    costs = [2**89, *(2**89 + 2**40 * units for units in small)]
    charged = [min(units, costs[-1] - missing) for units in costs]  # a total never falls
    found = follow(paid(large, charged))
    assert found.unpaid == (costs.index(costs[-1]) + 1 if missing else None)
    if not missing:
        assert found == Finding(costs[-1], exact=True)


def test_tables_that_cannot_agree_are_searched_and_not_just_bounded() -> None:
    """Of three columns of two levels, each two differ: never all three at once."""
    differ = np.array([[0, 1], [1, 0]], dtype=np.int64)
    pairs = (("a", "b"), ("b", "c"), ("a", "c"))
    purchases = [(QueryBlock(counting([Factor(axes, differ)])), 5) for axes in pairs]
    history = Bound(rows_of(purchases))
    history.go_to(3)
    for _ in range(20):
        history.sweep()
    assert history.value == 15, "no moving of numbers finds it out"
    assert follow(paid(purchases, [5, 10, 10])) == Finding(10, exact=True)
    assert follow(paid(purchases, [5, 10, 12])) == Finding(10, exact=True)
    found = follow(paid(purchases, [5, 9, 10]))
    assert (found.unpaid, found.cost) == (2, 10)


def wide_block(n_axes: int) -> QueryBlock:
    """A predicate on each of many axes of which it tells four classes apart."""
    values = np.array([0, 1, 2, 3], dtype=np.int64)
    return QueryBlock(counting([Factor((f"a{n:02}",), values) for n in range(n_axes)]))


def test_a_row_over_more_classes_than_a_table_holds_is_bounded_by_its_largest_coefficient() -> None:
    block, units = wide_block(12), 2**10
    rows, due = tuple(rows_of([(block, units)])), units * 3**12
    found = follow([Paid(1, rows, due)])
    assert (found.units, found.unpaid, found.open) == (due, None, ())
    found = follow([Paid(1, rows, due - 1)])
    assert found.unpaid == 1 or found.open == (1,)


def test_thousands_of_levels_are_a_few_classes() -> None:
    values = np.repeat(np.array([0, 1, 0], dtype=np.int64), [1_000_000, 1000, 40_000])
    block = QueryBlock(counting([Factor(("income",), values)]))
    history = Bound(rows_of([(block, 5)]))
    assert history.layout.classes["income"].levels.size == 2
    history.go_to(1)
    assert history.value == 5


def test_no_rows_cost_nothing() -> None:
    assert follow([]) == Finding(0, exact=True)
