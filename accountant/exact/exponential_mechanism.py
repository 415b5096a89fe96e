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

from accountant.exact.counted_together import grouping_of_views
from accountant.exact.exact_answers import check_counts
from accountant.exact.read_together import read_together
from accountant.exact.scores import Contingency, grid_scores, sensitivity
from accountant.grouping import Grouping
from accountant.noise.exact_sampling import bernoulli_exp
from accountant.source import CellCounts
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Scope
from cube.schema import Schema
from cube.statistic import Choice, ChoiceCandidate


def chosen(
    choice: Choice, weight: Weight, read: Callable[[Grouping], CellCounts], schema: Schema
) -> int:
    """The place of the chosen candidate.

    Parameters
    ----------
    choice : Choice
        Its views fit the schema.
    weight : Weight
        The weight that was paid.
    read : callable
        Returns the exact counts of a scope's cells; called once for each union of scopes that
        are read together.
    schema : Schema

    Raises
    ------
    ValueError
        If counts cannot be those of a table of the schema. The text reveals nothing of them.
    """
    together = _read_together(choice, schema)
    order = [place for places in together.values() for place in places]

    def tables() -> Iterator[Contingency]:
        """The candidates' tables, those of one read together."""
        for scope, places in together.items():
            counts = read(grouping_of_views(choice, scope, schema))
            check_counts(scope, counts, schema)
            yield from _tables(
                choice, [choice.candidates[place] for place in places], scope, counts
            )

    scores = dict(zip(order, grid_scores(choice.score, tables()), strict=True))
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


def _read_together(choice: Choice, schema: Schema) -> dict[Scope, list[int]]:
    """What is read, and the places of the candidates whose tables follow from it."""
    scopes = [choice.scope(candidate) for candidate in choice.candidates]
    sizes = {axis.name: axis.size for axis in schema.axes}
    wider = read_together(scopes, sizes)
    places: dict[Scope, list[int]] = {}
    for place, scope in enumerate(scopes):
        places.setdefault(wider[scope], []).append(place)
    return places


def _tables(
    choice: Choice, candidates: Sequence[ChoiceCandidate], scope: Scope, counts: CellCounts
) -> Iterator[Contingency]:
    """Candidates' contingency tables, from the counts of a scope with all of their axes."""
    used = {place for one in candidates for place in (one.child, *one.parents)}
    classes = {
        place: view.labels[counts.levels[scope.index(view.axes[0])]]
        for place, view in ((place, choice.views[place]) for place in used)
    }
    for one in candidates:
        parents = [(classes[place], choice.views[place].n_groups) for place in one.parents]
        yield Contingency.of(classes[one.child], parents, counts.counts)
