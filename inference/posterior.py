"""What an estimate says about the truth: ``truth = value - X``, with ``X`` the law of the noise.

This is the pivotal law of Xiao & Xiong 2012 (Theorem 4.1): the posterior under a flat prior given
the estimate alone. Its intervals cover with their confidence in repeated use, for a query that was
chosen without looking at the noise.

No prior enters. What is publicly known of the range clips intervals and changes nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.noise_law.convolution import masses_on_grid
from inference.noise_law.error_terms import NO_TERMS, ErrorTerms
from inference.noise_law.laplace_sum import standard_deviation
from inference.noise_law.law import NoiseLaw


@dataclass(frozen=True, slots=True)
class NotEstimable:
    """History does not determine the query, and `reason` says which part of it is missing."""

    reason: str

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError("a query is not estimable for a reason")


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """An estimate together with the law of its error.

    Parameters
    ----------
    value : float
        The estimate, in units of the answer.
    law : NoiseLaw
        Law of ``X = value - truth``.
    lattice_widening : float
        Sure bound on what lattice noise in place of continuous noise can add to the error: the sum
        over the rows of ``|A_k|`` times the row's lattice step. Every half-width includes it.
    low, high : float
        The public range of the truth; intervals are clipped to it.
    terms : ErrorTerms
        Which noise ``value - truth`` is made of. Only joint laws of several answers ask for it.

    Examples
    --------
    >>> from inference.noise_law.law import law_of_noise
    >>> posterior = Posterior(3.0, law_of_noise(np.array([2.0])), low=0.0)
    >>> low, high = posterior.interval(0.95)
    >>> low, round(high, 3)
    (0.0, 8.991)
    """

    value: float
    law: NoiseLaw
    lattice_widening: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    terms: ErrorTerms = NO_TERMS

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"an estimate is a finite number, not {self.value}")
        if not (math.isfinite(self.lattice_widening) and self.lattice_widening >= 0):
            raise ValueError(f"lattice_widening must not be negative, got {self.lattice_widening}")
        if not self.low <= self.high:
            raise ValueError(f"the public range [{self.low}, {self.high}] is empty")

    def half_width(self, confidence: float) -> float:
        """Half the width of the unclipped interval: ``Pr(|truth - value| <= it) >= confidence``.

        With noise ``g floor(E / g)`` in place of each exponential ``E`` (lattice step ``g``) the
        error moves by less than `lattice_widening` for sure, so adding it keeps the coverage.
        """
        return self.law.half_width(confidence) + self.lattice_widening

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval around `value`, clipped to the public range and so never wider.

        If all of it lies outside the range, the nearest end of the range, twice.
        """
        half_width = self.half_width(confidence)
        # Rounding of the ends goes outwards: coverage must not fall by it.
        low = math.nextafter(self.value - half_width, -math.inf) if half_width else self.value
        high = math.nextafter(self.value + half_width, math.inf) if half_width else self.value
        return self._clipped(low), self._clipped(high)

    def probability(self, low: float = -math.inf, high: float = math.inf) -> float:
        """Probability that the truth lies in ``(low, high]``, to within twice the law's error.

        The public range plays no part, and neither does the lattice: this is the continuous law
        of the noise. A `high` below `low` is refused.
        """
        if not low <= high:
            raise ValueError(f"the range ({low}, {high}] is empty")
        return min(max(self.exceeds(low) - self.exceeds(high), 0.0), 1.0)

    def exceeds(self, threshold: float) -> float:
        """Probability that the truth is greater than `threshold`; see `probability`."""
        # truth > threshold iff X < value - threshold iff -X > threshold - value, and -X is like X.
        return self.law.tail(threshold - self.value)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the truth about `value`, from the scales alone."""
        return standard_deviation(self.law.scales)

    def pmf(self, step: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The posterior as a histogram, for plotting.

        Parameters
        ----------
        step : float
            Width of a bin, in units of the answer.

        Returns
        -------
        (points, masses)
            ``(2 n + 1,)`` each: the bins' centres, `value` in the middle, and the probability of
            each bin, from the Fourier series of the law whatever the law's own method. At most
            1e-12 of the mass lies beyond the ends.
        """
        indices, masses, _ = masses_on_grid(self.law.scales, step)
        return self.value + indices.astype(np.float64) * step, masses

    def _clipped(self, end: float) -> float:
        return min(max(end, self.low), self.high)


RowEstimate = Posterior | NotEstimable


def widest(rows: Sequence[RowEstimate], confidence: float) -> float:
    """The largest half-width among rows; infinite if any of them is not estimable."""
    return max(
        (row.half_width(confidence) if isinstance(row, Posterior) else math.inf for row in rows),
        default=0.0,
    )


def narrowest(
    first: Sequence[RowEstimate], second: Sequence[RowEstimate], confidence: float
) -> tuple[RowEstimate, ...]:
    """Row by row, the narrower of two estimates."""
    return tuple(
        min(rows, key=lambda row: widest((row,), confidence))
        for rows in zip(first, second, strict=True)
    )
