"""What would be known after some purchases: half-widths, from weights alone, before any is made.

The very code that will answer is asked, on a history to which the purchases are added with values
of zero; so what is promised here is what will be kept. Nothing is bought and no noisy value plays
a part.
"""

from collections.abc import Callable, Sequence

from accountant.noise import LatticeNoise
from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.measurement import Measurement, PlannedMeasurement
from cube.target import AccuracyTarget
from inference.estimator import Estimator
from inference.posterior import widest


class Prospect:
    """The history of one table, and what it could become.

    Parameters
    ----------
    estimator : Estimator
        The history as it is.
    noise_for : callable
        The noise that a planned measurement would have (`Gate.noise_for`).
    """

    def __init__(
        self, estimator: Estimator, noise_for: Callable[[PlannedMeasurement], LatticeNoise]
    ) -> None:
        self.estimator = estimator
        self.noise_for = noise_for

    def half_width(
        self, block: QueryBlock, target: AccuracyTarget, plan: Sequence[PlannedMeasurement] = ()
    ) -> float:
        """The widest row's half-width if `plan` were bought; infinite if not determined."""
        estimator = self.after(plan).estimator if plan else self.estimator
        rows = estimator.estimate(block, target.confidence, target.half_width)
        return widest(rows, target.confidence)

    def after(self, plan: Sequence[PlannedMeasurement]) -> "Prospect":
        """What could become of the history if `plan` were bought."""
        estimator = self.estimator.fork()
        estimator.add([self._imagined(planned) for planned in plan])
        return Prospect(estimator, self.noise_for)

    def climb(
        self, block: QueryBlock, target: AccuracyTarget, lightest: Sequence[PlannedMeasurement]
    ) -> Callable[[Sequence[PlannedMeasurement]], float]:
        """What `half_width` says of plans for the same blocks at rising weights, but sooner.

        The rows of `lightest` are put beside the history once. A plan that has the same blocks,
        none of them lighter, then only raises them there, which takes no algebra of rows.
        """
        if self._is_own(block, target, lightest):
            return lambda plan: self._half_width_of_own(block, target, plan)
        foot = self.estimator.fork()
        foot.add([self._imagined(planned) for planned in lightest])
        foot.estimate(block, target.confidence)  # its workspaces are copied, not made, from here on
        first = self.estimator.n_measurements
        places = {fingerprint(one.block): first + place for place, one in enumerate(lightest)}
        weights = {fingerprint(one.block): one.weight for one in lightest}

        def half_width(plan: Sequence[PlannedMeasurement]) -> float:
            estimator = foot.fork()
            estimator.add(
                [
                    self._imagined(planned, places.get(name))
                    for planned in plan
                    if (name := fingerprint(planned.block)) not in weights
                    or weights[name] < planned.weight
                ]
            )
            rows = estimator.estimate(block, target.confidence, target.half_width)
            return widest(rows, target.confidence)

        return half_width

    def _is_own(
        self, block: QueryBlock, target: AccuracyTarget, plan: Sequence[PlannedMeasurement]
    ) -> bool:
        """Whether a plan measures only the block itself, of which nothing else says anything."""
        if len(plan) != 1 or fingerprint(plan[0].block) != fingerprint(block.primitive[0]):
            return False
        place = self.estimator.history.most_precise(plan[0].block)
        is_one = place is None or place == plan[0].raised_from
        return is_one and self.estimator.stands_apart(block, target.confidence)

    def _half_width_of_own(
        self, block: QueryBlock, target: AccuracyTarget, plan: Sequence[PlannedMeasurement]
    ) -> float:
        (planned,) = plan
        imagined = self._imagined(planned)
        rows = self.estimator.with_measured(block, target.confidence, imagined)
        return widest(rows, target.confidence)

    def _imagined(self, planned: PlannedMeasurement, raised_from: int | None = None) -> Measurement:
        noise = self.noise_for(planned)
        return Measurement(
            block=planned.block,
            weight=planned.weight,
            lattice_bits=noise.lattice_bits,
            noise_scale=noise.noise_scale,
            lattice_values=(0,) * planned.block.n_rows,
            supersedes=planned.raised_from if raised_from is None else raised_from,
        )
