"""Boxes with bounds: against brute force over every cell, whatever the division, however split."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.cost import cover as divided_costs
from accountant.cost import summed_costs
from accountant.cost.cell_function import CellFunction
from accountant.cost.cover import TOTAL_MAX, WHOLE, Cover, DividedCosts, Envelope
from accountant.cost.history_cost import CostState, price_of
from accountant.cost.row_cost import profile_of
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, QueryBlock, counting
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples

ENOUGH = 10**6  # boxes: the search ends by itself

Purchase = tuple[QueryBlock, int]

PURCHASES = st.lists(
    st.tuples(
        blocks(whole=True).filter(lambda block: not block.query.is_constant), st.integers(1, 2**20)
    ),
    min_size=1,
    max_size=6,
)


@st.composite
def boxes_of_cells(draw: st.DrawFn) -> QueryBlock:
    """The count of a box: a set of levels on each of a few axes."""
    names = draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True, min_size=1, max_size=4))
    ones = {name: draw(st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(any))
            for name, n in SIZES.items() if name in names}  # fmt: skip
    return QueryBlock(counting([Factor((name,), np.array(own)) for name, own in ones.items()]))


BOXES = st.lists(st.tuples(boxes_of_cells(), st.integers(1, 2**20)), min_size=1, max_size=12)


def functions_of(purchases: Sequence[Purchase]) -> list[CellFunction]:
    return [part.scaled(units) for block, units in purchases for part in profile_of(block).parts]


def costs_of_cells(purchases: Sequence[Purchase]) -> NDArray[np.int64]:
    """What every cell has paid, each looked at by itself."""
    rows = [
        [int(units * abs(one)) for one in row]
        for block, units in purchases
        for row in dense_rows(block)
    ]
    costs: NDArray[np.int64] = np.array(rows, dtype=np.int64).sum(axis=0)
    return costs.reshape([SIZES[name] for name in "abcd"])


def covered(purchases: Sequence[Purchase]) -> Cover:
    cover = Cover().added(functions_of(purchases))
    assert cover is not None
    return cover


def check(cover: Cover, purchases: Sequence[Purchase]) -> None:
    """Every cell is in some box, and has paid at most the bound of each box that it is in."""
    costs = costs_of_cells(purchases)
    names = sorted(SIZES)
    is_covered = np.zeros(costs.shape, dtype=bool)
    for box, bound in zip(cover.boxes, cover.bounds.tolist(), strict=True):
        inside = []
        sets = dict(zip(cover.along, box.tolist(), strict=True))
        for name in names:
            if name in sets:
                one = cover.along[name]
                inside.append(np.flatnonzero(one.sets[sets[name]][one.classes.of_level]))
            else:
                inside.append(np.arange(SIZES[name]))
        is_covered[np.ix_(*inside)] = True
        assert int(costs[np.ix_(*inside)].max()) <= bound
    assert is_covered.all()


@settings(deadline=None, max_examples=examples(40))
@given(PURCHASES, st.integers(0, 40))
def test_no_cell_has_paid_more_than_the_bound_of_its_box(
    purchases: list[Purchase], n_boxes: int
) -> None:
    check(covered(purchases).refined(0, n_boxes), purchases)


@settings(deadline=None, max_examples=examples(40))
@given(PURCHASES, PURCHASES, st.integers(1, 40))
def test_boxes_stay_valid_when_later_rows_divide_their_classes(
    first: list[Purchase], later: list[Purchase], n_boxes: int
) -> None:
    before = covered(first).refined(0, n_boxes)
    after = before.added(functions_of(later))
    assert after is not None
    check(after, [*first, *later])
    check(after.refined(0, n_boxes), [*first, *later])
    check(before, first)  # a cover is not changed by what is made of it


@settings(deadline=None, max_examples=examples(40))
@given(BOXES)
def test_for_counts_of_boxes_the_search_ends_at_the_maximum(purchases: list[Purchase]) -> None:
    assert covered(purchases).refined(0, ENOUGH).value == int(costs_of_cells(purchases).max())


@settings(deadline=None, max_examples=examples(30))
@given(PURCHASES, st.integers(0, 2**32 - 1))
def test_whatever_the_division_the_bounds_are_valid(purchases: list[Purchase], seed: int) -> None:
    rng = np.random.default_rng(seed)

    def anything(
        _: DividedCosts, portions: list[divided_costs.Floats], *__: object
    ) -> list[divided_costs.Floats]:
        return [rng.choice([-1.0, 0.0, 0.3, 1.0, 1e30], size=own.shape) for own in portions]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DividedCosts, "_moved", anything)
        patch.setattr(DividedCosts, "_first_portions", lambda self, _: anything(self, _zeros(self)))
        check(covered(purchases).refined(0, 40), purchases)


@settings(deadline=None, max_examples=examples(40))
@given(PURCHASES, PURCHASES, st.integers(0, 2**32 - 1))
def test_whatever_portions_are_kept_the_bounds_are_valid(
    first: list[Purchase], later: list[Purchase], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    before = covered(first).refined(0, 20)
    kept = [
        rng.choice(np.array([0, 1e-9, 0.3, 1, 1e30], np.float32), size=one.shape)
        for one in before.portions
    ]
    after = replace(before, portions=kept).added(functions_of(later))
    assert after is not None
    check(after.refined(0, 40), [*first, *later])


def test_portions_are_kept_for_the_rows_that_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the portions of the search before, the same bound needs no search."""
    one = {name: np.arange(size) == 0 for name, size in SIZES.items()}
    first = {name: Factor((name,), is_first.astype(np.int64)) for name, is_first in one.items()}
    other = {name: Factor((name,), 1 - is_first.astype(np.int64)) for name, is_first in one.items()}
    pairs = [(first["a"], first["b"]), (other["a"], other["b"]), (first["b"], other["c"])]
    rows = [QueryBlock(counting(pair)) for pair in pairs]
    purchases = [(row, 10 + place) for place, row in enumerate(rows)]
    before = covered(purchases).refined(0, 1)
    assert [one.shape for one in before.portions] == [
        (1, along.rows.size) for along in before.along.values()
    ]
    monkeypatch.setattr(divided_costs, "N_ROUNDS", 0)
    monkeypatch.setattr(divided_costs, "NEW_SHARE", 0.0)
    again = replace(before, bounds=before.bounds + 1000, n_known=before.n_known * 0)
    assert again.refined(0, 1).value <= before.value + 1  # portions are kept in single precision
    check(again.refined(0, 1), purchases)


