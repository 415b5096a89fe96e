"""What would be known after some purchases: half-widths, from weights alone, before any is made.

The very code that will answer is asked, on a history to which the purchases are added with values
of zero; so what is promised here is what will be kept. Nothing is bought and no noisy value plays
a part.
"""

from collections.abc import Callable, Sequence

from accountant.noise import LatticeNoise
from cube.block import QueryBlock
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
        estimator = self.estimator
        if plan:
            estimator = estimator.fork()
            estimator.add([self._imagined(planned) for planned in plan])
        rows = estimator.estimate(block, target.confidence, target.half_width)
        return widest(rows, target.confidence)

    def _imagined(self, planned: PlannedMeasurement) -> Measurement:
        noise = self.noise_for(planned)
        return Measurement(
            block=planned.block,
            weight=planned.weight,
            lattice_bits=noise.lattice_bits,
            noise_scale=noise.noise_scale,
            lattice_values=(0,) * planned.block.n_rows,
            supersedes=planned.raised_from,
        )
