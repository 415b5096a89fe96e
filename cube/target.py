"""The accuracy that a query asks for: ``Pr(|answer - truth| <= half_width) >= confidence``.

`AccuracyTarget` is what is asked of one answer; `SumTarget` is what an owner declares for the sums
of a measure, in the measure's own unit. `PosteriorMethod` is how what is known of an answer is
computed.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from cube.refusals import InvalidTarget

CONFIDENCE_MAX = 1 - 2**-30  # beyond one in a billion the proved tail bounds run out of digits


class PosteriorMethod(StrEnum):
    """How the posteriors of linear answers are computed.

    By the contour integral, with its proved bound; by convolution, as a Fourier series; by draws.
    """

    EXACT = "exact"
    CONVOLUTION = "convolution"
    MONTE_CARLO = "monte_carlo"


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
                hint="half_width is half the width of the interval, in the units of the answer.",
            )
        if not 0 < self.confidence <= CONFIDENCE_MAX:
            raise InvalidTarget(
                f"confidence must lie strictly between 0 and 1, "
                f"and not within 2**-30 of 1, not {self.confidence}.",
                hint="A usual value is 0.95.",
            )
        if self.epsilon_cap is not None and self.epsilon_cap < 0:
            raise InvalidTarget(
                "epsilon, the cap on the cost, must not be negative.",
                hint="With 0, only queries that the history can answer are answered.",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SumTarget:
    """The default target for sums of a measure: a half-width, or a fraction of the sum.

    Parameters
    ----------
    half_width : float, optional
        The half-width of the sum, in the measure's unit.
    relative : float, optional
        The half-width as a fraction of the sum; exactly one of the two is given.
    at_least : float, optional
        With `relative`, the assumed least size of the sum, in the measure's unit.
    """

    half_width: float | None = None
    relative: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        if (self.half_width is None) == (self.relative is None):
            raise ValueError("a sum has either a half_width or a relative target")
        if self.at_least is not None and self.relative is None:
            raise ValueError("at_least needs relative")
        for name in ("half_width", "at_least"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, not {value}")
        if self.relative is not None and not 0 < self.relative < 1:
            raise ValueError(f"relative must lie between 0 and 1, not {self.relative}")

    @property
    def width(self) -> float:
        """The narrowest half-width that is ever asked for, in the measure's unit."""
        if self.half_width is not None:
            return self.half_width
        if self.relative is None or self.at_least is None:
            raise ValueError(
                "at_least is missing, so the bounds of the table decide the half-width"
            )
        return self.relative * self.at_least
