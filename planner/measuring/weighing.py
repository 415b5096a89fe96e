"""Finds the weights at which to buy a candidate, and forecasts the half-widths that it would give.

Forecasts: the half-widths that purchases would give, computed from weights before any is made.

A forecast runs the same estimator that will answer, on a history to which the purchases are added
with values of zero. Half-widths depend on weights alone, so what is forecast is what the answer
will have. Nothing is bought here, and no noisy value plays a part.

What a candidate must be bought at: the measurements that raise its blocks to a common weight.

A candidate is weighed for one aggregate, beside what is already planned for the request. Only
measurements of the history are raised. Which candidate is bought is decided in `choose.py`.

Nothing here sees a noisy value, or knows a price.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

from cube.encoding import fingerprint
from cube.holders import Holders
from cube.measurement import (
    UNITS_PER_EPSILON,
    Measurement,
    PlannedMeasurement,
)
from cube.pace import checkpoint
from cube.query import QueryBlock
from cube.refusals import TooLarge
from cube.target import AccuracyTarget
from inference import Estimator, widest
from planner.measuring.candidates import Candidate
from planner.measuring.weights import (
    LAPLACE,
    GaussianKind,
    NoiseKind,
    practically_no_noise,
    smallest_units,
)

_Named: TypeAlias = tuple[str, bool]  # a block's fingerprint, and whether its noise is Gaussian


@dataclass(frozen=True, slots=True)
class RisingForecast:
    """The half-widths of one block under plans for the same rows at rising weights.

    Parameters
    ----------
    half_width : callable
        The half-width under a plan.
    at_lightest : float
        The half-width under the lightest plan, where it is known; infinite if not.
    """

    half_width: Callable[[Sequence[PlannedMeasurement]], float]
    at_lightest: float = math.inf


class Forecast:
    """The history of one table, with planned measurements added to it.

    Parameters
    ----------
    estimator : Estimator
        The history, with what is planned so far.
    foreseen : callable
        What a planned measurement would make, without its values (`Raises.foreseen`).
    planned : mapping of (str, bool) to (int, int), optional
        What is planned and already added to that history, by fingerprint and whether its noise is
        Gaussian: its place, and the units of its weight. A later plan may give it more.
    """

    def __init__(
        self,
        estimator: Estimator,
        foreseen: Callable[[PlannedMeasurement], Measurement],
        planned: Mapping[_Named, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        self.estimator = estimator
        self.foreseen = foreseen
        self._planned = planned

    def half_width(
        self, block: QueryBlock, target: AccuracyTarget, plan: Sequence[PlannedMeasurement] = ()
    ) -> float:
        """The widest row's half-width if `plan` were bought; infinite if not determined."""
        checkpoint()
        estimator = self.with_planned(plan).estimator
        rows = estimator.estimate(block, target.confidence, target.half_width)
        return widest(rows, target.confidence)

    def after(self, plan: Sequence[PlannedMeasurement]) -> "Forecast":
        """The forecast once `plan` is bought: its rows count as measured."""
        return Forecast(self.with_planned(plan).estimator, self.foreseen)

    def with_planned(self, plan: Sequence[PlannedMeasurement]) -> "Forecast":
        """The forecast with the rows of `plan` added to the history.

        Rows that are there already, at the same weight or a larger one, are left alone. So a plan
        that grows may be passed again: only what is new in it is added.
        """
        further = self._further(plan)
        if not further:
            return self
        estimator = self.estimator.fork()
        estimator.add([self._imagined(planned) for planned in further])
        places = enumerate(further, start=self.estimator.n_measurements)
        added = {_name(one): (place, one.weight.units) for place, one in places}
        return Forecast(estimator, self.foreseen, {**self._planned, **added})

    def rising(
        self, block: QueryBlock, target: AccuracyTarget, lightest: Sequence[PlannedMeasurement]
    ) -> RisingForecast:
        """What `half_width` gives for plans of the same blocks at rising weights, but faster.

        The rows of `lightest` are added to the history once. A plan of the same blocks, none of
        them lighter, then only raises their weights, which takes no algebra of rows.
        """
        if self._is_own(block, target, self._further(lightest)):
            return RisingForecast(lambda plan: self._half_width_of_own(block, target, plan))
        base = self.with_planned(lightest)
        # This estimate builds the workspaces of `base`; every later plan copies them.
        rows = base.estimator.estimate(block, target.confidence)
        return RisingForecast(
            lambda plan: base.half_width(block, target, plan), widest(rows, target.confidence)
        )

    def _further(self, plan: Sequence[PlannedMeasurement]) -> list[PlannedMeasurement]:
        """The part of a plan that is not yet added to the history, or only at a smaller weight."""
        found = []
        for planned in plan:
            held = self._planned.get(_name(planned))
            if held is None or held[1] < planned.weight.units:
                found.append(planned)
        return found

    def _is_own(
        self, block: QueryBlock, target: AccuracyTarget, further: Sequence[PlannedMeasurement]
    ) -> bool:
        """Whether a plan adds only the block itself, and no other row says anything about it."""
        if len(further) != 1 or fingerprint(further[0].block) != fingerprint(block.primitive[0]):
            return False
        place = self.estimator.history.most_precise(further[0].block)
        is_one = place is None or place == self._replaced_by(further[0])
        return is_one and self.estimator.stands_apart(block, target.confidence)

    def _half_width_of_own(
        self, block: QueryBlock, target: AccuracyTarget, plan: Sequence[PlannedMeasurement]
    ) -> float:
        checkpoint()
        (planned,) = self._further(plan)
        imagined = self._imagined(planned)
        rows = self.estimator.with_measured(block, target.confidence, imagined)
        return widest(rows, target.confidence)

    def _imagined(self, planned: PlannedMeasurement) -> Measurement:
        return replace(self.foreseen(planned), supersedes=self._replaced_by(planned))

    def _replaced_by(self, planned: PlannedMeasurement) -> int | None:
        """The place of the measurement, planned or real, that this one would replace."""
        held = self._planned.get(_name(planned))
        return planned.raised_from if held is None else held[0]


