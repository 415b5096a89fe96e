"""The best single number to report for a noisy count, given a user's prior and loss function.

One noisy count serves everybody. A user with a prior over the true count, and a loss for missing
it, computes the best report from their posterior: post-processing, which costs nothing and changes
nothing for others. For one count query this is as good as a mechanism made for that user alone.

A prior comes from the user, never from data, and no interval becomes narrower because of it.
"""

import bisect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from inference.posterior import Posterior

Floats = NDArray[np.float64]

SUM_TOLERANCE = 1e-9
LEAST_EVIDENCE = 1e-9  # the tails of a law of several noises are accurate to about 1e-12
EXPONENT_MAX = 16
N_POINTS_MAX: Final = 10_000  # of a prior: each is evaluated separately
N_COUNTS_MAX: Final = 1_000_000  # the largest count that a prior may name
# Two reports are equally good if their expected losses differ by no more than rounding.
TIE_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """``|truth - report| ** exponent``: 1 for the absolute error, 2 for the squared one.

    Parameters
    ----------
    exponent : float
        At least 1, so that the loss is convex; below 1, use a `LossTable`. At most 16, so that the
        losses do not overflow.
    """

    exponent: float

    def __post_init__(self) -> None:
        if not 1 <= self.exponent <= EXPONENT_MAX:
            raise ValueError(
                f"the exponent of a loss must lie in [1, {EXPONENT_MAX}], not {self.exponent}"
            )


@dataclass(frozen=True, slots=True)
class ZeroOneLoss:
    """1 for every report but the truth."""


@dataclass(frozen=True, slots=True, eq=False)
class LossTable:
    """Any loss.

    Parameters
    ----------
    losses : (n + 1, n + 1) ndarray of float64
        ``losses[truth, report]``.

    Notes
    -----
    The report is the best for any loss. That no other mechanism of the same cost could do better
    holds only for losses that never fall as ``|truth - report|`` grows.
    """

    losses: Floats

    def __post_init__(self) -> None:
        own = np.array(self.losses, dtype=np.float64)
        if own.ndim != 2 or own.shape[0] != own.shape[1]:  # noqa: PLR2004 - truth and report
            raise ValueError(f"a table of losses must be square, not of shape {own.shape}")
        if not np.isfinite(own).all():
            raise ValueError("losses must be finite")
        own.setflags(write=False)
        object.__setattr__(self, "losses", own)


Loss = PowerLoss | ZeroOneLoss | LossTable


@dataclass(frozen=True, slots=True)
class CountPrior:
    """A prior over a true count; counts that it does not name have probability 0.

    Parameters
    ----------
    counts : tuple of int
        In rising order, from 0 to `N_COUNTS_MAX`; at most `N_POINTS_MAX` of them.
    probabilities : tuple of float
        They sum to 1.

    Raises
    ------
    ValueError
        If it is no law over such counts.
    """

    counts: tuple[int, ...]
    probabilities: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.counts) == len(self.probabilities) <= N_POINTS_MAX:
            raise ValueError(f"a prior has 1 to {N_POINTS_MAX} counts, each with a probability")
        if self.counts[0] < 0 or self.counts[-1] > N_COUNTS_MAX:
            raise ValueError(f"a prior names counts from 0 to {N_COUNTS_MAX}")
        if any(one >= other for one, other in zip(self.counts, self.counts[1:], strict=False)):
            raise ValueError("a prior names each count once, in rising order")
        _probabilities(np.array(self.probabilities), "a prior")

    @classmethod
    def of_weights(cls, weights: Mapping[int, float]) -> Self:
        """The prior whose probabilities are proportional to some weights.

        >>> CountPrior.of_weights({9: 1, 3: 3})
        CountPrior(counts=(3, 9), probabilities=(0.75, 0.25))

        Raises
        ------
        ValueError
            If a weight is negative or not finite, or all are 0.
        """
        total = math.fsum(weights.values())
        if not 0 < total < math.inf or min(weights.values()) < 0:
            raise ValueError("the weights of a prior must not be negative, and not all 0")
        counts = tuple(sorted(weights))
        return cls(counts, tuple(weights[one] / total for one in counts))

    @property
    def masses(self) -> Floats:
        """The probability of each count from 0 to the largest one, (n + 1,)."""
        found = np.zeros(self.counts[-1] + 1)
        found[list(self.counts)] = self.probabilities
        return found


