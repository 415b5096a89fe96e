"""The auditor's boxes: against brute force, whatever the portions, and what charges they prove."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.costs import history as cost
from accountant.auditor.costs.boxes import Boxes, Due, Floats, Portions
from accountant.auditor.costs.history import Paid, follow
from accountant.auditor.costs.tables import Layout
from accountant.cost.history_cost import CostState, price_of
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, QueryBlock, counting
from tests.accountant.auditor.test_cost import (
    PURCHASES,
    Purchase,
    costs_of_cells,
    paid,
    rows_of,
)
from tests.support.examples import examples

ENOUGH = 10**7


def boxed(purchases: Sequence[Purchase], n_rows: int, n_costs: int = ENOUGH) -> Boxes:
    rows = rows_of(purchases)
    boxes = Boxes(rows, Layout(rows))
    if boxes.is_able:
        boxes.proved([Due(n_rows, 0)], n_costs)
    return boxes


@settings(deadline=None, max_examples=examples(30))
@given(PURCHASES, st.integers(0, 200))
def test_no_cell_costs_more_than_the_bound_after_any_row(
    purchases: list[Purchase], n_costs: int
) -> None:
    rows = rows_of(purchases)
    boxes = Boxes(rows, Layout(rows))
    if not boxes.is_able:
        return
    for n_rows, costs in enumerate(costs_of_cells(purchases), start=1):
        assert boxes.proved([Due(n_rows, max(costs) - 1)], n_costs) == 0
        assert boxes.value >= max(costs)


@settings(deadline=None, max_examples=examples(30))
@given(PURCHASES, st.integers(0, 200), st.data())
def test_totals_proved_together_are_those_that_no_cell_is_above(
    purchases: list[Purchase], n_costs: int, data: st.DataObject
) -> None:
    rows = rows_of(purchases)
    boxes = Boxes(rows, Layout(rows))
    if not boxes.is_able:
        return
    most = [max(costs) for costs in costs_of_cells(purchases)]
    for _ in range(2):  # the second time from the boxes of the first
        more = [data.draw(st.sampled_from([-1, 0, 0, 1, 10**6])) for _ in most]
        due = [Due(n, sum(pair)) for n, pair in enumerate(zip(most, more, strict=True), start=1)]
        n_true = next((n for n, added in enumerate(more) if added < 0), len(more))
        assert boxes.proved(due, n_costs) <= n_true
        assert boxes.value >= most[-1]


@settings(deadline=None, max_examples=examples(30))
@given(PURCHASES, st.integers(0, 2**32 - 1))
def test_whatever_the_portions_the_bound_is_valid(purchases: list[Purchase], seed: int) -> None:
    rng = np.random.default_rng(seed)

    def anything(_: Portions, portions: Sequence[Floats]) -> list[Floats]:
        return [rng.choice([-1.0, 0.0, 0.3, 1.0, 1e30], size=own.shape) for own in portions]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Portions, "_shared_out", anything)
        boxes = boxed(purchases, len(purchases), 100)
    if boxes.is_able:
        assert boxes.value >= max(costs_of_cells(purchases)[-1])


def crowded(n_rows: int) -> list[Purchase]:
    """Counts of boxes on six axes of four levels."""
    rng = np.random.default_rng(3)
    purchases: list[Purchase] = []
    for _ in range(n_rows):
        names = sorted(rng.permutation(list("abcdef"))[:4].tolist())
        halves = [rng.permutation([1, 1, 0, 0]).astype(np.int64) for _ in names]
        factors = [Factor((name,), own) for name, own in zip(names, halves, strict=True)]
        purchases.append((QueryBlock(counting(factors)), 1000))
    return purchases


def most_paid(purchases: Sequence[Purchase]) -> list[int]:
    """The cost of the most expensive cell after each purchase."""
    total = np.zeros((4,) * 6, dtype=np.int64)
    after = []
    for block, units in purchases:
        added = np.array(units)
        of_axis = {one.axes[0]: one.values for one in block.query.terms[0].factors}
        for name in "abcdef":
            added = np.multiply.outer(added, of_axis.get(name, np.ones(4, dtype=np.int64)))
        total += added
        after.append(int(total.max()))
    return after


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """No list of expensive cells, as on many columns."""
    monkeypatch.setattr(cost, "cells_above", lambda *_: None)


@pytest.mark.usefixtures("few_cells")
def test_charges_at_the_maximum_itself_are_proved_on_many_columns() -> None:
    purchases = crowded(60)
    charged = most_paid(purchases)
    found = follow(paid(purchases, charged))
    assert (found.unpaid, found.open) == (None, ())
    assert (found.units, found.exact) == (charged[-1], True)


@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("place", [5, 30, 59])
def test_a_charge_that_is_a_unit_short_is_not_proved(place: int) -> None:
    purchases = crowded(60)
    due = most_paid(purchases)
    charged = [min(units, due[place] - 1) if n <= place else units for n, units in enumerate(due)]
    first = next(n for n, units in enumerate(charged) if units < due[n])
    found = follow(paid(purchases, charged))
    assert found.unpaid == first + 1 or first + 1 in found.open


@pytest.mark.usefixtures("few_cells")
def test_without_boxes_they_were_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "N_BOXED_IN_VAIN_MAX", -1)
    purchases = crowded(60)
    assert follow(paid(purchases, most_paid(purchases))).open


@pytest.mark.usefixtures("few_cells")
def test_the_auditor_proves_what_the_server_charges_by_its_own_boxes() -> None:
    purchases = crowded(60)
    state, spent, charged = CostState(2**7), 0, []
    for block, units in purchases:
        assert isinstance(units, int)
        plan = [PlannedMeasurement(block, Weight(units))]
        spent = price_of(state, spent, plan).units_after
        state = state.charged(plan)
        charged.append(spent)
    found = follow(paid(purchases, charged))
    assert (found.unpaid, found.open) == (None, ())
    assert most_paid(purchases)[-1] == found.units <= spent


def test_the_maximum_after_each_of_many_charges_is_proved_together() -> None:
    purchases = crowded(60)
    rows = rows_of(purchases)
    boxes = Boxes(rows, Layout(rows))
    due = [Due(n, units) for n, units in enumerate(most_paid(purchases), start=1)]
    assert boxes.proved(due, ENOUGH) == len(due)
    assert boxes.value == due[-1].units
    due[40] = Due(41, due[40].units - 1)
    assert boxes.proved(due, ENOUGH) == 40
    assert boxes.proved(due[:20], ENOUGH) == 20  # also of fewer rows than before


def test_a_history_of_too_large_numbers_is_not_boxed() -> None:
    purchases = [(block, 2**45) for block, _ in crowded(4)]
    assert not boxed(purchases, 4).is_able
    totals = list(itertools.accumulate(units for _, units in purchases))
    assert isinstance(paid(purchases, totals)[0], Paid)
    assert follow(paid(purchases, totals)).unpaid is None