def _zeros(divided: DividedCosts) -> list[divided_costs.Floats]:
    return [np.zeros((len(divided._boxes), one.rows.size)) for one in divided._along]


def test_portions_of_many_rows_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def halves(self: DividedCosts, _: object) -> list[divided_costs.Floats]:
        return [one + 0.5 for one in _zeros(self)]

    monkeypatch.setattr(DividedCosts, "_first_portions", halves)
    monkeypatch.setattr(divided_costs, "N_ROUNDS", 0)
    values = Factor(("a",), np.array([0, 5, 8])), Factor(("c",), np.array([0, 1]))
    purchases = [(QueryBlock(counting(values)), 3)] * 40
    check(covered(purchases).refined(0, ENOUGH), purchases)


def test_a_bound_of_less_than_the_whole_cost_is_told_by_these_checks() -> None:
    purchases = [(QueryBlock(counting([Factor(("a",), np.array([1, 0, 1]))])), 7)]
    cover = covered(purchases)
    short = Cover(
        cover.heights, 0, cover.along, cover.boxes, cover.bounds - 1, cover.n_known
    )  # fmt: skip
    with pytest.raises(AssertionError):
        check(short, purchases)


@settings(deadline=None, max_examples=examples(40))
@given(blocks(whole=True).filter(lambda block: not block.query.is_constant))
def test_an_envelope_is_nowhere_below_its_function(block: QueryBlock) -> None:
    for function in functions_of([(block, 1000)]):
        envelope = Envelope.of(function)
        product = np.array(envelope.height, dtype=object)
        for shares in envelope.shares:
            product = np.multiply.outer(product, shares.astype(object))
        assert (function.values * WHOLE ** len(envelope.shares) <= product).all()


def test_numbers_that_are_too_large_are_not_covered() -> None:
    block = QueryBlock(counting([Factor(("a",), np.array([1, 0, 1]))]))
    (function,) = functions_of([(block, TOTAL_MAX // 2 + 1)])
    cover = Cover().added([function])
    assert cover is not None
    assert cover.added([function]) is None


def crowded(n_rows: int) -> list[PlannedMeasurement]:
    """Counts of boxes on six axes of four levels: elimination in small tables is far off."""
    rng = np.random.default_rng(3)
    plan = []
    for _ in range(n_rows):
        names = sorted(rng.permutation(list("abcdef"))[:4])
        levels = [rng.permutation([1, 1, 0, 0]).astype(np.int64) for _ in names]
        factors = [Factor((name,), own) for name, own in zip(names, levels, strict=True)]
        plan.append(PlannedMeasurement(QueryBlock(counting(factors)), Weight(1000)))
    return plan


def largest(plan: Sequence[PlannedMeasurement]) -> int:
    total = np.zeros((4,) * 6, dtype=np.int64)
    for planned in plan:
        cost = np.array(planned.weight.units)
        for name in "abcdef":
            own = [
                one.values for one in planned.block.query.terms[0].factors if one.axes == (name,)
            ]
            cost = np.multiply.outer(cost, own[0] if own else np.ones(4, dtype=np.int64))
        total += cost
    return int(total.max())


N_CELLS = 2**7


def test_what_is_charged_is_never_too_little_and_near_the_maximum() -> None:
    plan, state, spent = crowded(60), CostState(N_CELLS), 0
    for n_rows, planned in enumerate(plan, start=1):
        price = price_of(state, spent, [planned])
        assert price == price_of(state, spent, [planned])
        spent, state = price.units_after, state.charged([planned])
        assert spent >= largest(plan[:n_rows])
    assert state.table_cost().units == spent
    assert spent <= 1.1 * largest(plan)


def test_it_was_far_from_the_maximum_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_costs, "N_COVERED_MAX", -1)
    plan, state, spent = crowded(60), CostState(N_CELLS), 0
    for planned in plan:
        spent = price_of(state, spent, [planned]).units_after
        state = state.charged([planned])
    assert spent > 1.25 * largest(plan)


def test_a_history_that_is_read_back_is_covered_at_once() -> None:
    plan = crowded(60)
    cost = CostState(N_CELLS).charged(plan).table_cost()
    assert largest(plan) <= cost.units <= 1.25 * largest(plan)


def test_where_numbers_become_too_large_elimination_takes_over_again() -> None:
    plan = crowded(60)
    block = plan[0].block
    state = CostState(N_CELLS).charged(plan)
    state.table_cost()
    huge = [PlannedMeasurement(block, Weight(TOTAL_MAX))]
    bound = state.charged(huge).table_cost()
    assert bound.units >= largest([*plan, *huge])
