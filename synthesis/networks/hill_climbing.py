"""Hill climbing: the arc whose change helps most, until none does.

Finds a graph that no single change makes better, for any number of columns. `exact_search` finds
the best of all, for a few.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from synthesis.networks.graph import Dag
from synthesis.networks.score import BicScore

GAIN_MIN: Final = 1e-9  # less is rounding: equally good graphs would take turns for ever

ParentSets: TypeAlias = list[frozenset[int]]  # of each column, by places
Step: TypeAlias = dict[int, frozenset[int]]  # the parents of the columns that a change is about


@dataclass(frozen=True, slots=True)
class Climb:
    """A graph that no single change of an arc makes better, and the way to it.

    Parameters
    ----------
    dag : Dag
    scores : tuple of float
        Of each graph on the way, from the first to this one; they only rise.
    """

    dag: Dag
    scores: tuple[float, ...]


def hill_climbed(score: BicScore, start: Dag | None = None) -> Climb:
    """Add, delete or reverse the arc that raises the score most, until none does.

    Parameters
    ----------
    score : BicScore
    start : Dag, optional
        Where to begin; without one, with no arcs.

    Raises
    ------
    ValueError
        If `start` has other columns, or parents that the score does not allow.
    """
    names = [one.name for one in score.columns]
    start = Dag(tuple(names)) if start is None else start
    parents = _parent_sets(start, names)
    if not all(score.may_have(child, own) for child, own in enumerate(parents)):
        raise ValueError(f"a column has more than {score.degree} parents, or too large a table")
    scores = [score.total(start)]
    while True:
        best, gain = _best_step(score, parents)
        if gain <= GAIN_MIN:
            return Climb(Dag.of_parents(names, parents), tuple(scores))
        for child, own in best.items():
            parents[child] = own
        scores.append(scores[-1] + gain)


def _parent_sets(dag: Dag, names: list[str]) -> ParentSets:
    if list(dag.columns) != names:
        raise ValueError(f"the graph is about {dag.columns}, the tables about {names}")
    return [frozenset(names.index(one) for one in dag.parents(name)) for name in names]


def _best_step(score: BicScore, parents: ParentSets) -> tuple[Step, float]:
    """The first of the best changes, and what it adds to the score."""
    best: Step = {}
    most = 0.0
    for step in _steps(score, parents):
        gain = sum(
            score.local(child, own) - score.local(child, parents[child])
            for child, own in step.items()
        )
        if gain > most:
            best, most = step, gain
    return best, most


def _steps(score: BicScore, parents: ParentSets) -> Iterator[Step]:
    """Every change of one arc that leaves a graph within the bounds, without a cycle."""
    ancestors = _ancestors(parents)
    for child, own in enumerate(parents):
        for other in range(len(parents)):
            if other == child:
                continue
            if other in own:
                yield {child: own - {other}}
                turned = parents[other] | {child}
                # Reversed, the arc closes a circle if there is another way from it to the child.
                is_way = any(other == one or other in ancestors[one] for one in own - {other})
                if not is_way and score.may_have(other, turned):
                    yield {child: own - {other}, other: turned}
            elif child not in ancestors[other] and score.may_have(child, own | {other}):
                yield {child: own | {other}}


def _ancestors(parents: ParentSets) -> list[frozenset[int]]:
    """The columns from which there is a way to each."""
    found: dict[int, frozenset[int]] = {}

    def of(place: int) -> frozenset[int]:
        if place not in found:
            found[place] = parents[place].union(*(of(one) for one in parents[place]))
        return found[place]

    return [of(place) for place in range(len(parents))]
