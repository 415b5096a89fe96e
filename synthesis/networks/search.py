"""Searches for the best graph: exactly, by hill climbing, and among trees.

The best of all graphs, by dynamic programming over sets of columns.

For at most `N_COLUMNS_MAX` columns: time and memory double with each.

Hill climbing: the arc whose change helps most, until none does.

Finds a graph that no single change makes better, for any number of columns. `exact_search` finds
the best of all, for a few.

Chow-Liu: the tree, or the trees, of the pairs of columns that say most about each other.

Needs tables of two columns only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from synthesis.networks.graph import Dag
from synthesis.networks.score import BicScore
from synthesis.tables import Floats, Integers

N_COLUMNS_MAX: Final = 16  # 2**16 sets for each: 16 MB, a second; scores take longer (`work`)


class TooManyColumns(ValueError):
    """An exact search was asked for more columns than it can search."""


def best_network(score: BicScore) -> Dag:
    """A graph with the highest score of all, among those whose parents the score allows.

    Raises
    ------
    TooManyColumns
        If there are more than `N_COLUMNS_MAX` columns.

    Notes
    -----
    Some column of a graph has no children. The best graph over a set of columns is therefore the
    best one over all but such a column, with its best parents among them [1]_. For each column the
    best parents within every set of others come first, then the best last column of every set.

    Other graphs of the same equivalence class have the same score, so its directions mean no more
    than the class says (`graph.EquivalenceClass`).

    References
    ----------
    .. [1] T. Silander, P. Myllymaki, "A simple approach for finding the globally optimal Bayesian
       network structure", UAI 2006.
    """
    n_columns = len(score.columns)
    if n_columns > N_COLUMNS_MAX:
        raise TooManyColumns(
            f"{n_columns} columns are too many for an exact search: at most {N_COLUMNS_MAX}"
        )
    values, chosen = _best_parents(score)
    last = _last_columns(values)
    parents: list[list[int]] = [[] for _ in range(n_columns)]
    left = 2**n_columns - 1
    while left:
        child = int(last[left])
        left &= ~(1 << child)
        parents[child] = _members(int(chosen[child, left]))
    return Dag.of_parents([one.name for one in score.columns], parents)


def _best_parents(score: BicScore) -> tuple[Floats, Integers]:
    """For each column and each set of columns, the best score with parents in the set, and them.

    Sets are numbers, with a bit for each column. A column's own bit counts for nothing.
    """
    n_columns = len(score.columns)
    values = np.full((n_columns, 2**n_columns), -np.inf)
    chosen = np.zeros((n_columns, 2**n_columns), dtype=np.int64)
    for width in range(1, min(score.degree + 1, n_columns) + 1):
        for scope in combinations(range(n_columns), width):
            for child in scope:  # one after another, since they share a table
                own = [place for place in scope if place != child]
                if score.may_have(child, own):
                    among = sum(1 << place for place in own)
                    values[child, among] = score.local(child, own)
                    chosen[child, among] = among
    for bit in range(n_columns):
        # Each set beside the one that has this column as well: what is best without it may stay.
        split = (n_columns, -1, 2, 2**bit)
        value, best = values.reshape(split), chosen.reshape(split)
        is_better = value[:, :, 0] > value[:, :, 1]
        value[:, :, 1] = np.where(is_better, value[:, :, 0], value[:, :, 1])
        best[:, :, 1] = np.where(is_better, best[:, :, 0], best[:, :, 1])
    return values, chosen


def _last_columns(values: Floats) -> Integers:
    """A column without children of the best graph over each set of columns."""
    n_columns = len(values)
    sets = np.arange(2**n_columns)
    n_members = sum((sets >> place) & 1 for place in range(n_columns))
    best = np.full(2**n_columns, -np.inf)
    best[0] = 0.0
    last = np.zeros(2**n_columns, dtype=np.int64)
    for size in range(1, n_columns + 1):
        of_size = sets[n_members == size]
        for child in range(n_columns):
            ending = of_size[(of_size >> child) & 1 == 1]
            before = ending & ~(1 << child)
            total = best[before] + values[child, before]
            is_better = total > best[ending]
            best[ending[is_better]] = total[is_better]
            last[ending[is_better]] = child
    return last


def _members(among: int) -> list[int]:
    """The places in a set."""
    return [place for place in range(among.bit_length()) if among >> place & 1]


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
        The score of each graph on the way, from the first to this one; they only rise.
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
        raise ValueError(
            f"a column has more than {score.degree} parents, or its table is too large"
        )
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
        raise ValueError(f"the graph has the columns {dag.columns}, but the tables have {names}")
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


def pair_information(score: BicScore) -> Floats:
    """The mutual information of each pair of columns beyond what independent ones would show.

    Returns
    -------
    (n_columns, n_columns) ndarray of float64
        Symmetric, in nats; 0 on the diagonal, and for pairs whose table would be too large. It may
        be negative. What independent columns would show is taken off, because it grows with the
        number of cells and with noise: pairs of wide columns would come first for their width.
    """
    found = np.zeros((len(score.columns), len(score.columns)))
    for one, other in combinations(range(len(score.columns)), 2):
        if score.may_have(one, (other,)):
            seen = score.information(one, (other,))
            found[one, other] = found[other, one] = seen.found - seen.null
    return found


def chow_liu(score: BicScore) -> Dag:
    """The forest whose edges have the largest sum of `pair_information`, of edges that are arcs.

    Parameters
    ----------
    score : BicScore
        The score to maximise, of degree 1 or more.

    Returns
    -------
    Dag
        Each tree has its arcs away from its first column. No table tells a tree's directions apart,
        so another root would be as good.

    Notes
    -----
    The tree with the largest sum of mutual information is the most likely one [1]_; Kruskal's
    method finds it [2]_. A pair that the score likes no better than two columns alone is no edge,
    as it is no arc of the other methods, so columns without a visible dependence stay alone.

    References
    ----------
    .. [1] C. Chow, C. Liu, "Approximating discrete probability distributions with dependence
       trees", IEEE Transactions on Information Theory 14, 1968.
    .. [2] J. Kruskal, "On the shortest spanning subtree of a graph and the traveling salesman
       problem", Proceedings of the American Mathematical Society 7, 1956.
    """
    information = pair_information(score)
    n_columns = len(score.columns)
    pairs = sorted(combinations(range(n_columns), 2), key=lambda pair: -information[pair])
    tree = list(range(n_columns))  # the tree of each column, by the place of one of its columns
    neighbours: list[list[int]] = [[] for _ in range(n_columns)]
    for one, other in pairs:
        if tree[one] != tree[other] and _is_edge(score, one, other):
            joined, kept = tree[other], tree[one]
            tree = [kept if place == joined else place for place in tree]
            neighbours[one].append(other)
            neighbours[other].append(one)
    return Dag.of_parents([one.name for one in score.columns], _away_from_first(neighbours))


def _is_edge(score: BicScore, one: int, other: int) -> bool:
    return score.may_have(one, (other,)) and score.local(one, (other,)) > score.local(one, ())


def _away_from_first(neighbours: list[list[int]]) -> list[list[int]]:
    """The parent of each column of a forest, if its trees are walked from their first columns."""
    parents: list[list[int]] = [[] for _ in neighbours]
    seen: set[int] = set()
    for root in range(len(neighbours)):
        waiting = [] if root in seen else [root]
        seen.add(root)
        while waiting:
            here = waiting.pop()
            for other in neighbours[here]:
                if other not in seen:
                    seen.add(other)
                    parents[other].append(here)
                    waiting.append(other)
    return parents
