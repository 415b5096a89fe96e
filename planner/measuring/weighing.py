"""What a candidate must be bought at: the measurements that raise its blocks to a common weight.

A candidate is weighed for one aggregate, beside what is already planned for the request. Only
measurements of the history are raised. Which candidate is bought is decided in `choose.py`.

Nothing here sees a noisy value, or knows a price.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from cube.encoding import fingerprint
from cube.measurement import PlannedMeasurement
from cube.query import QueryBlock
from cube.refusals import TooLarge
from cube.target import AccuracyTarget
from planner.measuring.candidates import Candidate
from planner.measuring.forecast import Forecast
from planner.measuring.noise_kinds import NoiseKind
from planner.measuring.weights import practically_no_noise, smallest_units


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """One aggregate, and what is planned beside it.

    Parameters
    ----------
    block : QueryBlock
    target : AccuracyTarget
    now : Forecast
        Of the history.
    beside : Forecast
        Of the history and what is planned.
    base : tuple of PlannedMeasurement
        What is planned.
    rows_per_unit : int
        The most records of one unit.
    """

    block: QueryBlock
    target: AccuracyTarget
    now: Forecast
    beside: Forecast
    base: tuple[PlannedMeasurement, ...]
    rows_per_unit: int = 1

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
        low = min(self._held(candidate, kind))
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
        for block in candidate.blocks:
            place = history.raisable(block, is_gaussian=kind.is_gaussian)
            if place is None:
                plan.append(kind.planned(block, units))
            elif history[place].weight.units < units:
                plan.append(self._refined(block, kind, units, place))
        return tuple(plan)

    def adding(self, candidate: Candidate, kind: NoiseKind) -> Callable[[int], Fraction]:
        """What whole scopes add to every cell, and so to the table's cost, by common weight."""
        held = self._held(candidate, kind)

        def added(units: int) -> Fraction:
            return kind.cost(sum(max(0, units - one) for one in held), self.rows_per_unit)

        return added

    def held(self, candidate: Candidate, kind: NoiseKind) -> Fraction:
        """What was paid for whole scopes so far."""
        return kind.cost(sum(self._held(candidate, kind)), self.rows_per_unit)

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

    def _held(self, candidate: Candidate, kind: NoiseKind) -> list[int]:
        """What is held of each block so far with a kind of noise, in units."""
        history = self.now.estimator.history
        places = [
            history.raisable(block, is_gaussian=kind.is_gaussian) for block in candidate.blocks
        ]
        return [0 if place is None else history[place].weight.units for place in places]

    def _refined(
        self, block: QueryBlock, kind: NoiseKind, units: int, place: int
    ) -> PlannedMeasurement:
        raised = kind.planned(block, units, place)
        try:
            self.now.foreseen(raised)
        except TooLarge:  # its lattice is too coarse for a weight this large
            return kind.planned(block, units)
        return raised
