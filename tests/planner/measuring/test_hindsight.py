"""Hindsight: the common weight of wide purchases, against brute force; what raises the maximum."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from accountant.cost.history_cost import CostState
from accountant.ledger.history.raises import Raises
from accountant.ledger.values import AppendOnly, GrowingSet
from cube.axis import IntegerAxis
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement, Weight
from cube.query import Factor, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.block_estimates import widest
from inference.estimator import Estimator
from planner.measuring.candidates import families
from planner.measuring.hindsight import Demand, Hindsight, demand_of
from planner.measuring.ski_rental import RentedRows
from planner.measuring.weights import LAPLACE, GaussianKind, NoiseKind, precision_for

N_LEVELS = 64
SCHEMA = Schema(
    table="t",
    axes=(IntegerAxis(name="x", low=0, high=N_LEVELS - 1),),
    n_records_max=10**6,
)
TARGET = AccuracyTarget(half_width=200.0, confidence=0.95)


def between(first: int, last: int) -> QueryBlock:
    """The count of a range."""
    places = np.arange(N_LEVELS)
    held = ((first <= places) & (places <= last)).astype(np.int64)
    return QueryBlock(counting([Factor(("x",), held)]))


GAUSSIAN = GaussianKind(GaussianTerms(Fraction(1, 10**9), Fraction(50)))
RANGES = [between(first, last) for first, last in itertools.product((0, 5, 17), (17, 40, 62))]


@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("family", range(4))
def test_at_the_common_weight_every_demand_is_met_and_barely(family: int, kind: NoiseKind) -> None:
    blocks = families(("x",), SCHEMA)[family]
    demands = [Demand(block, 100.0 + 7 * place) for place, block in enumerate(RANGES)]
    hindsight = Hindsight(SCHEMA)
    needed = [hindsight.needed_units(blocks, one, 0.95, kind) for one in demands]
    units = max(one for one in needed if one is not None)
    assert None not in needed

    def spare(units: int) -> float:
        """The least share of a half-width that is left, according to the estimator."""
        nothing = Raises(AppendOnly(), GrowingSet())
        estimator = Estimator(SCHEMA)
        estimator.add([nothing.foreseen(kind.planned(one, units)) for one in blocks])
        return min(
            1 - widest(estimator.estimate(one.block, 0.95), 0.95) / one.half_width
            for one in demands
        )

    assert 0 <= spare(units) < 1e-3
    assert spare(int(units / 1.01)) < 0


def test_a_multiple_is_as_wide_as_its_row_times_the_multiplier() -> None:
    hindsight, blocks = Hindsight(SCHEMA), families(("x",), SCHEMA)[1]

    def units(block: QueryBlock, half_width: float) -> int | None:
        return hindsight.needed_units(blocks, Demand(block, half_width), 0.95, LAPLACE)

    for multiplier in (Fraction(1, 2), Fraction(-3)):
        multiple = QueryBlock(RANGES[1].query.scaled(multiplier))
        found = units(multiple, 100.0 * abs(float(multiplier)))
        assert found == pytest.approx(units(RANGES[1], 100.0), rel=1e-6)


@pytest.mark.parametrize("family", range(4))
def test_a_row_is_divided_by_a_family_if_it_has_parts(family: int) -> None:
    hindsight, blocks = Hindsight(SCHEMA), families(("x",), SCHEMA)[family]
    for some in (blocks, blocks[1:]):  # also one whose finest groups are no levels
        for row in (*RANGES, between(0, 2), between(3, 3)):
            found = bool(some) and hindsight.divides(some, row)
            assert found == (bool(some) and hindsight.divided(some, row) is not None)


def test_a_demand_that_the_blocks_do_not_determine_has_no_weight() -> None:
    coarse = families(("x",), SCHEMA)[1][1:]
    assert Hindsight(SCHEMA).needed_units(coarse, Demand(between(0, 2), 1.0), 0.95, LAPLACE) is None


def test_what_was_rented_is_asked_as_precisely_as_it_was_measured() -> None:
    weight = 2**40 // 100
    before = demand_of(RentedRows(RANGES[1], weight, weight), 0.95)
    assert before.block is RANGES[1]
    assert before.half_width == pytest.approx(100 * math.log(20), rel=1e-6)


def test_of_gaussian_rows_too() -> None:
    units = precision_for(TARGET, Fraction(1)).units
    rows = RentedRows(RANGES[1], units // 2, units, GAUSSIAN.terms)
    before = demand_of(rows, TARGET.confidence)
    assert before.half_width == pytest.approx(TARGET.half_width, rel=1e-5)


def test_rent_is_what_the_largest_cost_of_a_cell_falls_by() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        ends = np.sort(rng.integers(0, N_LEVELS, size=(8, 2)), axis=1)
        units = rng.integers(1, 50, size=8).tolist()
        rows = [
            PlannedMeasurement(between(int(first), int(last)), Weight(one))
            for (first, last), one in zip(ends, units, strict=True)
        ]
        n_spared = int(rng.integers(0, 8))
        costs = np.zeros((8, N_LEVELS), dtype=np.int64)
        for cost, (first, last), one in zip(costs, ends, units, strict=True):
            cost[first : last + 1] = one
        state = CostState().charged(rows)
        assert state.units_without(()) == costs.sum(axis=0).max()
        left = costs[n_spared:].sum(axis=0).max() if n_spared < 8 else 0
        assert state.units_without(rows[:n_spared]) == left
        assert state.table_cost().units == costs.sum(axis=0).max()


def test_a_weight_that_was_partly_paid_is_partly_spared() -> None:
    state = CostState().charged([PlannedMeasurement(RANGES[0], Weight(10))])
    assert state.units_without([PlannedMeasurement(RANGES[0], Weight(4))]) == 6
    assert Fraction(6, UNITS_PER_EPSILON) > 0
