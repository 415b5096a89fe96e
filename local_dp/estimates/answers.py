"""Linear queries of one combination's shares: a value, and the law that suits the counts.

The argument is in `proofs/estimates.md`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint
from inference.noise_law.law import NoiseLaw
from local_dp.channels.channel import Floats
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.estimates.inversion import TableEstimate
from local_dp.estimates.laws import (
    BinomialLaw,
    BoundedLaw,
    IntervalMethod,
    ends_of,
    normal_law,
)
from local_dp.estimates.tally import Tally

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
        Of estimate less truth.
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
