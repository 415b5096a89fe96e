"""The widest law that an error may have, given one of its half-widths.

For analysts who may see the accuracy that they asked for, but not the accuracy that was reached: a
better accuracy would show what was measured before.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

SCALE_OF_DEVIATION: Final = math.sqrt(0.5)  # a Laplace variable's scale over standard deviation


class AskedLaw:
    """An upper bound on a law of noise, of either kind, whose half-width is at most a given one.

    Parameters
    ----------
    half_width : float
    confidence : float
        The confidence of that half-width, between 0 and 1.

    Notes
    -----
    Let ``S(t) = Pr(|X| > t)`` for a sum ``X`` of independent Laplace and Gaussian variables. Its
    density is symmetric and log-concave, so ``log S`` is concave on ``t >= 0``, with ``S(0) = 1``;
    and ``S`` is convex there, since the density decreases. Let ``S(h) <= a``. Then

        t >= h:   log S(t) <= (t / h) log S(h),   that is   S(t) <= a ** (t / h)
        t <= h:   S(t) <= 1 - (1 - a) t / h

    The first is a Laplace variable's tail: no such law has a wider interval of a higher confidence.
    At a lower confidence the half-width is `half_width`, which is wide enough. Both together bound
    the variance, ``2 * integral of t S(t)``.

    Examples
    --------
    >>> law = AskedLaw(10.0, 0.9)
    >>> law.half_width(0.5), law.half_width(0.9), round(law.half_width(0.99), 9)
    (10.0, 10.0, 20.0)
    """

    __slots__ = ("_alpha", "_confidence", "_half_width", "gaussian", "scales", "tail_error")

    def __init__(self, half_width: float, confidence: float) -> None:
        if not (0 <= half_width < math.inf and 0 < confidence < 1):
            raise ValueError(f"no half-width {half_width} of confidence {confidence}")
        self._half_width = half_width
        self._confidence = confidence
        self._alpha = 1 - confidence
        self.scales: NDArray[np.float64] = np.array([SCALE_OF_DEVIATION * self._deviation()])
        self.scales.flags.writeable = False
        self.gaussian = 0.0
        self.tail_error = 0.5  # `tail` is a bound, not a probability

    def tail(self, z: float) -> float:
        """A bound on ``Pr(X > z)``, from above for positive ``z``."""
        if z < 0:
            return 1 - self.tail(-z)
        share = z / self._half_width if self._half_width else math.inf
        if share <= 1:
            return (1 - self._confidence * share) / 2
        return 0.5 * math.exp(share * math.log(self._alpha)) if share < math.inf else 0.0

    def half_width(self, confidence: float) -> float:
        """A half-width at a confidence, never too small."""
        if confidence <= self._confidence:
            return self._half_width
        return self._half_width * math.log1p(-confidence) / math.log(self._alpha)

    def _deviation(self) -> float:
        """A bound on the standard deviation."""
        inside = (1 + 2 * self._alpha) / 3
        per_scale = -1 / math.log(self._alpha)  # of the Laplace tail, in half-widths
        beyond = 2 * self._alpha * (per_scale + per_scale**2)
        return self._half_width * math.sqrt(inside + beyond)
