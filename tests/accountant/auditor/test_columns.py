"""The cost along every column, against every cell looked at one by one."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.auditor.costs import columns, tables
from accountant.auditor.costs.bound import Bound
from accountant.auditor.costs.columns import ColumnCost, column_costs
from accountant.auditor.costs.tables import Row
from accountant.auditor.noise import Price
from accountant.auditor.rows import BlockReader
from cube.encoding import encode_block
from cube.query import Factor, LinearQuery, QueryBlock, Term, counting
from tests.support.cubes import SIZES, blocks, dense_rows

NAMES = sorted(SIZES)
NO_CAP = 2**200
Paid = Sequence[tuple[QueryBlock, int | Price]]  # at weights in units, or at prices

# Rows as a ledger has them: what is constant is never measured.
measured = (
    blocks(whole=True)
    .filter(lambda block: bool(block.query.terms))
    .map(lambda block: replace(block, query=replace(block.query, constant=Fraction(0))))
)
squares = st.integers(1, 2**30).map(lambda rate: Price(rate, shift=10, power=2))
paid_blocks = st.lists(st.tuples(measured, st.integers(1, 2**20) | squares), max_size=4)


def costs(paid: Paid, units_spent: int = NO_CAP) -> tuple[ColumnCost, ...]:
    """What the audit finds of blocks, each at its weight in units."""
    reader = BlockReader()
    rows = [
        Row(reader.block(encode_block(block)).share, Price(one) if isinstance(one, int) else one)
        for block, one in paid
    ]
    return column_costs(Bound(rows), units_spent)


def cost(price: int | Price, coefficient: Fraction) -> int:
    """What a row costs a cell, by the definition."""
    if isinstance(price, int):
        return int(price * abs(coefficient))
    return math.ceil(Fraction(price.numerator, 2**price.shift) * coefficient**2)


def by_definition(paid: Paid) -> dict[str, list[int]]:
    """For each column and level, the cost of the dearest of all cells of the small cube."""
    rows = [(row, price) for block, price in paid for row in dense_rows(block)]
    cost_of = {
        cell: sum(cost(price, row[place]) for row, price in rows)
        for place, cell in enumerate(itertools.product(*(range(SIZES[name]) for name in NAMES)))
    }
    return {
        name: [
            max(cost for cell, cost in cost_of.items() if cell[place] == level)
            for level in range(SIZES[name])
        ]
        for place, name in enumerate(NAMES)
    }


def on_levels(cost: ColumnCost, *, least: bool = False) -> list[int]:
    ends = [*cost.starts[1:], cost.n_levels]
    bounds = cost.at_least if least else cost.at_most
    return [
        units
        for units, start, end in zip(bounds, cost.starts, ends, strict=True)
        for _ in range(start, end)
    ]


@given(paid_blocks)
def test_on_a_small_cube_the_cost_along_each_column_is_that_of_its_dearest_cell(
    paid: Paid,
) -> None:
    truth = by_definition(paid)
    for found in costs(paid):
        assert found.is_exact
        assert on_levels(found) == truth[found.column]


@given(paid_blocks)
def test_a_column_that_is_not_shown_makes_no_difference(paid: Paid) -> None:
    shown = {found.column for found in costs(paid)}
    for column in SIZES.keys() - shown:
        assert len(set(by_definition(paid)[column])) == 1


@given(paid_blocks, st.integers(1, 64))
def test_where_nothing_dense_fits_the_elimination_gives_bounds_on_both_sides(
    paid: Paid, n_bucket_cells: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "N_DENSE_CELLS_MAX", 0)
        patch.setattr(columns, "N_BUCKET_CELLS_MAX", n_bucket_cells)
        found = costs(paid)
    check_bounds(found, paid)


@given(paid_blocks, st.integers(1, 12))
def test_beyond_every_limit_there_is_a_bound(paid: Paid, n_cells: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "N_DENSE_CELLS_MAX", 0)
        patch.setattr(columns, "N_ELIMINATED_CELLS_MAX", 0)
        patch.setattr(columns, "N_TABLE_CELLS_MAX", n_cells)
        patch.setattr(tables, "N_TABLE_CELLS_MAX", n_cells)
        found = costs(paid)
    check_bounds(found, paid)


def check_bounds(found: Sequence[ColumnCost], paid: Paid) -> None:
    truth = by_definition(paid)
    for one in found:
        least, most = on_levels(one, least=True), on_levels(one)
        for low, cost, high in zip(least, truth[one.column], most, strict=True):
            assert low <= cost <= high


@given(paid_blocks)
def test_weights_too_large_for_doubles_are_added_exactly(paid: Paid) -> None:
    times = 2**50 + 1
    heavy = [
        (
            block,
            replace(one, numerator=one.numerator * times)
            if isinstance(one, Price)
            else one * times,
        )
        for block, one in paid
    ]
    truth = by_definition(heavy)
    for found in costs(heavy):
        assert on_levels(found) == truth[found.column]


def test_no_cell_is_shown_with_more_than_the_table_was_charged() -> None:
    paid = [(counting_between("a", 0, 1), 10), (counting_between("b", 1, 3), 5)]
    found = {cost.column: on_levels(cost) for cost in costs(paid, 12)}
    assert found == {"a": [12, 5, 5], "b": [10, 12, 12, 10]}


def test_equal_blocks_are_one_with_the_sum_of_their_weights() -> None:
    paid = [(counting_between("a", 0, 2), 3), (counting_between("a", 0, 2), 4)]
    [cost] = costs(paid)
    assert on_levels(cost) == [7, 7, 0]


def test_a_row_that_is_only_bounded_is_not_said_to_have_been_paid() -> None:
    terms = [counting([factor("a", 0, 2)]), counting([factor("b", 0, 2)])]
    paid: Paid = [(QueryBlock(terms[0] + terms[1].scaled(Fraction(-1))), 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "N_TABLE_CELLS_MAX", 2)  # its two terms have a table each
        found = costs(paid)
    assert {one.column: on_levels(one) for one in found} == {"a": [2, 2, 1], "b": [2, 2, 1, 1]}
    assert all(set(on_levels(one, least=True)) == {0} for one in found)
    assert not any(one.is_exact for one in found)


def test_nothing_paid_for_has_no_column() -> None:
    assert costs([]) == ()


def test_a_wide_table_is_never_enumerated() -> None:
    names = [f"column_{place:02}" for place in range(30)]
    pairs: Sequence[tuple[str, str]] = list(itertools.pairwise(names))
    found = costs(
        [
            (QueryBlock(counting([wide_factor(left, 10, 40), wide_factor(right, 20, 50)])), 1)
            for left, right in pairs
        ]
    )
    assert [cost.column for cost in found] == names
    assert all(cost.is_exact for cost in found)
    assert {max(cost.at_most) for cost in found} == {len(pairs)}


def factor(axis: str, start: int, end: int) -> Factor:
    values = np.zeros(SIZES[axis], dtype=np.int64)
    values[start:end] = 1
    return Factor((axis,), values)


def wide_factor(axis: str, start: int, end: int) -> Factor:
    values = np.zeros(100, dtype=np.int64)
    values[start:end] = 1
    return Factor((axis,), values)


def counting_between(axis: str, start: int, end: int) -> QueryBlock:
    return QueryBlock(LinearQuery((Term(counting().terms[0].scale, (factor(axis, start, end),)),)))
