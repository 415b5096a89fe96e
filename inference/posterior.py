"""What an estimate says about the truth: ``truth = value - X``, with ``X`` the law of the noise.

This is the pivotal law of Xiao & Xiong 2012 (Theorem 4.1): the posterior under a flat prior given
the estimate alone. In repeated use its intervals cover the truth with their confidence, for a query
that is chosen without looking at the noisy values.

No prior is used. A publicly known range clips the intervals of values that lie in it, and changes
nothing else (`ends_about`).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inference.error_terms import NO_TERMS, ErrorTerms
from inference.noise_law import NoiseLaw, masses_on_grid, standard_deviation


@dataclass(frozen=True, slots=True)
class NotEstimable:
    """The history does not determine the query; `reason` says why."""

    reason: str

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError("a query that is not estimable needs a reason")


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
        A certain bound on what lattice noise, in place of continuous noise, can add to the error:
        the sum over the rows of ``|A_k|`` times `Measurement.lattice_widening`. Every half-width
        includes it.
    low, high : float
        The public range of the truth; the interval of a value that lies in it is clipped to it.
    terms : ErrorTerms
        The noises that make up ``value - truth``. Needed only for the joint law of several answers.

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
            raise ValueError(f"an estimate must be a finite number, not {self.value}")
        if not (math.isfinite(self.lattice_widening) and self.lattice_widening >= 0):
            raise ValueError(f"lattice_widening must not be negative, got {self.lattice_widening}")
        if not self.low <= self.high:
            raise ValueError(f"the public range [{self.low}, {self.high}] is empty")

    def half_width(self, confidence: float) -> float:
        """Half the width of the unclipped interval: ``Pr(|truth - value| <= it) >= confidence``.

        With noise ``g floor(E / g)`` in place of each exponential ``E`` (lattice step ``g``), the
        error always moves by less than `lattice_widening`, so adding it keeps the coverage. A
        Gaussian variable on the lattice is within ``g`` of a continuous one too: its distribution
        function lies between the one of the continuous variable ``g`` lower and ``g`` higher
        (``noise_law/gaussian.md``).
        """
        return self.law.half_width(confidence) + self.lattice_widening

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval around `value`, clipped to the public range if `value` is in it."""
        low, high = ends_about(self.value, self.half_width(confidence), self.low, self.high)
        return float(low), float(high)

    def probability(self, low: float = -math.inf, high: float = math.inf) -> float:
        """Probability that the truth lies in ``(low, high]``, to within twice the law's error.

        Neither the public range nor the lattice is taken into account: this is the continuous law
        of the noise. A `high` below `low` is an error.
        """
        if not low <= high:
            raise ValueError(f"the range ({low}, {high}] is empty")
        return min(max(self.exceeds(low) - self.exceeds(high), 0.0), 1.0)

    def exceeds(self, threshold: float) -> float:
        """Probability that the truth is greater than `threshold`; see `probability`."""
        # truth > threshold iff X < value - threshold iff -X > threshold - value; -X has X's law.
        return self.law.tail(threshold - self.value)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the truth about `value`, from the sizes of the noises alone."""
        return standard_deviation(self.law.scales, self.law.gaussian)

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
            each bin, always from the Fourier series, whatever the method of the law. At most
            1e-12 of the mass lies beyond the ends.
        """
        indices, masses, _ = masses_on_grid(self.law.scales, step, gaussian=self.law.gaussian)
        return self.value + indices.astype(np.float64) * step, masses


def ends_about(
    values: ArrayLike, half_widths: ArrayLike, low: ArrayLike, high: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The ends of intervals about values: a value and its interval are cut to a range, or neither.

    Parameters
    ----------
    values, half_widths : array_like
        A half-width of 0 belongs to a value that is known exactly.
    low, high : array_like
        The public range of the truth.

    Returns
    -------
    (ndarray, ndarray)
        The lower and the upper ends. A value is always between its own.

    Notes
    -----
    An unbiased estimate may be outside of the range. Then its interval is not cut: cut, it would
    not contain the estimate, and would often be one point, which reads as certainty. The truth is
    in the range, so cutting the interval of a value in the range takes nothing from its coverage.

    Examples
    --------
    >>> low, high = ends_about([30.0, -30.0], 50.0, 0.0, 1000.0)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, -80.0], [80.0, 20.0])
    """
    values, half_widths = np.asarray(values, np.float64), np.asarray(half_widths, np.float64)
    is_exact = half_widths == 0
    # The ends are rounded outwards, so that rounding does not reduce the coverage.
    below = np.where(is_exact, values, np.nextafter(values - half_widths, -np.inf))
    above = np.where(is_exact, values, np.nextafter(values + half_widths, np.inf))
    is_possible = (values >= low) & (values <= high)
    return (
        np.where(is_possible, np.clip(below, low, high), below),
        np.where(is_possible, np.clip(above, low, high), above),
    )


RowEstimate = Posterior | NotEstimable
