"""Looks up counts of units, and of bounded rows, in the history, and lists those to buy.

A count of units is known from its own measurement alone: nothing else says in how many groups a
unit has rows, or how many rows it has. So there is one candidate: to measure it, or to raise what
was measured. Purchases depend on targets and weights alone, never on noisy values.

Of a federated table each holder counts its own units: the count has a part for each, and is their
sum. All parts get one weight, as each unit pays at its own holder only.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.ledger.history import Name, UnitCounts, name_of
from cube.measurement import WEIGHT_UNITS_MAX, Measurement, Weight
from cube.query import QueryBlock
from cube.refusals import InvalidTarget, TooLarge
from cube.schema import Schema
from cube.statistic import OfUnits, PlannedUnitCount, UnitSizes, of_units
from inference import (
    FIRST_BESIDE,
    NotEstimable,
    Reading,
    RowEstimates,
    Scaling,
    posteriors_of,
    widest,
)
from planner.measuring.choose import meets
from planner.measuring.offers import Offer
from planner.measuring.weights import smallest_units, weight_for
from planner.workload import Wanted

CANDIDATE: Final = "units"  # its name in EXPLAIN

Priced: TypeAlias = Callable[[Sequence[PlannedUnitCount]], Fraction]
"""What counts of units would add to the cost, in epsilon."""

Affordable: TypeAlias = Callable[[OfUnits], int]
"""How many units can be added to the weight of a count, by what those who count it have left."""


def unit_count_of(wanted: Wanted) -> OfUnits | None:
    """The statistic of units that is wanted; None if rows are wanted, or what is public."""
    if wanted.rule is None or wanted.block.query.is_constant:
        return None
    row, _ = wanted.block.primitive
    return of_units(row, wanted.rule)


def numbers_of(wanted: Wanted) -> QueryBlock:
    """A block with a row for each number that is wanted: the block itself, or ranges of sizes."""
    count = unit_count_of(wanted)
    return wanted.block if not isinstance(count, UnitSizes) else count.numbers


@dataclass(frozen=True, slots=True, eq=False)
class CountPart:
    """What is counted at once of a count of units: all of it, or what one holder counts.

    Parameters
    ----------
    count : UnitCount or BoundedRows
        As the ledger has it.
    rows : (n,) ndarray of int64
        To which row of the whole each number is added.
    """

    count: OfUnits
    rows: NDArray[np.int64]


def known_unit_count(
    wanted: Wanted, parts: Sequence[CountPart], known: UnitCounts, schema: Schema
) -> RowEstimates:
    """The estimate of each number of a count of units, from the history."""
    found = []
    for part in parts:
        place = known.latest.get(name_of(part.count))
        if place is None:
            missing = NotEstimable("these units have not been counted yet")
            return (missing,) * numbers_of(wanted).n_rows
        found.append((part, known.measurements[place], place))
    return _posteriors(numbers_of(wanted), found, schema)


@dataclass(frozen=True, slots=True)
class CountWanted:
    """A count of units that is wanted, its parts, and its estimates from the history."""

    wanted: Wanted
    parts: tuple[CountPart, ...]
    known: RowEstimates


def plan_unit_counts(
    wanted: Mapping[int, CountWanted],
    known: UnitCounts,
    schema: Schema,
    price: Priced,
    affordable: Affordable = lambda _count: WEIGHT_UNITS_MAX,
) -> tuple[tuple[PlannedUnitCount, ...], dict[int, tuple[Offer, ...]]]:
    """What to buy for counts of units, and the offers for each.

    Parameters
    ----------
    wanted : mapping of int to CountWanted
        The counts of units among what is wanted, by their places.
    known : UnitCounts
    schema : Schema
    price : callable
    affordable : callable
        How many units can be added to the weight of a count: a holder may have little left. If that
        is not enough, the count is planned as if it could be paid.

    Raises
    ------
    InvalidTarget
        If no weight would be enough for a count.
    """
    planned: dict[Name, PlannedUnitCount] = {}
    offers: dict[int, tuple[Offer, ...]] = dict.fromkeys(wanted, ())
    first: dict[Name, int] = {}
    for place, one in wanted.items():
        if meets(one.known, one.wanted.target):
            continue
        for found in _payable(one, known, schema, affordable):
            name = name_of(found.count)
            if name not in planned or planned[name].weight < found.weight:
                planned[name] = found
            first.setdefault(name, place)
    paying: dict[int, list[PlannedUnitCount]] = {}
    for name, place in first.items():  # of two that want the same, the first has it all
        paying.setdefault(place, []).append(planned[name])
    for place, counts in paying.items():
        scope = wanted[place].wanted.block.scope
        epsilon = price(counts)
        offers[place] = (Offer(CANDIDATE, scope, (), epsilon, rent=Fraction(0), is_chosen=True),)
    return tuple(planned.values()), offers


def _payable(
    one: CountWanted, known: UnitCounts, schema: Schema, affordable: Affordable
) -> list[PlannedUnitCount]:
    """The parts to buy: holders with little left have less weight, or else refuse theirs."""
    most = [affordable(part.count) for part in one.parts]
    if min(most, default=WEIGHT_UNITS_MAX) < WEIGHT_UNITS_MAX:
        with suppress(InvalidTarget, TooLarge):
            return _planned(one, known, schema, most)
    return _planned(one, known, schema, [WEIGHT_UNITS_MAX] * len(most))


def _planned(
    one: CountWanted, known: UnitCounts, schema: Schema, most: Sequence[int]
) -> list[PlannedUnitCount]:
    """The parts at the smallest weight that meets the target: raised, or afresh if that is less."""
    target = one.wanted.target
    raised = partial(_raised, most=most)
    is_free = min(most, default=WEIGHT_UNITS_MAX) == WEIGHT_UNITS_MAX
    _, multiplier = numbers_of(one.wanted).primitive
    fresh = weight_for(target, multiplier)
    places = [known.latest.get(name_of(part.count)) for part in one.parts]
    weights = [0 if at is None else known.measurements[at].weight.units for at in places]
    is_one = max(np.bincount(np.concatenate([part.rows for part in one.parts]))) == 1
    if is_free and is_one and None in places:
        return raised(one.parts, fresh, places, weights, anew=True)

    def half_width(units: int, *, anew: bool) -> float:
        planned = raised(one.parts, Weight(units), places, weights, anew=anew)
        coming = {name_of(plan.count): known.foreseen(plan) for plan in planned}
        found = []
        for number, (part, place) in enumerate(zip(one.parts, places, strict=True)):
            measured = coming.get(name_of(part.count))
            if measured is None and place is not None:
                measured = known.measurements[place]
            if measured is None:  # its holder has nothing left
                return math.inf
            found.append((part, measured, number))
        return widest(_posteriors(numbers_of(one.wanted), found, schema), target.confidence)

    low = min(weights)
    start = max(fresh.units, low + 1)
    with suppress(TooLarge):  # its lattice is too coarse for this
        units = smallest_units(partial(half_width, anew=False), target, low, start, math.inf)
        if not is_one or units - low <= fresh.units:  # a coarse lattice widens the interval
            return raised(one.parts, Weight(units), places, weights, anew=False)
    if is_free and is_one:
        return raised(one.parts, fresh, places, weights, anew=True)
    units = smallest_units(partial(half_width, anew=True), target, 0, fresh.units, math.inf)
    return raised(one.parts, Weight(units), places, weights, anew=True)


def _raised(  # noqa: PLR0913 - the parts, and all that limits their weights
    parts: Sequence[CountPart],
    weight: Weight,
    places: Sequence[int | None],
    weights: Sequence[int],
    *,
    most: Sequence[int],
    anew: bool,
) -> list[PlannedUnitCount]:
    """The parts that have less than a weight, at that weight, or with all that they can add.

    With `anew` none is raised.
    """
    found = []
    for part, place, units, added in zip(parts, places, weights, most, strict=True):
        then = min(weight.units, (0 if anew else units) + added)
        if units < then:
            found.append(PlannedUnitCount(part.count, Weight(then), None if anew else place))
    return found


def _posteriors(
    block: QueryBlock, found: Sequence[tuple[CountPart, Measurement, int]], schema: Schema
) -> RowEstimates:
    """The posterior of each number, from measured parts at places among the counts of units."""
    scaling = Scaling(block, schema.n_records_max)
    if len(found) == 1 and found[0][0].rows.size == block.n_rows:
        _, measured, place = found[0]
        return scaling.of_own(measured, FIRST_BESIDE + place)
    return posteriors_of(_reading(block, found), scaling)


def _reading(block: QueryBlock, found: Sequence[tuple[CountPart, Measurement, int]]) -> Reading:
    """Rows as sums of the numbers of parts; a row that no part has is 0."""
    sizes = [part.rows.size for part, _, _ in found]

    def of_each(values: Sequence[float]) -> NDArray[np.float64]:
        return np.repeat(np.array(values, dtype=np.float64), sizes)

    measured = [one for _, one, _ in found]
    places = np.array([FIRST_BESIDE + place for _, _, place in found], dtype=np.int64)
    return Reading(
        row=_joined([part.rows for part, _, _ in found]),
        coefficient=np.ones(sum(sizes)),
        value=of_each([]) if not found else np.concatenate([one.values for one in measured]),
        noise_scale=of_each([one.noise_scale for one in measured]),
        is_gaussian=np.zeros(sum(sizes), dtype=np.bool_),
        lattice_widening=of_each([one.lattice_widening for one in measured]),
        noise_place=np.repeat(places, sizes),
        noise_row=_joined([np.arange(size) for size in sizes]),
        is_covered=np.ones(block.n_rows, dtype=np.bool_),
    )


def _joined(numbers: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *numbers])
