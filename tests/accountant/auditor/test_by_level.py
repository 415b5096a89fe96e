"""The auditor on units with bounded rows at each level: beside brute force and the server."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.costs import units as by_level
from accountant.auditor.costs.history import Finding, Paid
from accountant.auditor.costs.tables import Row
from accountant.auditor.costs.units import AtLevel, UnitRows, follow_levels
from accountant.auditor.noise import Price, RowNoise, Terms, price_per_square
from accountant.auditor.rows import BlockReader
from accountant.cost.history_cost import CostState, price_of
from cube.encoding import encode_block
from cube.schema import RowsByLevel
from tests.accountant.auditor.test_cost import MIXED, PURCHASES, Purchase, costs_of_cells, planned
from tests.accountant.cost.test_rows_by_level import AXES, BOUNDS, largest_sum
from tests.support.cubes import SIZES
from tests.support.examples import examples
from tests.support.gaussian import TERMS

COSTS = st.lists(st.integers(0, 40), min_size=1, max_size=5)


def rows_of(purchases: Sequence[Purchase], unit: UnitRows) -> list[Row]:
    """The rows that a charge for each purchase is for, as the auditor prices them."""
    reader, rows, terms = BlockReader(), [], Terms(TERMS.delta, TERMS.order)
    for block, weight in purchases:
        read = reader.block(encode_block(block))
        price = (
            Price(unit.times * weight)
            if isinstance(weight, int)
            else price_per_square(
                RowNoise(weight.units, scale=1.0), terms, unit.times_squared(read)
            )
        )
        rows.append(Row(read.share, price))
    return rows


def paid(purchases: Sequence[Purchase], unit: UnitRows, charged: Sequence[int]) -> list[Paid]:
    rows = rows_of(purchases, unit)
    return [
        Paid(place + 1, (row,), units)
        for place, (row, units) in enumerate(zip(rows, charged, strict=True))
    ]


def losses(purchases: Sequence[Purchase], axis: str, m: int, k: int) -> list[int]:
    """What a unit has lost after each purchase, by listing cells and numbers of rows."""
    found, place = [], sorted(SIZES).index(axis)
    sizes = [SIZES[name] for name in sorted(SIZES)]
    for costs in costs_of_cells(purchases):
        by_cell = np.moveaxis(np.array(costs, dtype=object).reshape(sizes), place, 0)
        most = [int(one) for one in by_cell.reshape(SIZES[axis], -1).max(axis=1)]
        found.append(largest_sum(most, m, k))
    return found


def bounded(axis: str, bound: tuple[int, int]) -> tuple[int, int]:
    """Rows at a level, and in all: no more than all levels leave, as a schema demands."""
    m, k = bound
    return m, min(k, m * SIZES[axis])


@given(COSTS, BOUNDS, st.lists(st.integers(1, 3), min_size=5, max_size=5))
def test_the_least_price_gives_the_largest_loss(
    costs: list[int], bound: tuple[int, int], sizes: list[int]
) -> None:
    m, k = bound
    every = [cost for cost, n in zip(costs, sizes, strict=False) for _ in range(n)]
    dearest = sorted(every, reverse=True)[:8]
    unit = UnitRows(k, AtLevel("day", m))
    if m * len(dearest) >= k:
        assert unit.largest_loss(costs, sizes[: len(costs)]) == largest_sum(dearest, m, k)


@settings(deadline=None, max_examples=examples(60))
@given(PURCHASES, AXES, BOUNDS)
def test_a_history_charged_to_the_last_unit_is_found_to_cost_that_exactly(
    purchases: list[Purchase], axis: str, bound: tuple[int, int]
) -> None:
    m, k = bounded(axis, bound)
    unit, charged = UnitRows(k, AtLevel(axis, m)), losses(purchases, axis, m, k)
    found = follow_levels(paid(purchases, unit, charged), unit)
    assert found == Finding(charged[-1], exact=True)


@settings(deadline=None, max_examples=examples(60))
@given(PURCHASES, AXES, BOUNDS, st.data())
def test_one_unit_too_little_is_found_at_the_first_charge_that_lacks_it(
    purchases: list[Purchase], axis: str, bound: tuple[int, int], data: st.DataObject
) -> None:
    m, k = bounded(axis, bound)
    unit, due = UnitRows(k, AtLevel(axis, m)), losses(purchases, axis, m, k)
    place = data.draw(st.integers(0, len(due) - 1))
    charged = [min(units, due[place] - 1) if n <= place else units for n, units in enumerate(due)]
    charged = list(accumulate(charged, max))
    first = next(n for n, (has, needs) in enumerate(zip(charged, due, strict=True)) if has < needs)
    found = follow_levels(paid(purchases, unit, charged), unit)
    assert (found.unpaid, found.cost) == (first + 1, due[first])


@settings(deadline=None, max_examples=examples(80))
@given(MIXED, AXES, BOUNDS)
def test_the_auditor_and_the_server_agree(
    purchases: list[Purchase], axis: str, bound: tuple[int, int]
) -> None:
    """With both kinds of noise: what the server charges is what the auditor finds."""
    m, k = bounded(axis, bound)
    unit = UnitRows(k, AtLevel(axis, m))
    state, spent, charged = CostState(rows_per_unit=k, by=RowsByLevel(axis, m)), 0, []
    for block, weight in purchases:
        plan = [planned(block, weight)]
        spent = price_of(state, spent, plan).units_after
        state = state.charged(plan)
        charged.append(spent)
    found, server = follow_levels(paid(purchases, unit, charged), unit), state.table_cost()
    assert found.unpaid is None
    assert not found.open
    assert (found.units, found.exact) == (server.units, server.exact)


def test_nothing_measured_costs_nothing() -> None:
    unit = UnitRows(7, AtLevel("day", 2))
    assert follow_levels([], unit) == Finding(0, exact=True)


@pytest.mark.parametrize("limit", ["N_SWEEPS_MAX", "N_CHECKED_MAX"])
@settings(deadline=None, max_examples=examples(30))
@given(purchases=PURCHASES, axis=AXES, bound=BOUNDS)
def test_with_less_work_allowed_nothing_right_is_convicted(
    limit: str, purchases: list[Purchase], axis: str, bound: tuple[int, int]
) -> None:
    m, k = bounded(axis, bound)
    unit, charged = UnitRows(k, AtLevel(axis, m)), losses(purchases, axis, m, k)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(by_level, limit, 0)
        found = follow_levels(paid(purchases, unit, charged), unit)
    assert found.unpaid is None
    assert found.units >= charged[-1]
