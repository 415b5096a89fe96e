"""The exponential mechanism, exactly: the private selection of one candidate of a choice.

Candidate `k` is chosen with probability proportional to ``exp(weight * score_k / (2 Delta))``, with
exact scores and their sensitivity Delta (scores.py). By rejection sampling: a candidate is proposed
uniformly and accepted with probability ``exp(-rate)``, where the rate is its distance from the best
score, in exact rationals; otherwise another is proposed. System entropy; there is no seed to pass.

Everything read, and every score, is a local of one call. Only the place of the candidate is
released.

Proof: proofs/choices.md, "The exponential mechanism".

References
----------
McSherry & Talwar 2007, "Mechanism Design via Differential Privacy", section 3.
"""

from collections.abc import Callable, Iterator, Sequence
from secrets import randbelow

import numpy as np

from accountant.exact.exact_answers import check_counts
from accountant.exact.scores import Contingency, grid_scores, sensitivity
from accountant.noise.exact_sampling import bernoulli_exp
from accountant.source import CellCounts
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Scope
from cube.schema import Schema
from cube.statistic import Choice, ChoiceCandidate


def chosen(
    choice: Choice, weight: Weight, read: Callable[[Scope], CellCounts], schema: Schema
) -> int:
    """The place of the chosen candidate.

    Parameters
    ----------
    choice : Choice
        Its views fit the schema.
    weight : Weight
        The weight that was paid.
    read : callable
        Returns the exact counts of a scope; called once for each scope.
    schema : Schema

    Raises
    ------
    ValueError
        If counts cannot be those of a table of the schema. The text reveals nothing of them.
    """
    scopes = [choice.scope(candidate) for candidate in choice.candidates]
    by_scope = sorted(range(len(scopes)), key=scopes.__getitem__)

    def tables() -> Iterator[Contingency]:
        """The candidates' tables, those of one scope together."""
        scope, counts = None, None
        for place in by_scope:
            if scope != scopes[place] or counts is None:
                scope, counts = scopes[place], read(scopes[place])
                check_counts(scope, counts, schema)
            yield _table(choice, choice.candidates[place], scope, counts)

    scores = dict(zip(by_scope, grid_scores(choice.score, tables()), strict=True))
    delta = sensitivity(choice.score, schema.n_records_max)
    return exponential([scores[place] for place in range(len(scores))], delta, weight)


def exponential(scores: Sequence[int], delta: int, weight: Weight) -> int:
    """A place, with probability proportional to ``exp(weight * score / (2 * delta))``.

    Notes
    -----
    The best is accepted whenever it is proposed, so that on average there are at most as many
    proposals as scores.
    """
    best = max(scores)
    denominator = 2 * delta * UNITS_PER_EPSILON
    while True:
        place = randbelow(len(scores))
        if _survives(weight.units * (best - scores[place]), denominator):
            return place


def _survives(numerator: int, denominator: int) -> bool:
    """True with probability ``exp(-numerator / denominator)``."""
    n_whole, rest = divmod(numerator, denominator)
    return all(bernoulli_exp(1, 1) for _ in range(n_whole)) and bernoulli_exp(rest, denominator)


def _table(
    choice: Choice, candidate: ChoiceCandidate, scope: Scope, counts: CellCounts
) -> Contingency:
    """A candidate's contingency table, from the counts of its scope."""

    def classes(place: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        view = choice.views[place]
        return view.labels[counts.levels[scope.index(view.axes[0])]]

    parents = [(classes(place), choice.views[place].n_groups) for place in candidate.parents]
    return Contingency.of(classes(candidate.child), parents, counts.counts)