def _name(planned: PlannedMeasurement) -> _Named:
    return fingerprint(planned.block), planned.is_gaussian


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """One aggregate, and what is planned beside it.

    Parameters
    ----------
    block : QueryBlock
    target : AccuracyTarget
    now : Forecast
        The half-widths from the history alone.
    beside : Forecast
        Of the history and what is planned.
    base : tuple of PlannedMeasurement
        The measurements that are planned already.
    rows_per_unit : int
        The most records of one unit.
    holders : Holders, optional
        Of a federated table: every row is measured by each of them.
    caps : mapping of int to Fraction
        The most epsilon that some holders may spend, by their levels.
    rows_at_holder : int
        The most records of one unit at one holder.

    Notes
    -----
    The error of a sum over holders has the variance ``2 sum_h 1/w_h**2`` for the weights `w_h`, or
    ``sum_h 1/(2 p_h)`` for the precisions `p_h` of Gaussian noise. For a given variance and caps,
    the least largest weight and the least sum of weights are reached at one common weight that is
    cut at the caps: both problems are convex, and by stationarity all weights below their caps are
    equal.
    """

    block: QueryBlock
    target: AccuracyTarget
    now: Forecast
    beside: Forecast
    base: tuple[PlannedMeasurement, ...]
    rows_per_unit: int = 1
    holders: Holders | None = None
    caps: Mapping[int, Fraction] = field(default_factory=lambda: MappingProxyType({}))
    rows_at_holder: int = 1

    @property
    def without_caps(self) -> "Weighing":
        """The same, as if all holders could spend as much as is asked."""
        return replace(self, caps=MappingProxyType({}))

    def with_planned(self, plan: Sequence[PlannedMeasurement]) -> "Weighing":
        """The same once more is planned."""
        together = self.together(plan)
        beside = self.beside.with_planned(together)
        return replace(self, beside=beside, base=together)

    def smallest(self, candidate: Candidate, kind: NoiseKind) -> tuple[PlannedMeasurement, ...]:
        """The candidate at the smallest weight that meets the target; raises as `least_units`."""
        return self.raised(candidate, kind, self.least_units(candidate, kind))

    def least_units(self, candidate: Candidate, kind: NoiseKind) -> int:
        """The smallest common weight at which a candidate meets the target beside the history.

        Raises
        ------
        InvalidTarget
            If no weight does.
        """
        _, multiplier = self.block.primitive
        start = kind.fresh(self.target, multiplier)
        low = min(min(of_block) for of_block in self._held(candidate, kind))
        if low >= kind.units_max:
            raise practically_no_noise(self.target)
        lightest = self.together(self.raised(candidate, kind, low + 1))
        rising = self.beside.rising(self.block, self.target, lightest)
        return smallest_units(
            lambda units: rising.half_width(self.together(self.raised(candidate, kind, units))),
            self.target,
            low,
            max(start, low + 1),
            rising.at_lightest,
            kind.power,
            kind.units_max,
        )

    def raised(
        self, candidate: Candidate, kind: NoiseKind, units: int
    ) -> tuple[PlannedMeasurement, ...]:
        """The measurements that raise every block with fewer units to that many."""
        history = self.now.estimator.history
        plan = []
        for block in (one for blocks in self._measured(candidate) for one in blocks):
            place = history.raisable(block, is_gaussian=kind.is_gaussian)
            held = 0 if place is None else history[place].weight.units
            most = min(units, held + self._affordable(block, kind)) if self.caps else units
            if most <= held:
                continue
            if place is None:
                plan.append(kind.planned(block, most))
            else:
                plan.append(self._refined(block, kind, most, place))
        return tuple(plan)

    def _affordable(self, block: QueryBlock, kind: NoiseKind) -> int:
        """How many units the holder of a block can add to it, beside what is planned.

        Gaussian noise is reckoned on this table's terms. If it costs more on the holder's own, the
        holder refuses it.
        """
        if self.holders is None:
            return kind.units_max
        level, _ = self.holders.at_holder(block)
        left = self.caps.get(level)
        if left is None:
            return kind.units_max
        planned = sum(
            self._cost_at_holder(one)
            for one in self.base
            if fingerprint(one.block) != fingerprint(block)
            and self.holders.at_holder(one.block)[0] == level
        )
        units = max(0, int((left - planned) * UNITS_PER_EPSILON))
        return kind.affordable(units, self.rows_at_holder * int(block.query.bound))

    def _cost_at_holder(self, planned: PlannedMeasurement) -> Fraction:
        kind = LAPLACE if planned.terms is None else GaussianKind(planned.terms)
        bound = int(planned.block.query.bound)
        return kind.cost(planned.weight.units, self.rows_at_holder * bound)

    def adding(self, candidate: Candidate, kind: NoiseKind) -> Callable[[int], Fraction]:
        """What whole scopes add to every cell, and so to the table's cost, by common weight."""
        held = self._held(candidate, kind)

        def added(units: int) -> Fraction:
            return kind.cost(sum(max(0, units - min(one)) for one in held), self.rows_per_unit)

        return added

    def held(self, candidate: Candidate, kind: NoiseKind) -> Fraction:
        """What was paid for whole scopes so far."""
        return kind.cost(sum(map(max, self._held(candidate, kind))), self.rows_per_unit)

    def half_width(self, plan: Sequence[PlannedMeasurement]) -> float:
        """What would be promised."""
        return self.beside.half_width(self.block, self.target, self.together(plan))

    def together(self, plan: Sequence[PlannedMeasurement]) -> tuple[PlannedMeasurement, ...]:
        """The plan and what is planned: of two for the same rows, the one of larger weight."""
        merged: dict[tuple[str, bool], PlannedMeasurement] = {}
        for planned in (*self.base, *plan):
            name = (fingerprint(planned.block), planned.is_gaussian)
            if name not in merged or merged[name].weight.units < planned.weight.units:
                merged[name] = planned
        return tuple(merged.values())

    def _held(self, candidate: Candidate, kind: NoiseKind) -> list[list[int]]:
        """What is held so far with a kind of noise, in units: for each block, by each holder."""
        return [
            [self._held_of(one, kind) for one in blocks] for blocks in self._measured(candidate)
        ]

    def _held_of(self, block: QueryBlock, kind: NoiseKind) -> int:
        history = self.now.estimator.history
        place = history.raisable(block, is_gaussian=kind.is_gaussian)
        return 0 if place is None else history[place].weight.units

    def _measured(self, candidate: Candidate) -> list[tuple[QueryBlock, ...]]:
        """What is measured for each block: itself, or the rows of each holder that is asked about.

        Rows of other holders say nothing about the query, and would cost these holders budget.
        """
        if self.holders is None:
            return [(block,) for block in candidate.blocks]
        split, place_of = self.holders.split, self.holders.at_holder
        asked = {place_of(one)[0] for one in split(self.block)}
        found = [
            tuple(one for one in split(block) if place_of(one)[0] in asked)
            for block in candidate.blocks
        ]
        return [one for one in found if one]

    def _refined(
        self, block: QueryBlock, kind: NoiseKind, units: int, place: int
    ) -> PlannedMeasurement:
        raised = kind.planned(block, units, place)
        try:
            self.now.foreseen(raised)
        except TooLarge:  # its lattice is too coarse for a weight this large
            return kind.planned(block, units)
        return raised
