"""Estimates linear queries of one combination's shares, with the law of the error.

The law of the error is exact where answers are few, and normal where they are many.

There are three laws, and each names itself:

- *binomial*: an answer counts for the query or does not, so the count is binomial. Its interval is
  the Clopper-Pearson interval, mapped from rates to values: never below its confidence.
- *bounded*: an answer adds something of a known range; Hoeffding's bound by relative entropy
  holds for any number of answers, and is wide.
- *normal*: with so many answers that the law of their mean is near enough.

The first two say that the truth is further off than `z` with probability at most `tail(z)`, which
is what an interval needs; their intervals are not symmetric.

The argument is in `proofs/estimates.md`.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from cube.pace import checkpoint
from inference.noise_law import NoiseLaw, law_of_noise
from local_dp.channels import Floats, LocalHashing, RandomisedResponse
from local_dp.estimates.shares import TableEstimate, Tally

N_HALVINGS = 60
ROUNDING = 2.0**-40  # by which half-widths are increased, far more than the error of a quantile


class IntervalMethod(StrEnum):
    """How an interval was computed."""

    BINOMIAL = "binomial"
    BOUNDED = "bounded"
    NORMAL = "normal"


@dataclass(frozen=True, slots=True, eq=False)
class BinomialLaw:
    """The error of ``offset + slope * count / n``, for a count that is binomial.

    Parameters
    ----------
    count, n : int
    slope : float
        Not 0.
    """

    count: int
    n: int
    slope: float

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.n or self.n < 1 or self.slope == 0:
            raise ValueError("count must be from 0 to n, n at least 1, and slope not 0")

    @property
    def scales(self) -> NDArray[np.float64]:
        """There are no Laplace variables."""
        return np.empty(0)

    @property
    def gaussian(self) -> float:
        """The deviation at a rate that is never 0 or 1."""
        rate = (self.count + 0.5) / (self.n + 1)
        return abs(self.slope) * math.sqrt(rate * (1 - rate) / self.n)

    @property
    def tail_error(self) -> float:
        """One incomplete beta function, rounded."""
        return 2.0**-40

    def tail(self, z: float) -> float:
        """The probability of so extreme a count at the truth that `z` leads to.

        At most so probable is an error beyond `z` from 0 on; below 0, at least so probable.
        """
        if math.isnan(z):
            raise ValueError("the argument of a tail must be a number, not NaN")
        rate = self.count / self.n - z / self.slope
        if not 0 <= rate <= 1:  # no rate is there, nor beyond
            return float(z < 0)
        as_high, higher = (
            _at_least(self.count, self.n, rate),
            _at_least(self.count + 1, self.n, rate),
        )
        if self.slope > 0:
            return as_high if z >= 0 else higher
        return 1 - higher if z >= 0 else 1 - as_high

    def ends(self, confidence: float) -> tuple[float, float]:
        """How far the truth may be below and above the estimate."""
        beyond = _beyond(confidence)
        rate = self.count / self.n
        low = float(betaincinv(self.count, self.n - self.count + 1, beyond)) if self.count else 0.0
        high = 1.0
        if self.count < self.n:
            high = float(betaincinv(self.count + 1, self.n - self.count, 1 - beyond))
        below, above = (rate - low) * abs(self.slope), (high - rate) * abs(self.slope)
        return _widened((below, above) if self.slope > 0 else (above, below))

    def half_width(self, confidence: float) -> float:
        """The farther of the two ends."""
        return max(self.ends(confidence))


@dataclass(frozen=True, slots=True, eq=False)
class BoundedLaw:
    """The error of a mean of `n` independent answers that lie in a range.

    Parameters
    ----------
    place : float
        Where in the range the mean is, from 0 to 1.
    n : int
    width : float
        The length of the range of one answer's value.
    deviation : float
        A plausible standard deviation of the mean, for those who ask for one.
    """

    place: float
    n: int
    width: float
    deviation: float

    def __post_init__(self) -> None:
        if not 0 <= self.place <= 1 or self.n < 1 or not 0 < self.width < math.inf:
            raise ValueError(
                "place must be from 0 to 1, n at least 1, and width positive and finite"
            )

    @property
    def scales(self) -> NDArray[np.float64]:
        """There are no Laplace variables."""
        return np.empty(0)

    @property
    def gaussian(self) -> float:
        """The plausible deviation."""
        return self.deviation

    @property
    def tail_error(self) -> float:
        """Logarithms, rounded."""
        return 2.0**-40

    def tail(self, z: float) -> float:
        """``exp(-n KL)``, at most 1."""
        if math.isnan(z):
            raise ValueError("the argument of a tail must be a number, not NaN")
        if z <= 0:
            return 1.0
        return math.exp(-self.n * _relative_entropy(self.place, self.place - z / self.width))

    def ends(self, confidence: float) -> tuple[float, float]:
        """How far the truth may be below and above the estimate."""
        enough = -math.log(_beyond(confidence)) / self.n
        below = _reach(self.place, enough) * self.width
        return _widened((below, _reach(1 - self.place, enough) * self.width))

    def half_width(self, confidence: float) -> float:
        """The farther of the two ends."""
        return max(self.ends(confidence))


def normal_law(deviation: float) -> NoiseLaw:
    """The normal law, as that of other estimates with Gaussian noise."""
    return law_of_noise(np.empty(0), gaussian=deviation)


def ends_of(law: NoiseLaw, confidence: float) -> tuple[float, float]:
    """How far the truth may be below and above an estimate with this law."""
    if isinstance(law, BinomialLaw | BoundedLaw):
        return law.ends(confidence)
    return (law.half_width(confidence),) * 2


def _at_least(count: int, n: int, rate: float) -> float:
    """``Pr(Bin(n, rate) >= count)``."""
    if count <= 0 or count > n:
        return float(count <= 0)
    return float(betainc(count, n - count + 1, rate))


def _beyond(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, not {confidence}")
    return (1 - confidence) / 2


def _widened(ends: tuple[float, float]) -> tuple[float, float]:
    return ends[0] * (1 + ROUNDING), ends[1] * (1 + ROUNDING)


def _relative_entropy(seen: float, truth: float) -> float:
    """Of a coin with the rate that was seen, from one with another."""
    if not 0 < truth < 1:
        return 0.0 if truth == seen else math.inf
    parts = ((seen, truth), (1 - seen, 1 - truth))
    return sum(one * math.log(one / other) for one, other in parts if one > 0)


def _reach(place: float, enough: float) -> float:
    """How far below `place` the relative entropy is still below `enough`; rounded away from it."""
    low, high = 0.0, place
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        if _relative_entropy(place, middle) > enough:
            low = middle
        else:
            high = middle
    return place - low


# Variances cubed over third moments squared, which of a rare count is the count: from here on the
# normal law is near (Berry and Esseen: off by less than .56 / sqrt(100) = .06, mostly far less).
ENOUGH = 100.0
TWO = 2


@dataclass(frozen=True, slots=True, eq=False)
class CollectedAnswer:
    """The estimate of a linear query.

    Parameters
    ----------
    value : float
    law : NoiseLaw
        The law of the estimate minus the truth.
    method : IntervalMethod
        Which of the laws it is.
    """

    value: float
    law: NoiseLaw
    method: IntervalMethod

    def interval(self, confidence: float) -> tuple[float, float]:
        """Contains the truth with this probability, or about."""
        below, above = ends_of(self.law, confidence)
        return self.value - below, self.value + above


def answers(
    estimate: TableEstimate, coefficients: Floats, *, scale: float = 1.0
) -> list[CollectedAnswer]:
    """Linear queries of a combination's shares.

    Parameters
    ----------
    estimate : TableEstimate
    coefficients : (n_cells, n_queries) ndarray
    scale : float
        By which shares are multiplied: the number of respondents, for counts.
    """
    values = scale * (estimate.shares @ coefficients)
    of_shares, thirds = estimate.moments(coefficients)
    variances, enough = scale**2 * of_shares, are_enough(of_shares, thirds)
    found = []
    for place, value in enumerate(values.tolist()):
        checkpoint()
        column = scale * coefficients[:, place]
        if np.ptp(column) == 0:  # shares add up to 1: nothing is uncertain
            found.append(known(float(column[0])))
        elif enough[place]:
            law = normal_law(float(np.sqrt(variances[place])))
            found.append(CollectedAnswer(value, law, IntervalMethod.NORMAL))
        else:
            found.append(_from_few(estimate, column, value, float(variances[place])))
    return found


def known(value: float) -> CollectedAnswer:
    """What needs no estimate."""
    return CollectedAnswer(value, normal_law(0.0), IntervalMethod.NORMAL)


def are_enough(variances: Floats, thirds: Floats) -> NDArray[np.bool_]:
    """For each query, whether answers are so many that the law of their mean is near the normal."""
    return np.asarray(variances**3 >= ENOUGH * thirds**2)


def _from_few(
    estimate: TableEstimate, column: Floats, value: float, variance: float
) -> CollectedAnswer:
    if len(estimate.blocks) == 1:
        counted = _binomial(estimate.blocks[0], column)
        if counted is not None:
            return counted
    return _bounded(estimate, column, value, variance)


def _binomial(tally: Tally, column: Floats) -> CollectedAnswer | None:
    """The answer to a query with two coefficients, if an answer counts for one of them or not."""
    levels = np.unique(column)
    if levels.size != TWO:
        return None
    low, high = levels.tolist()
    inside = column == high
    channel, n = tally.channel, tally.n_answers
    if isinstance(channel, RandomisedResponse):
        count = int(tally.counts[inside].sum())
        weights = np.array(channel.weights, dtype=np.float64)
        floor = float(1 - channel.keep) * float(weights[inside].sum() / weights.sum())
        signal = float(channel.keep)
    else:
        if inside.sum() > 1:
            low, high, inside = high, low, ~inside
        if inside.sum() != 1:
            return None
        cell = int(np.flatnonzero(inside)[0])
        if isinstance(channel, LocalHashing):
            count = round(float(tally.supports[cell]))
            floor = 1 / channel.n_buckets
            signal = float(channel.keep) * (1 - floor)
        else:
            count, floor = int(tally.counts[cell]), float(channel.noise)
            signal = 0.5 - floor
    value = low + (high - low) * (count / n - floor) / signal
    law = BinomialLaw(count, n, (high - low) / signal)
    return CollectedAnswer(value, law, IntervalMethod.BINOMIAL)


def _bounded(
    estimate: TableEstimate, column: Floats, value: float, variance: float
) -> CollectedAnswer:
    """Each answer adds to the value what lies in a known range, the widest of all blocks'."""
    middle, n, ends = 0.0, estimate.n_answers, []
    for weight, block in zip(estimate.weights, estimate.blocks, strict=True):
        parts = block.channel.contributions(column[:, np.newaxis])[:, 0]
        constant = float(block.channel.constants(column[:, np.newaxis])[0])
        each = weight / block.n_answers * n
        if block.channel.is_categorical:
            low, high = float(parts.min()), float(parts.max())
        else:
            low, high = float(np.minimum(parts, 0).sum()), float(np.maximum(parts, 0).sum())
        middle += weight * constant
        ends.append((each * low, each * high))
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    width = most - least
    place = min(1.0, max(0.0, (value - middle - least) / width))
    law = BoundedLaw(place, n, width, float(np.sqrt(variance)))
    return CollectedAnswer(value, law, IntervalMethod.BOUNDED)
