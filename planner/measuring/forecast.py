"""Forecasts: the half-widths that purchases would give, computed from weights before any is made.

A forecast runs the same estimator that will answer, on a history to which the purchases are added
with values of zero. Half-widths depend on weights alone, so what is forecast is what the answer
will have. Nothing is bought here, and no noisy value plays a part.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from cube.encoding import fingerprint
from cube.measurement import Measurement, PlannedMeasurement
from cube.pace import checkpoint
from cube.query import QueryBlock
from cube.target import AccuracyTarget
from inference.block_estimates import widest
from inference.estimator import Estimator

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