@dataclass(frozen=True, slots=True)
class BestReport:
    """The best report, and its expected loss under the posterior."""

    value: int
    expected_loss: float


@dataclass(frozen=True, slots=True)
class CredibleInterval:
    """The counts from `low` to `high`, and their probability under the posterior."""

    low: int
    high: int
    probability: float


def count_posterior(released: float, *, noise_scale: float, prior: Floats) -> Floats:
    """The law of a true count, given its release with discrete Laplace noise.

    Parameters
    ----------
    released : float
        The noisy count: a whole number or a point of a finer lattice, clamped to ``0..n`` or not.
    noise_scale : float
        The scale ``b`` of the noise (`Measurement.noise_scale`): ``Pr(noise = z)`` is proportional
        to ``exp(-|z| / b)``.
    prior : (n + 1,) ndarray of float64
        The prior probabilities of the true counts 0, 1, ..., n; ``n`` is public.

    Returns
    -------
    (n + 1,) ndarray of float64

    Raises
    ------
    ValueError
        If the prior does not sum to 1, or an argument is out of its range.

    Notes
    -----
    For ``r`` in ``0..n``, clamped or not, ``Pr(r | i)`` is ``exp(-|r - i| / b)`` times a factor
    that does not depend on ``i``. An ``r`` beyond an end gives the same posterior as that end. So
    one formula serves both cases, and clamping loses nothing.
    """
    prior = _probabilities(prior, "a prior")
    if not 0 < noise_scale < math.inf:
        raise ValueError(f"a noise scale must be positive and finite, not {noise_scale}")
    if not math.isfinite(released):
        raise ValueError(f"a noisy count must be a finite number, not {released}")
    nearest = min(max(released, 0.0), float(prior.size - 1))
    (counts,) = np.nonzero(prior)
    found = np.zeros(prior.size)
    found[counts] = _by_density(nearest, counts.astype(np.float64), prior[counts], noise_scale, 0.0)
    return found


def posterior_under(estimate: Posterior, prior: Floats) -> Floats:
    """The law of a true count, given an estimate from one or several measurements.

    Parameters
    ----------
    estimate : Posterior
    prior : (n + 1,) ndarray of float64
        The prior probabilities of the true counts 0, 1, ..., n; ``n`` is public.

    Returns
    -------
    (n + 1,) ndarray of float64

    Notes
    -----
    With one Laplace noise, this is `count_posterior`; with one Gaussian noise, its density takes
    the place of the Laplace one. With several, ``Pr(estimate | i)`` is approximated by the
    probability that the error is within a half of ``estimate - i``. If every count that the prior
    allows is so far away that this is rounding error, only the far tails of the error's law matter,
    and they fall as those of its largest scale and its Gaussian part.
    """
    prior = _probabilities(prior, "a prior")
    (counts,) = np.nonzero(prior)
    found = np.zeros(prior.size)
    found[counts] = law_under(estimate, counts.astype(np.float64), prior[counts])
    return found


