"""How near two graphs are, how near shares are, and how often a set of graphs has a link.

One of two graphs may be the truth, published or made up; or both are releases. Only graphs and
released or published shares are compared: nothing here reads a private row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synthesis.networks.graph import Arc, Dag, EquivalenceClass
from synthesis.tables import Floats


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The ordered pairs of columns, by whether an arc is there and whether one was found.

    Parameters
    ----------
    true_positives, false_positives, false_negatives, true_negatives : int
        A false positive is found and not there; a false negative is there and not found.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @classmethod
    def of(cls, truth: Dag, found: Dag) -> "LinkCounts":
        """Compare a graph with the true one, over all ordered pairs of columns.

        Raises
        ------
        ValueError
            If their columns differ.
        """
        n_pairs = _n_columns(truth, found) * (len(truth.columns) - 1)
        both = len(truth.arcs & found.arcs)
        false_positives = len(found.arcs - truth.arcs)
        false_negatives = len(truth.arcs - found.arcs)
        return cls(
            both,
            false_positives,
            false_negatives,
            n_pairs - both - false_positives - false_negatives,
        )

    @property
    def sensitivity(self) -> float:
        """The share of the arcs that were found; 1 if there are none."""
        return _share(self.true_positives, self.false_negatives)

    @property
    def specificity(self) -> float:
        """The share of the pairs without an arc for which none was found; 1 if there are none."""
        return _share(self.true_negatives, self.false_positives)

    @property
    def average_recall(self) -> float:
        """The mean of sensitivity and specificity."""
        return (self.sensitivity + self.specificity) / 2

    @property
    def accuracy(self) -> float:
        """The share of the pairs that are right."""
        right = self.true_positives + self.true_negatives
        return _share(right, self.false_positives + self.false_negatives)


def hamming_distance(truth: Dag, found: Dag) -> int:
    """The pairs of columns between which an arc must be added, deleted or reversed."""
    _n_columns(truth, found)
    return len({frozenset(arc) for arc in truth.arcs ^ found.arcs})


def class_distance(truth: Dag, found: Dag) -> int:
    """The pairs of columns that differ between the equivalence classes of two graphs.

    Notes
    -----
    An edge that is there in one class only counts, and so does one that has a direction in one
    class and none, or the other, in the other [1]_. Graphs of one class have the distance 0: no
    table tells them apart, so a learner cannot be asked for the right one.

    References
    ----------
    .. [1] I. Tsamardinos, L. Brown, C. Aliferis, "The max-min hill-climbing Bayesian network
       structure learning algorithm", Machine Learning 65, 2006.
    """
    _n_columns(truth, found)
    one, other = EquivalenceClass.of(truth), EquivalenceClass.of(found)
    changed = {frozenset(arc) for arc in one.directed ^ other.directed}
    return len(changed | (one.undirected ^ other.undirected))


@dataclass(frozen=True, slots=True)
class LinkShare:
    """How often graphs have a link between two columns.

    Parameters
    ----------
    columns : (str, str)
        In the order of the first graph's columns.
    n_forward, n_backward : int
        The graphs with an arc from the first column to the second, and with the other arc.
    n_graphs : int
        How many graphs there are.
    """

    columns: Arc
    n_forward: int
    n_backward: int
    n_graphs: int

    def __post_init__(self) -> None:
        if not 0 < self.n_forward + self.n_backward <= self.n_graphs:
            raise ValueError("a link must be in one graph at least, and in each only once")

    @property
    def share(self) -> float:
        """The share of the graphs that have the link, in either direction."""
        return (self.n_forward + self.n_backward) / self.n_graphs


def link_shares(graphs: Sequence[Dag]) -> tuple[LinkShare, ...]:
    """How often each link appears that some graph has, the most frequent first.

    Raises
    ------
    ValueError
        If there is no graph, or their columns differ.

    Examples
    --------
    >>> one, other = (Dag(("a", "b"), frozenset({arc})) for arc in (("a", "b"), ("b", "a")))
    >>> link_shares([one, other, Dag(("a", "b"))])
    (LinkShare(columns=('a', 'b'), n_forward=1, n_backward=1, n_graphs=3),)
    """
    if not graphs:
        raise ValueError("there must be a graph")
    for graph in graphs[1:]:
        _n_columns(graphs[0], graph)
    found = []
    for one, other in combinations(graphs[0].columns, 2):
        n_forward, n_backward = (
            sum(arc in graph.arcs for graph in graphs) for arc in ((one, other), (other, one))
        )
        if n_forward + n_backward:
            found.append(LinkShare((one, other), n_forward, n_backward, len(graphs)))
    return tuple(sorted(found, key=lambda link: -link.share))


def total_variation(one: Floats, other: Floats) -> float:
    """The share of the rows of one table that lie elsewhere in the other: from 0 to 1.

    Counts below 0 are taken for 0, and both tables are divided by their sums.

    >>> total_variation(np.array([3.0, 1.0]), np.array([1.0, 1.0]))
    0.25
    """
    p, q = _normalised(one), _normalised(other)
    if p.shape != q.shape:
        raise ValueError(f"tables of shapes {p.shape} and {q.shape}")
    return float(np.abs(p - q).sum() / 2)


def count_error(truth: Floats, found: Floats) -> float:
    """The sum of the absolute errors of a table's counts, in records.

    Counts are taken as they are, those below 0 too; tables of shares are first multiplied by the
    number of records.

    >>> count_error(np.array([30.0, 10.0]), np.array([27.5, -1.0]))
    13.5
    """
    if truth.shape != found.shape:
        raise ValueError(f"tables of shapes {truth.shape} and {found.shape}")
    return float(np.abs(found - truth).sum())


def kl_divergence(truth: Floats, found: Floats) -> float:
    """The Kullback-Leibler divergence of two tables' shares, in bits.

    Infinite if something that is there has the share 0. Counts below 0 are taken for 0, and both
    tables are divided by their sums.

    >>> kl_divergence(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    1.0
    """
    p, q = _normalised(truth), _normalised(found)
    if p.shape != q.shape:
        raise ValueError(f"tables of shapes {p.shape} and {q.shape}")
    there = p > 0
    if (q[there] == 0).any():
        return math.inf
    return max(0.0, float((p[there] * np.log2(p[there] / q[there])).sum()))


def cross_entropy(held_out: Floats, model: Floats) -> tuple[float, float]:
    """How well a model's rows predict rows that were kept out, in bits a row.

    Parameters
    ----------
    held_out, model : ndarray of float64
        The counts of both in the same cells, not negative.

    Returns
    -------
    (cross_entropy, divergence)
        ``-sum p log2 q`` and ``sum p log2(p / q)``, the Kullback-Leibler divergence: what the model
        costs more than the law of the rows themselves.

    Notes
    -----
    A cell that the model's rows do not have is not impossible: `q` is ``(r + 1/2) / (n + K / 2)``
    for `r` of `n` rows in one of `K` cells [1]_.

    References
    ----------
    .. [1] R. Krichevsky, V. Trofimov, "The performance of universal encoding", IEEE Transactions on
       Information Theory 27, 1981.

    Examples
    --------
    >>> cross_entropy(np.array([2.0, 2.0]), np.array([1e9, 1e9]))
    (1.0, 0.0)
    """
    p = _normalised(held_out)
    if p.shape != model.shape:
        raise ValueError(f"tables of shapes {p.shape} and {model.shape}")
    q = (model + 0.5) / (model.sum() + model.size / 2)
    there = p > 0
    bits = float(-(p[there] * np.log2(q[there])).sum())
    return bits, max(0.0, bits + float((p[there] * np.log2(p[there])).sum()))


def js_divergence(one: Floats, other: Floats) -> float:
    """The Jensen-Shannon divergence of two tables' shares, in bits: from 0 to 1, symmetric."""
    p, q = _normalised(one), _normalised(other)
    middle = (p + q) / 2
    return (kl_divergence(p, middle) + kl_divergence(q, middle)) / 2


def js_distance(one: Floats, other: Floats) -> float:
    """The square root of `js_divergence`, which is a distance."""
    return math.sqrt(js_divergence(one, other))


def _normalised(counts: Floats) -> Floats:
    positive = np.maximum(counts, 0.0)
    total = positive.sum()
    if not 0 < total < math.inf:
        raise ValueError("a table needs a positive count")
    return np.asarray(positive / total, dtype=np.float64)


def _share(part: int, rest: int) -> float:
    return part / (part + rest) if part + rest else 1.0


def _n_columns(truth: Dag, found: Dag) -> int:
    if set(truth.columns) != set(found.columns):
        raise ValueError(f"graphs over {truth.columns} and {found.columns}")
    return len(truth.columns)
