"""The half-widths that a relative target asks for, one round after the other.

An answer ``v`` known to within ``w`` meets a target of ``r`` times itself if ``w <= r (|v| - w)``:
then ``w`` is at most ``r`` times the true value, unless the interval errs. If the truth is ``T``,
the widest half-width that may end so is ``r T / (1 + r)``.

While ``w`` is more than half of ``|v|``, little is known of the truth but that it is plausibly no
larger than ``|v| + w``. Then the next round asks for ``r (|v| + w) / (1 + r)``: a target that the
truth is likely to make narrower still, so that a round that turns out to be needless has never been
dear. An answer of which nothing is known has ``|v| = 0`` and the public bound for ``w``. Once ``w``
is at most half of ``|v|``, the next round asks for ``r (|v| - w / 2) / (1 + r)``, which is likely
to be the last.

A round narrows by a stated share at least, so that there are few of them: each is a charge, and one
more look at noise (`planner.workload`). So the half-width that is reached is rarely far
below the one that would have been enough: by 4 to 20 per cent on average for targets up to 0.3, by
a third for targets near 1.

Everything here follows from noisy values that were paid for, or from public bounds.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

TOLD: Final = 0.5  # of the value: a half-width below this says how large the truth is
COARSE_SHARE: Final = 0.6  # of its half-width, at most, before that
FINE_SHARE: Final = 0.9  # of its half-width, at most, after that
BACK: Final = 0.5  # half-widths towards zero that the truth may lie, for a round to be the last


@dataclass(frozen=True, slots=True)
class RelativeTarget:
    """A half-width that is a fraction of the answer.

    Parameters
    ----------
    relative : float
    floor : float
        The half-width that is narrow enough for any answer.

    Examples
    --------
    >>> target = RelativeTarget(0.05, floor=10.0)
    >>> values, half_widths = np.array([1000.0, 1000.0, 3.0]), np.array([40.0, 60.0, 10.0])
    >>> target.is_met(values, half_widths)
    array([ True, False,  True])
    >>> target.next_widths(values, half_widths).round(2)
    array([40.  , 46.19, 10.  ])
    """

    relative: float
    floor: float

    def __post_init__(self) -> None:
        if not 0 < self.relative < 1:
            raise ValueError(f"a relative target lies between 0 and 1, not {self.relative}")
        if not self.floor >= 0:
            raise ValueError(f"a half-width is not negative, as {self.floor} is")

    def is_met(self, values: Floats, half_widths: Floats) -> NDArray[np.bool_]:
        """Whether each answer is known well enough."""
        enough = np.maximum(self.relative * (np.abs(values) - half_widths), self.floor)
        return np.asarray(half_widths <= enough)

    def next_widths(self, values: Floats, half_widths: Floats) -> Floats:
        """What to ask for next; the half-width itself where it is narrow enough."""
        sizes = np.abs(values)
        coarse = np.minimum(self._enough_for(sizes + half_widths), COARSE_SHARE * half_widths)
        fine = np.minimum(self._enough_for(sizes - BACK * half_widths), FINE_SHARE * half_widths)
        return self._unless_met(
            values, half_widths, np.where(self._is_told(values, half_widths), fine, coarse)
        )

    def likely_widths(self, values: Floats, half_widths: Floats) -> Floats:
        """What will probably be asked for in the end; never wider than what is asked for next.

        A search that cannot be paid down to here is better refused before it begins.
        """
        likely = self._enough_for(np.maximum(np.abs(values), half_widths))
        return np.minimum(
            self._unless_met(values, half_widths, likely), self.next_widths(values, half_widths)
        )

    def surest_widths(self, values: Floats, half_widths: Floats) -> Floats:
        """The narrowest that may be asked for in the end; 0 where the answer may be 0."""
        surest = self._enough_for(np.maximum(np.abs(values) - half_widths, 0.0))
        return np.where(
            self.is_met(values, half_widths), half_widths, np.maximum(surest, self.floor)
        )

    def _enough_for(self, sizes: Floats) -> Floats:
        """The widest half-width that may be enough if the truth has such a size."""
        return np.asarray(self.relative / (1 + self.relative) * sizes)

    @staticmethod
    def _is_told(values: Floats, half_widths: Floats) -> NDArray[np.bool_]:
        return np.asarray(half_widths <= TOLD * np.abs(values))

    def _unless_met(self, values: Floats, half_widths: Floats, narrower: Floats) -> Floats:
        return np.where(
            self.is_met(values, half_widths), half_widths, np.maximum(narrower, self.floor)
        )
