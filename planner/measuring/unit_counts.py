"""Looks up counts of units in the history, and lists those to buy.

A count of units is known from its own measurement alone: nothing else says in how many groups a
unit has rows. So there is one candidate: to measure it, or to raise what was measured. Purchases
depend on targets and weights alone, never on noisy values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from accountant.ledger.history import Name, UnitCounts, name_of
from cube.measurement import Measurement, Weight
from cube.query import QueryBlock
from cube.refusals import TooLarge
from cube.schema import Schema
from cube.statistic import PlannedUnitCount, UnitCount
from cube.target import AccuracyTarget
from inference import FIRST_BESIDE, NotEstimable, RowEstimates, Scaling, widest
from planner.measuring.choose import meets
from planner.measuring.offers import Offer
from planner.measuring.weights import smallest_units, weight_for
from planner.workload import Wanted

CANDIDATE: Final = "units"  # its name in EXPLAIN

Priced: TypeAlias = Callable[[Sequence[PlannedUnitCount]], Fraction]
"""What counts of units would add to the cost, in epsilon."""


def unit_count_of(wanted: Wanted) -> UnitCount | None:
    """The count of units that is wanted; None if rows are wanted, or what is public."""
    if wanted.groups_max is None or wanted.block.query.is_constant:
        return None
    return UnitCount(wanted.block, wanted.groups_max, wanted.only_cut)


def known_unit_count(
    wanted: Wanted, count: UnitCount, known: UnitCounts, schema: Schema
) -> RowEstimates:
    """The estimate of each number of a count of units, from the history."""
    place = known.latest.get(name_of(count))
    if place is None:
        return (NotEstimable("these units have not been counted yet"),) * wanted.block.n_rows
    return _posteriors(wanted.block, known.measurements[place], schema, place)


@dataclass(frozen=True, slots=True)
class CountWanted:
    """A count of units as the ledger has it, its target, and its estimates from the history."""

    count: UnitCount
    target: AccuracyTarget
    known: RowEstimates


def plan_unit_counts(
    wanted: Mapping[int, CountWanted],
    known: UnitCounts,
    schema: Schema,
    price: Priced,
) -> tuple[tuple[PlannedUnitCount, ...], dict[int, tuple[Offer, ...]]]:
    """What to buy for counts of units, and the offers for each.

    Parameters
    ----------
    wanted : mapping of int to CountWanted
        The counts of units among what is wanted, by their places.
    known : UnitCounts
    schema : Schema
    price : callable

    Raises
    ------
    InvalidTarget
        If no weight would be enough for a count.
    """
    planned: dict[Name, PlannedUnitCount] = {}
    offers: dict[int, tuple[Offer, ...]] = dict.fromkeys(wanted, ())
    first: dict[Name, int] = {}
    for place, one in wanted.items():
        if meets(one.known, one.target):
            continue
        name = name_of(one.count)
        found = _planned(one.count, one.target, known, schema)
        if name not in planned or planned[name].weight < found.weight:
            planned[name] = found
        first.setdefault(name, place)
    for name, place in first.items():  # of two that want the same, the first has it all
        offers[place] = (_offer(planned[name], price),)
    return tuple(planned.values()), offers


def _planned(
    count: UnitCount, target: AccuracyTarget, known: UnitCounts, schema: Schema
) -> PlannedUnitCount:
    """The count at the smallest weight that meets the target: raised, or afresh if that is less."""
    fresh = weight_for(target, Fraction(1))
    place = known.latest.get(name_of(count))
    if place is None:
        return PlannedUnitCount(count, fresh)
    low = known.measurements[place].weight.units

    def half_width(units: int) -> float:
        foreseen = known.foreseen(PlannedUnitCount(count, Weight(units), place))
        return widest(_posteriors(count.block, foreseen, schema), target.confidence)

    with suppress(TooLarge):  # its lattice is too coarse for this
        start = max(fresh.units, low + 1)
        units = smallest_units(half_width, target, low, start, math.inf)
        if units - low <= fresh.units:  # a coarse lattice widens the interval
            return PlannedUnitCount(count, Weight(units), place)
    return PlannedUnitCount(count, fresh)


def _offer(planned: PlannedUnitCount, price: Priced) -> Offer:
    scope = planned.count.block.scope
    return Offer(CANDIDATE, scope, (), price([planned]), rent=Fraction(0), is_chosen=True)


def _posteriors(
    block: QueryBlock, measurement: Measurement, schema: Schema, place: int = 0
) -> RowEstimates:
    """The posterior of each number, from the count at a place among those of units."""
    return Scaling(block, schema.n_records_max).of_own(measurement, FIRST_BESIDE + place)
