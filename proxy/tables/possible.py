"""Estimates whose noise may exceed what is counted, with intervals of what is possible.

An unbiased estimate may be further outside of its public range than its interval reaches. Cut to
the range, the interval would be a point, or nearly one, and read as certainty, where only the noise
is large. So it is put about the possible value that is nearest to the estimate.

Nothing here changes an estimate, which stays unbiased.
"""

from dataclasses import dataclass

from inference.posterior import Posterior


@dataclass(frozen=True, slots=True, eq=False)
class PossiblePosterior(Posterior):
    """An estimate whose interval is about the nearest possible value, cut to the public range.

    Notes
    -----
    The truth is in the range, an interval of numbers, so that it is no further from the nearest
    possible value than from the estimate: the coverage is no smaller than that of the interval
    about the estimate. The width is at least the half-width, or that of the range.

    Examples
    --------
    >>> import numpy as np
    >>> from inference.noise_law.law import law_of_noise
    >>> law = law_of_noise(np.empty(0), gaussian=10.0)
    >>> Posterior(-30.0, law, low=0.0, high=100.0).interval(0.95)
    (0.0, 0.0)
    >>> low, high = PossiblePosterior(-30.0, law, low=0.0, high=100.0).interval(0.95)
    >>> low, round(high, 1)
    (0.0, 19.6)
    """

    def interval(self, confidence: float) -> tuple[float, float]:
        """About the nearest possible value, cut to the public range."""
        possible = Posterior(
            min(max(self.value, self.low), self.high),
            self.law,
            self.lattice_widening,
            self.low,
            self.high,
        )
        return possible.interval(confidence)
