"""The accuracy that a query asks for: ``Pr(|answer - truth| <= half_width) >= confidence``."""

import math
from dataclasses import dataclass
from fractions import Fraction

from cube.refusals import InvalidTarget

CONFIDENCE_MAX = 1 - 2**-30  # beyond one in a billion the proved tail bounds run out of digits


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyTarget:
    """How close the answer must be, with what confidence, and what it may cost at most.

    Parameters
    ----------
    half_width : float
        Half the width of the interval, in units of the answer.
    confidence : float
        Probability that the interval holds the truth.
    epsilon_cap : Fraction, optional
        The most this request may add to the table's cost.
    """

    half_width: float
    confidence: float
    epsilon_cap: Fraction | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.half_width) and self.half_width > 0):
            raise InvalidTarget(
                f"half_width must be a positive number, not {self.half_width}.",
                hint="It is half the width of the interval, in units of the answer.",
            )
        if not 0 < self.confidence <= CONFIDENCE_MAX:
            raise InvalidTarget(
                f"confidence must lie strictly between 0 and 1, "
                f"and not within 2**-30 of 1, not {self.confidence}.",
                hint="0.95 is usual.",
            )
        if self.epsilon_cap is not None and self.epsilon_cap < 0:
            raise InvalidTarget(
                "epsilon, the cap on the cost, must not be negative.",
                hint="With 0, only what is known already is answered.",
            )
