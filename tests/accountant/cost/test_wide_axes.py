"""The cost of rows over a column of many levels, against the cost of every cell."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.auditor.costs.history import Paid, follow
from accountant.auditor.costs.tables import Row
from accountant.auditor.costs.units import AtLevel, UnitRows, follow_levels
from accountant.auditor.noise import Price, RowNoise, Terms, price_per_square
from accountant.auditor.rows import BlockReader
from accountant.cost.history_cost import CostState, price_of
from cube.classes import tiled
from cube.encoding import encode_block
from cube.measurement import ORDER_UNIT_BITS, PlannedMeasurement, Precision, Weight
from cube.pieces import runs_of
from cube.query import N_NARROW_LEVELS_MAX, Factor, LinearQuery, Partition, QueryBlock, Term
from cube.schema import RowsByLevel
from tests.support.gaussian import TERMS

N_LEVELS, N_CITIES = N_NARROW_LEVELS_MAX + 50, 3
PLACES = np.arange(N_LEVELS, dtype=np.int64)


def factor(draw: np.random.Generator, *, concave: bool) -> Factor:
    """A polynomial of the place, perhaps of both signs, or a range of it."""
    low, high = sorted(draw.integers(0, N_LEVELS, size=2).tolist())
    inside = (low <= PLACES) & (high >= PLACES)
    middle = int(draw.integers(0, N_LEVELS))
    powers = [np.ones_like(PLACES), PLACES - middle, (PLACES - middle) ** 2]
    values = powers[int(draw.integers(0, 3))]
    if concave:
        values = N_LEVELS**2 - (PLACES - middle) ** 2
    return Factor(("amount",), np.where(inside, values, 0) if draw.random() < 0.7 else values)


def block(draw: np.random.Generator, *, concave: bool = False) -> QueryBlock:
    """A row or a GROUP BY."""
    factors = [factor(draw, concave=concave)]
    if not any(values.any() for values in (factors[0].values,)):
        factors = [Factor(("amount",), PLACES)]
    groups: Partition | None = None
    kind = int(draw.integers(0, 4))
    if kind == 0:
        factors.append(Factor(("city",), draw.integers(-2, 4, size=N_CITIES)))
    if kind == 1:
        groups = Partition(("city",), np.array([0, -1, 1]))
    if kind == 2:
        bins = runs_of(np.minimum(PLACES // int(draw.integers(900, 2000)), 1))
        cities = runs_of(np.arange(N_CITIES))
        labels = np.arange(6, dtype=np.int64).reshape(2, 3) - 1
        groups = Partition(("amount", "city"), tiled((bins, cities), labels))
    return QueryBlock(LinearQuery((Term(Fraction(1), tuple(factors)),)), groups).primitive[0]


def cells(one: QueryBlock) -> NDArray[np.object_]:
    """The magnitude of its coefficient on every cell, in Python's integers."""
    total = np.zeros((N_LEVELS, N_CITIES), dtype=object)
    for term in one.query.terms:
        product = np.full(total.shape, int(term.scale), dtype=object)
        for each in term.factors:
            along = each.values[:, None] if each.axes == ("amount",) else each.values[None, :]
            product = product * along
        total = total + product
    if one.partition is not None:
        labels = one.partition.labels
        inside = (labels if labels.ndim > 1 else labels[None, :]) >= 0
        total = total * inside
    return np.abs(total)


@pytest.mark.parametrize("seed", range(25))
def test_the_cost_is_that_of_the_most_expensive_cell(seed: int) -> None:
    draw = np.random.default_rng(seed)
    state, total = CostState(), np.zeros((N_LEVELS, N_CITIES), dtype=object)
    for _ in range(int(draw.integers(1, 8))):
        bought = block(draw)
        weight = Weight(int(draw.integers(1, 2**20)))
        plan = [PlannedMeasurement(bought, weight)]
        priced = state.cost_with(plan)
        state = state.charged(plan)
        total = total + cells(bought) * weight.units
        found, most = state.table_cost(), int(total.max())
        assert found.units == priced.units == most
        assert found.exact