def law_under(estimate: Posterior, counts: Floats, probabilities: Floats) -> Floats:
    """As `posterior_under`, for a prior over some counts.

    Parameters
    ----------
    estimate : Posterior
    counts, probabilities : (n_points,) ndarray of float64
        The counts that the prior allows, in rising order, and their probabilities, all above 0.

    Returns
    -------
    (n_points,) ndarray of float64
        The probability of each of these counts.

    Raises
    ------
    ValueError
        If the estimate has no noise.
    """
    scales, deviation = estimate.law.scales, estimate.law.gaussian
    if scales.size == 0 and deviation == 0:
        raise ValueError("an estimate without noise is exact and needs no remapping")
    largest = float(scales.max(initial=0.0))
    if scales.size == 1 and deviation == 0:
        nearest = min(max(estimate.value, 0.0), float(counts[-1]))
        return _by_density(nearest, counts, probabilities, largest, 0.0)
    if scales.size > 0:
        # Neighbouring counts share an end, so that each tail is computed once.
        ends = np.unique(np.concatenate([counts - 0.5, counts + 0.5]))
        above = np.array([estimate.exceeds(end) for end in ends])
        near = (
            above[np.searchsorted(ends, counts - 0.5)] - above[np.searchsorted(ends, counts + 0.5)]
        )
        weights = probabilities * np.clip(near, 0.0, 1.0)
        everything = float(weights.sum())
        if everything > LEAST_EVIDENCE:
            return np.asarray(weights / everything, dtype=np.float64)
    return _by_density(estimate.value, counts, probabilities, largest, deviation)


def _by_density(
    value: float, counts: Floats, probabilities: Floats, scale: float, deviation: float
) -> Floats:
    """The law of a true count, from the density of the error at its distance from each count.

    The error is a Laplace variable and a Gaussian one; a scale or a deviation of 0 is none.
    """
    # In logarithms: every count that the prior allows may be far from the value.
    logs = np.log(probabilities) + _log_density(np.abs(counts - value), scale, deviation)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _log_density(distances: Floats, scale: float, deviation: float) -> Floats:
    """The logarithm of the density of ``b L + sigma Z`` at some distances, up to a constant.

    With ``r = sigma / b`` and ``Q`` the normal tail, the density is
    ``exp(r**2 / 2) (exp(-z / b) Q(r - z / sigma) + exp(z / b) Q(r + z / sigma)) / 2 b``.
    """
    if deviation == 0:
        return -distances / scale
    if scale == 0:
        return -np.square(distances / deviation) / 2
    ratio, standard, slope = deviation / scale, distances / deviation, distances / scale
    near = log_ndtr(standard - ratio) - slope
    far = log_ndtr(-standard - ratio) + slope
    return np.asarray(np.logaddexp(near, far), dtype=np.float64)


def best_report(posterior: Floats, loss: Loss) -> BestReport:
    """The report of least expected loss.

    Parameters
    ----------
    posterior : (n + 1,) ndarray of float64
        The law of the true count: from `count_posterior`, or from `posterior_under` where a count
        is estimated from several measurements.
    loss : Loss

    Returns
    -------
    BestReport
        A count in ``0..n``; of equally good ones, the smallest.

    Raises
    ------
    ValueError
        If the posterior does not sum to 1, or a table of losses is for other counts.

    Notes
    -----
    The report for a released ``r`` is ``argmin_s sum_i prior_i Pr(r | i) loss(i, s)``. With it for
    every ``r``, the geometric mechanism is as good as any mechanism of the same epsilon, for every
    prior and every loss that never falls as the distance grows: Ghosh et al.'s theorem [1]_.

    References
    ----------
    .. [1] A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy
       Mechanisms", SIAM Journal on Computing 41, 2012.

    Examples
    --------
    A user who knows that the count is at least 3 does not report the released 1.

    >>> prior = np.array([0, 0, 0, 0.5, 0.25, 0.25])
    >>> best_report(count_posterior(1, noise_scale=2.0, prior=prior), PowerLoss(1)).value
    3
    """
    posterior = _probabilities(posterior, "a posterior")
    match loss:
        case PowerLoss() | ZeroOneLoss():
            (counts,) = np.nonzero(posterior)
            return best_of(counts.astype(np.float64), posterior[counts], loss)
        case LossTable():
            n_losses = loss.losses.shape[0]
            if n_losses != posterior.size:
                raise ValueError(
                    f"there are losses for {n_losses} counts, but the posterior has "
                    f"{posterior.size}"
                )
            return _least(posterior @ loss.losses, posterior @ np.abs(loss.losses))


