"""Chow-Liu: the tree, or the trees, of the pairs of columns that say most about each other.

Needs tables of two columns only.
"""

from itertools import combinations

import numpy as np

from synthesis.networks.graph import Dag
from synthesis.networks.score import BicScore
from synthesis.tables import Floats


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
        Of a degree of at least 1.

    Returns
    -------
    Dag
        Each tree has its arcs away from its first column. No table tells a tree's directions apart,
        so another root would be as good.

    Notes
    -----
    The tree with the largest sum of mutual information is the most likely one [1]_; Kruskal's
    method finds it [2]_. A pair that the score likes no better than two columns alone is no edge,
    as it is no arc of the other methods, so that columns of which nothing is seen stay alone.

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
