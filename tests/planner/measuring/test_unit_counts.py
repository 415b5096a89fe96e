"""What is bought for counts of units: enough for every target, and never twice."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.ledger.charged import ChargedUnitCount
from accountant.ledger.entries import Charge
from accountant.ledger.history.unit_counts import UnitCounts
from accountant.ledger.limits import Payer
from cube.axis import CategoryAxis
from cube.measurement import UNITS_PER_EPSILON
from cube.query import LinearQuery, Partition, QueryBlock, counting
from cube.refusals import InvalidTarget
from cube.schema import Schema
from cube.statistic import UNIT_COUNT, PlannedUnitCount, Rule
from cube.target import AccuracyTarget
from inference.block_estimates import RowEstimates, widest
from inference.posterior import Posterior
from planner.measuring.unit_counts import (
    CountPart,
    CountWanted,
    known_unit_count,
    plan_unit_counts,
    unit_count_of,
)
from planner.measuring.weights import weight_for
from planner.workload import Wanted
from tests.support.examples import examples

CITY = CategoryAxis(name="city", values=("a", "b", "c"))
SCHEMA = Schema(
    table="orders", axes=(CITY,), n_records_max=1000, unit="person", rows_per_unit_max=5
)
BLOCK = QueryBlock(counting(), Partition(("city",), np.arange(3, dtype=np.int64)))
TARGETS = st.builds(
    AccuracyTarget, half_width=st.floats(0.05, 1e4), confidence=st.floats(0.5, 0.999)
)


def planned(
    known: UnitCounts, *wanted: Wanted
) -> tuple[tuple[PlannedUnitCount, ...], list[Fraction]]:
    places = {
        place: CountWanted(one, parts(one), said(known, one)) for place, one in enumerate(wanted)
    }
    found, offers = plan_unit_counts(
        places, known, SCHEMA, lambda asked: Fraction(known.added(asked), UNITS_PER_EPSILON)
    )
    return found, [sum((one.epsilon for one in offers[place]), Fraction(0)) for place in places]


def said(known: UnitCounts, wanted: Wanted) -> RowEstimates:
    return known_unit_count(wanted, parts(wanted), known, SCHEMA)


def parts(wanted: Wanted) -> tuple[CountPart, ...]:
    count = unit_count_of(wanted)
    assert count is not None
    return (CountPart(count, np.arange(count.block.n_rows)),)


def bought(known: UnitCounts, plan: tuple[PlannedUnitCount, ...]) -> UnitCounts:
    charged = [ChargedUnitCount(one.count, known.noise_for(one), one.raised_from) for one in plan]
    after, _ = known.charged(Charge(Payer("ann"), (), 0, 0, tuple(charged)))
    return after.measured(1, ((one, (0,) * one.n_released) for one in charged))


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(TARGETS, min_size=1, max_size=4))
def test_what_is_bought_meets_its_target_and_is_raised_for_the_difference(
    targets: list[AccuracyTarget],
) -> None:
    """In all, it has cost what the narrowest target costs, within the share of a search."""
    known, was_raised = UnitCounts(rows_per_unit=5), list[bool]()
    for target in targets:
        wanted = Wanted(BLOCK, target, rule=Rule(UNIT_COUNT, 2, 0))
        before = known.units
        plan, (epsilon,) = planned(known, wanted)
        known = bought(known, plan)
        assert epsilon == Fraction(known.units - before, UNITS_PER_EPSILON)
        assert known.units - before <= 2 * weight_for(target, Fraction(1)).units
        rows = [row for row in said(known, wanted) if isinstance(row, Posterior)]
        assert len(rows) == 3
        assert widest(rows, target.confidence) <= target.half_width
        nothing, costs = planned(known, wanted)
        assert not nothing
        assert costs == [0]
        was_raised.append(all(one.raised_from is not None for one in plan))
    rates = [-np.log1p(-one.confidence) / one.half_width for one in targets]
    if all(was_raised[1:]):  # or the lattice was too coarse for it
        assert known.units <= 2 * max(rates) * UNITS_PER_EPSILON * 1.03


def test_of_two_that_want_the_same_one_pays() -> None:
    target = AccuracyTarget(half_width=10, confidence=0.95)
    narrow = AccuracyTarget(half_width=5, confidence=0.95)
    one, two = (Wanted(BLOCK, it, rule=Rule(UNIT_COUNT, 2, 0)) for it in (target, narrow))
    plan, epsilons = planned(UnitCounts(5), one, two)
    assert len(plan) == 1
    assert epsilons[1] == 0
    assert float(epsilons[0]) == pytest.approx(2 * np.log(20) / 5, rel=1e-4)
    other = Wanted(BLOCK, target, rule=Rule(UNIT_COUNT, 1, 0))
    assert len(planned(UnitCounts(5), one, other)[0]) == 2


def test_a_raise_that_the_lattice_does_not_allow_is_bought_afresh() -> None:
    wide = Wanted(
        BLOCK, AccuracyTarget(half_width=500, confidence=0.95), rule=Rule(UNIT_COUNT, 1, 0)
    )
    fine = Wanted(
        BLOCK, AccuracyTarget(half_width=0.01, confidence=0.95), rule=Rule(UNIT_COUNT, 1, 0)
    )
    plan, _ = planned(UnitCounts(5), wide)
    known = bought(UnitCounts(5), plan)
    ((again,), _) = planned(known, fine)
    assert again.raised_from is None
    assert widest(said(bought(known, (again,)), fine), 0.95) <= 0.01


def test_practically_no_noise_is_refused() -> None:
    wanted = Wanted(
        BLOCK, AccuracyTarget(half_width=1e-9, confidence=0.95), rule=Rule(UNIT_COUNT, 1, 0)
    )
    with pytest.raises(InvalidTarget):
        planned(UnitCounts(5), wanted)


def test_rows_and_what_is_public_are_no_counts_of_units() -> None:
    target = AccuracyTarget(half_width=1, confidence=0.95)
    assert unit_count_of(Wanted(BLOCK, target)) is None
    assert (
        unit_count_of(Wanted(QueryBlock(LinearQuery(())), target, rule=Rule(UNIT_COUNT, 1, 0)))
        is None
    )
