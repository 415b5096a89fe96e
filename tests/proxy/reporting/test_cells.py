"""The cost along every column, against every cell looked at one by one."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.block import Partition, QueryBlock
from cube.encoding import encode_block
from cube.query import Factor, LinearQuery, Term, counting
from proxy.reporting import cells, cost_tables
from proxy.reporting.cells import ColumnCost, column_costs
from proxy.reporting.paid_rows import OtherCost, PaidRows, ProductCost
from tests.support.cubes import SIZES, blocks, dense_rows

NAMES = sorted(SIZES)
NO_CAP = 2**200
Paid = list[tuple[QueryBlock, int]]

paid_blocks = st.lists(st.tuples(blocks(whole=True), st.integers(1, 2**20)), max_size=4)


def paid_rows(paid: Paid) -> PaidRows:
    rows = PaidRows()
    for block, units in paid:
        rows.add(encode_block(block), units)
    return rows


def by_definition(paid: Paid) -> dict[str, list[int]]:
    """For each column and level, the cost of the dearest of all cells of the small cube."""
    rows = [(row, units) for block, units in paid for row in dense_rows(block)]
    cost_of = {
        cell: sum(int(units * abs(row[place])) for row, units in rows)
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
    for found in column_costs(paid_rows(paid).costs(), NO_CAP):
        assert found.is_exact
        assert on_levels(found) == truth[found.column]


@given(paid_blocks)
def test_a_column_that_is_not_shown_makes_no_difference(paid: Paid) -> None:
    shown = {found.column for found in column_costs(paid_rows(paid).costs(), NO_CAP)}
    for column in SIZES.keys() - shown:
        assert len(set(by_definition(paid)[column])) == 1


@given(paid_blocks, st.integers(1, 64))
def test_where_nothing_dense_fits_the_elimination_gives_bounds_on_both_sides(
    paid: Paid, n_bucket_cells: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "N_DENSE_CELLS_MAX", 0)
        patch.setattr(cells, "N_BUCKET_CELLS_MAX", n_bucket_cells)
        found = column_costs(paid_rows(paid).costs(), NO_CAP)
    check_bounds(found, paid)


@given(paid_blocks, st.integers(1, 12))
def test_beyond_every_limit_there_is_a_bound(paid: Paid, n_cells: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "N_DENSE_CELLS_MAX", 0)
        patch.setattr(cells, "N_ELIMINATED_CELLS_MAX", 0)
        patch.setattr(cost_tables, "N_TABLE_CELLS_MAX", n_cells)
        found = column_costs(paid_rows(paid).costs(), NO_CAP)
    check_bounds(found, paid)


def check_bounds(found: Sequence[ColumnCost], paid: Paid) -> None:
    truth = by_definition(paid)
    for one in found:
        least, most = on_levels(one, least=True), on_levels(one)
        for low, cost, high in zip(least, truth[one.column], most, strict=True):
            assert low <= cost <= high


@given(paid_blocks)
def test_weights_too_large_for_doubles_are_added_exactly(paid: Paid) -> None:
    heavy = [(block, units * (2**50 + 1)) for block, units in paid]
    truth = by_definition(heavy)
    for found in column_costs(paid_rows(heavy).costs(), NO_CAP):
        assert on_levels(found) == truth[found.column]


def test_no_cell_is_shown_with_more_than_the_table_was_charged() -> None:
    rows = paid_rows([(counting_between("a", 0, 1), 10), (counting_between("b", 1, 3), 5)])
    found = {cost.column: on_levels(cost) for cost in column_costs(rows.costs(), 12)}
    assert found == {"a": [12, 5, 5], "b": [10, 12, 12, 10]}


def test_nearly_every_block_is_kept_as_runs() -> None:
    key = Partition(("c",), np.array([0, 1], dtype=np.int64))
    some = Partition(("a",), np.array([-1, 0, 1], dtype=np.int64))
    shapes = [
        counting_between("a", 0, 2),
        QueryBlock(counting([factor("a", 0, 2), factor("b", 1, 2)]), key),
        QueryBlock(counting([factor("a", 0, 2)]), some),
        QueryBlock(counting()),
    ]
    costs = list(paid_rows([(block, 1) for block in shapes]).costs())
    assert all(isinstance(cost, ProductCost) for cost in costs)


def test_sums_of_terms_go_through_the_accountants_profile() -> None:
    terms = [counting([factor("a", 0, 2)]), counting([factor("b", 0, 2)])]
    block = QueryBlock(terms[0] + terms[1])
    [cost] = paid_rows([(block, 1)]).costs()
    assert isinstance(cost, OtherCost)


def test_equal_blocks_are_one_with_the_sum_of_their_weights() -> None:
    rows = paid_rows([(counting_between("a", 0, 2), 3), (counting_between("a", 0, 2), 4)])
    [cost] = rows.costs()
    assert isinstance(cost, ProductCost)
    assert cost.units == 7


def test_a_wide_table_is_never_enumerated() -> None:
    columns = [f"column_{place:02}" for place in range(30)]
    pairs: Sequence[tuple[str, str]] = list(itertools.pairwise(columns))
    rows = PaidRows()
    for left, right in pairs:
        block = QueryBlock(counting([wide_factor(left, 10, 40), wide_factor(right, 20, 50)]))
        rows.add(encode_block(block), 1)
    found = column_costs(rows.costs(), NO_CAP)
    assert [cost.column for cost in found] == columns
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
