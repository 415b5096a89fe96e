"""The best reports of counts under a user's belief, by the laws of their noise.

Post-processing: it reads estimates, and gives whole numbers and intervals under the user's own
prior. It costs nothing, and nothing that is bought or promised depends on it.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from cube.pace import checkpoint
from inference import (
    CountPrior,
    Floats,
    LossTable,
    Posterior,
    best_of,
    best_report,
    credible_interval,
    law_under,
)
from planner.belief import Belief, PriorSelect
from proxy.api import ReportedCount
from proxy.engine.answers.results import AnsweredPart

N_AT_ONCE: Final = 2**12  # counts between looks at the clock


def reported(estimate: Posterior, belief: Belief, confidence: float) -> ReportedCount:
    """The best report for one estimate.

    Parameters
    ----------
    estimate : Posterior
        Of the count, in records.
    belief : Belief
        With a prior that is known.
    confidence : float
        Of the interval under the prior.
    """
    prior = _known(belief)
    counts, weights = _possible(prior)
    law = law_under(estimate, counts, weights)
    if isinstance(belief.loss, LossTable):
        masses = np.zeros(prior.counts[-1] + 1)
        masses[counts.astype(np.int64)] = law
        best = best_report(masses, belief.loss)
    else:
        best = best_of(counts, law, belief.loss)
    held = credible_interval(counts, law, confidence)
    return ReportedCount(
        value=best.value,
        expected_loss=best.expected_loss,
        answer=estimate.value,
        low=held.low,
        high=held.high,
        confidence=confidence,
        probability=held.probability,
    )


def best_values(answered: AnsweredPart, answer: int, belief: Belief) -> Sequence[int | None]:
    """The best report in each row of a part, for an answer that is a count.

    Parameters
    ----------
    answered : AnsweredPart
    answer : int
        The position of the answer.
    belief : Belief
        With a prior that is known, and a loss that has a name.

    Returns
    -------
    sequence of int, optional
        One for each row, in records; None where the law of the error is not known. A count that is
        public is itself.
    """
    if not answered.has_laws:
        return [None] * answered.part.n_rows
    if isinstance(belief.loss, LossTable):
        raise TypeError("a table of losses belongs to a single count")
    counts, weights = _possible(_known(belief))
    found: list[int | None] = []
    every = max(1, N_AT_ONCE // belief.work)
    for place, one in enumerate(answered.answers[answer].posteriors):
        if place % every == 0:
            checkpoint()
        scales, deviation = one.law.scales, one.law.gaussian
        if not (np.isfinite(scales).all() and math.isfinite(deviation)):
            found.append(None)
        elif scales.size == 0 and deviation == 0:
            found.append(round(one.value))
        else:
            found.append(best_of(counts, law_under(one, counts, weights), belief.loss).value)
    return found


def _known(belief: Belief) -> CountPrior:
    if isinstance(belief.prior, PriorSelect):
        raise TypeError("the SELECT of a prior is answered before a report is computed")
    return belief.prior


def _possible(prior: CountPrior) -> tuple[Floats, Floats]:
    """The counts that a prior allows, and their probabilities, (n_points,) each."""
    counts, weights = np.array(prior.counts, np.float64), np.array(prior.probabilities)
    return counts[weights > 0], weights[weights > 0]
