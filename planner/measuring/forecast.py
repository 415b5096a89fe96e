"""What would be known after some purchases: half-widths, from weights alone, before any is made.

The very code that will answer is asked, on a history to which the purchases are added with values
of zero; so what is promised here is what will be kept. Nothing is bought and no noisy value plays
a part.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from accountant.noise.laplace import LatticeNoise
from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.measurement import Measurement, PlannedMeasurement, Weight
from cube.pace import checkpoint
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from inference.posterior import widest


@dataclass(frozen=True, slots=True)
class RisingForecast:
    """The half-widths of one block under plans for the same rows at rising weights.

    Parameters
    ----------
    half_width : callable
        Of a plan.
    at_foot : float
        That of the lightest plan, where it is known; infinite if not.
    """

    half_width: Callable[[Sequence[PlannedMeasurement]], float]
    at_foot: float = math.inf


class Forecast:
    """The history of one table, and what it could become.

    Parameters
    ----------
    estimator : Estimator
        The history as it is.
    noise_for : callable
        The noise that a planned measurement would have (`Gate.noise_for`).
    planned : mapping of str to (int, Weight), optional
        What is planned and stands in that history already, by fingerprint: its place and weight.
        It may be planned more heavily yet.
    """

    def __init__(
        self,
        estimator: Estimator,
        noise_for: Callable[[PlannedMeasurement], LatticeNoise],
        planned: Mapping[str, tuple[int, Weight]] = MappingProxyType({}),
    ) -> None:
        self.estimator = estimator
        self.noise_for = noise_for
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
        """What could become of the history once `plan` was bought."""
        return Forecast(self.with_planned(plan).estimator, self.noise_for)

    def with_planned(self, plan: Sequence[PlannedMeasurement]) -> "Forecast":
        """The prospect with the rows of `plan` put beside the history.

        What stands there already, no lighter, is left as it is; so a plan that grows may be given
        again, and goes on where the last one ended.
        """
        further = self._further(plan)
        if not further:
            return self
        estimator = self.estimator.fork()
        estimator.add([self._imagined(planned) for planned in further])
        places = enumerate(further, start=self.estimator.n_measurements)
        added = {fingerprint(one.block): (place, one.weight) for place, one in places}
        return Forecast(estimator, self.noise_for, {**self._planned, **added})

    def climb(
        self, block: QueryBlock, target: AccuracyTarget, lightest: Sequence[PlannedMeasurement]
    ) -> RisingForecast:
        """What `half_width` says of plans for the same blocks at rising weights, but sooner.

        The rows of `lightest` are put beside the history once. A plan that has the same blocks,
        none of them lighter, then only raises them there, which takes no algebra of rows.
        """
        if self._is_own(block, target, self._further(lightest)):
            return RisingForecast(lambda plan: self._half_width_of_own(block, target, plan))
        foot = self.with_planned(lightest)
        # The workspaces of the foot are copied, not made, from here on.
        rows = foot.estimator.estimate(block, target.confidence)
        return RisingForecast(
            lambda plan: foot.half_width(block, target, plan), widest(rows, target.confidence)
        )

    def _further(self, plan: Sequence[PlannedMeasurement]) -> list[PlannedMeasurement]:
        """What of a plan does not stand beside the history already, as heavy."""
        found = []
        for planned in plan:
            held = self._planned.get(fingerprint(planned.block))
            if held is None or held[1] < planned.weight:
                found.append(planned)
        return found

    def _is_own(
        self, block: QueryBlock, target: AccuracyTarget, further: Sequence[PlannedMeasurement]
    ) -> bool:
        """Whether a plan adds only the block itself, of which nothing else says anything."""
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
        noise = self.noise_for(planned)
        return Measurement(
            block=planned.block,
            weight=planned.weight,
            lattice_bits=noise.lattice_bits,
            noise_scale=noise.noise_scale,
            lattice_values=(0,) * planned.block.n_rows,
            supersedes=self._replaced_by(planned),
        )

    def _replaced_by(self, planned: PlannedMeasurement) -> int | None:
        """The place of what a measurement would take the place of: lighter and planned, or real."""
        held = self._planned.get(fingerprint(planned.block))
        return planned.raised_from if held is None else held[0]