def _probabilities(given: Floats, name: str) -> Floats:
    own = np.asarray(given, dtype=np.float64)
    if own.ndim != 1 or own.size == 0:
        raise ValueError(f"{name} must be a list of probabilities, not of shape {own.shape}")
    # One pass that fails on NaN and on negative numbers alike.
    if not bool((own >= 0).all()) or not abs(math.fsum(own) - 1) <= SUM_TOLERANCE:
        raise ValueError(f"{name} must not be negative and must sum to 1")
    return own


def best_of(counts: Floats, probabilities: Floats, loss: PowerLoss | ZeroOneLoss) -> BestReport:
    """As `best_report`, for a posterior over some counts.

    Parameters
    ----------
    counts, probabilities : (n_points,) ndarray of float64
        The counts that the posterior allows, in rising order, and their probabilities.
    loss : PowerLoss or ZeroOneLoss
    """
    if isinstance(loss, ZeroOneLoss):
        least = _least(1.0 - probabilities, 1.0 - probabilities)
        return BestReport(int(counts[least.value]), least.expected_loss)
    return _by_power(counts, probabilities, loss.exponent)


def _by_power(counts: Floats, weights: Floats, exponent: float) -> BestReport:
    """The best report for a convex loss: the first from which a larger one loses no less."""

    def next_loses_no_less(report: int) -> bool:
        rises = (
            np.abs(counts - report - 1.0) ** exponent - np.abs(counts - float(report)) ** exponent
        )
        return float(weights @ rises) >= -TIE_TOLERANCE * float(weights @ np.abs(rises))

    # No report below the least count or above the largest one is better than these.
    possible = range(int(counts[0]), int(counts[-1]))
    report = possible.start + bisect.bisect_left(possible, True, key=next_loses_no_less)
    return BestReport(report, float(weights @ np.abs(counts - float(report)) ** exponent))


def _least(expected: Floats, sizes: Floats) -> BestReport:
    """The first report whose expected loss is the least, up to the rounding of sums of `sizes`."""
    best = int(np.argmin(expected))
    room = TIE_TOLERANCE * float(sizes[best])
    report = int(np.argmax(expected <= float(expected[best]) + room))
    return BestReport(report, float(expected[report]))


def credible_interval(counts: Floats, probabilities: Floats, confidence: float) -> CredibleInterval:
    """The shortest interval of counts that has a probability under a posterior.

    Parameters
    ----------
    counts, probabilities : (n_points,) ndarray of float64
        The counts that the posterior allows, in rising order, and their probabilities.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    CredibleInterval
        Of equally short ones, the most probable; of these, the lowest. Its probability is at least
        the confidence, up to rounding in the sum.

    Raises
    ------
    ValueError
        If the confidence is not between 0 and 1.

    Notes
    -----
    It is true under the prior. If the prior is wrong, so may the interval be; the interval of the
    answer itself uses no prior.

    Examples
    --------
    >>> credible_interval(np.array([3.0, 4.0, 9.0]), np.array([0.5, 0.3, 0.2]), 0.75)
    CredibleInterval(low=3, high=4, probability=0.8)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence must be between 0 and 1, not {confidence}")
    up_to = np.concatenate([[0.0], np.cumsum(probabilities)])
    wanted = min(confidence, float(up_to[-1]) - SUM_TOLERANCE) - TIE_TOLERANCE
    # For each low end, the first high end with which the interval is probable enough.
    last = np.searchsorted(up_to[1:], up_to[:-1] + wanted)
    first = np.flatnonzero(last < counts.size)
    last = last[first]
    lengths, masses = counts[last] - counts[first], up_to[last + 1] - up_to[first]
    shortest = np.flatnonzero(lengths == lengths.min())
    best = shortest[np.argmax(masses[shortest] >= masses[shortest].max() - TIE_TOLERANCE)]
    probability = min(float(masses[best]), 1.0)
    return CredibleInterval(int(counts[first[best]]), int(counts[last[best]]), probability)