@pytest.mark.parametrize("seed", range(10))
def test_a_concave_row_is_never_charged_too_little(seed: int) -> None:
    draw = np.random.default_rng(seed)
    state, total = CostState(), np.zeros((N_LEVELS, N_CITIES), dtype=object)
    for place in range(4):
        bought = block(draw, concave=place % 2 == 0)
        weight = Weight(int(draw.integers(1, 2**20)))
        state = state.charged([PlannedMeasurement(bought, weight)])
        total = total + cells(bought) * weight.units
        assert state.table_cost().units >= int(total.max())


@pytest.mark.parametrize("seed", range(10))
def test_gaussian_rows_are_never_charged_too_little_and_the_auditor_needs_no_more(
    seed: int,
) -> None:
    """Beside Laplace rows; where a coefficient is a polynomial, each class pays for its largest."""
    draw = np.random.default_rng(seed)
    state, spent, total = CostState(), 0, np.zeros((N_LEVELS, N_CITIES), dtype=object)
    reader, paid = BlockReader(), []
    for place in range(5):
        bought = block(draw, concave=place == 3)
        share = reader.block(encode_block(bought)).share
        units = int(draw.integers(1, 2**20))
        if place % 2:
            planned = PlannedMeasurement(bought, Weight(units))
            added, row = cells(bought) * units, Row(share, Price(units))
        else:
            planned = PlannedMeasurement(bought, Precision(units * 2**36), terms=TERMS)
            shift = 2**ORDER_UNIT_BITS
            rate = int(TERMS.order * shift) * planned.precision.units
            added = -(-rate * cells(bought) ** 2 // 2**70)
            audited = Terms(TERMS.delta, TERMS.order)
            row = Row(share, price_per_square(RowNoise(planned.precision.units, 1.0), audited))
        total = total + added
        spent = price_of(state, spent, [planned]).units_after
        state = state.charged([planned])
        paid.append(Paid(place + 1, (row,), spent))
        assert state.table_cost().units >= int(total.max())
    found = follow(paid)
    assert (found.unpaid, found.open) == (None, ())
    assert found.units >= int(total.max()) - len(paid), "each row is rounded up by less than a unit"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("axis", "m", "k"), [("city", 2, 5), ("amount", 2, 21)])
def test_rows_bounded_by_level_are_never_charged_too_little_and_the_auditor_agrees(
    seed: int, axis: str, m: int, k: int
) -> None:
    """By city the loss is exact; along the amounts themselves, a class pays for its largest."""
    draw, by = np.random.default_rng(seed), RowsByLevel(axis, m)
    unit = UnitRows(k, AtLevel(axis, m))
    state, spent, total = CostState(rows_per_unit=k, by=by), 0, np.zeros(1, dtype=object)
    reader, paid, lost = BlockReader(), [], 0
    for place in range(4):
        bought, weight = block(draw), Weight(int(draw.integers(1, 2**20)))
        plan = [PlannedMeasurement(bought, weight)]
        total = total + cells(bought) * weight.units
        spent = price_of(state, spent, plan).units_after
        state = state.charged(plan)
        row = Row(reader.block(encode_block(bought)).share, Price(weight.units))
        paid.append(Paid(place + 1, (row,), spent))
        by_level = sorted(total.max(axis=0 if axis == "city" else 1).tolist(), reverse=True)
        lost = m * sum(by_level[: k // m]) + k % m * by_level[k // m]
        found = state.table_cost()
        assert found.units >= lost
        assert found.units == lost or not found.exact
        assert found.exact or axis == "amount"
    audited = follow_levels(paid, unit)
    assert (audited.unpaid, audited.open) == (None, ())
    assert audited.units >= lost
    assert audited.units == lost or not audited.exact


def test_a_sum_of_two_wide_terms_is_bounded() -> None:
    """|x - y| costs at most |x| + |y|, and the cost says that it is a bound."""
    amount, price = (Term(Fraction(sign), (Factor((name,), PLACES),))
                     for sign, name in ((1, "amount"), (-1, "price")))  # fmt: skip
    state = CostState().charged(
        [PlannedMeasurement(QueryBlock(LinearQuery((amount, price))), Weight(5))]
    )
    assert state.table_cost().units == 2 * 5 * (N_LEVELS - 1)
    assert not state.table_cost().exact
