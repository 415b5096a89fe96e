"""Networks that are known, and a `Measurer` over known records with made-up noise."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from accountant.exact.choices import Contingency, grid_scores, sensitivity
from cube.query import Partition
from cube.statistic import Choice, ChoiceCandidate
from synthesis.privbayes.network import Attribute, BayesianNetwork, Node, Parent

# The textbook's example: A -> B, A -> C, {B, C} -> D. Classes are 1 and 0, in this order.
ONE, ZERO = 0, 1
GOLDEN = BayesianNetwork(
    tuple(Attribute.plain(name, 2) for name in "ABCD"),
    (
        Node("A"),
        Node("B", (Parent("A"),)),
        Node("C", (Parent("A"),)),
        Node("D", (Parent("B"), Parent("C"))),
    ),
    (
        np.array([0.8, 0.2]),
        np.array([[0.8, 0.2], [0.5, 0.5]]),
        np.array([[0.7, 0.3], [0.1, 0.9]]),
        np.array([[[0.3, 0.7], [0.1, 0.9]], [[0.2, 0.8], [0.9, 0.1]]]),
    ),
    10_000.0,
)


def joint(network: BayesianNetwork) -> NDArray[np.float64]:
    """The share of every combination of classes, by the definition."""
    sizes = [one.size for one in network.attributes]
    shares = np.ones(sizes)
    names = [one.name for one in network.attributes]
    for cell in product(*map(range, sizes)):
        for node, conditional in zip(network.nodes, network.conditionals, strict=True):
            parents = tuple(
                int(network.attribute(one.column).classes[one.level][cell[names.index(one.column)]])
                for one in node.parents
            )
            shares[cell] *= conditional[(*parents, cell[names.index(node.child)])]
    return shares


class KnownRecords:
    """A `Measurer` whose noise takes a seed, and is none if there is no generator.

    Parameters
    ----------
    names : sequence of str
        Of the columns of `records`.
    records : (n_records, n_columns) ndarray of int64
    rng : numpy.random.Generator, optional
    """

    def __init__(
        self,
        names: Sequence[str],
        records: NDArray[np.int64],
        rng: np.random.Generator | None = None,
    ) -> None:
        self.columns = dict(zip(names, records.T, strict=True))
        self.n_records = len(records)
        self.rng = rng
        self.choices: list[tuple[Choice, Fraction]] = []
        self.measured: list[tuple[tuple[Partition, ...], Fraction]] = []

    def choose(self, choice: Choice, budget: Fraction) -> int:
        self.choices.append((choice, budget))
        tables = (self._table(choice, candidate) for candidate in choice.candidates)
        scores = np.array(grid_scores(choice.score, tables), dtype=np.float64)
        if self.rng is None:
            return int(scores.argmax())
        rate = float(budget) / (2 * sensitivity(choice.score, 10 * self.n_records))
        return int((rate * scores + self.rng.gumbel(size=scores.size)).argmax())

    def tables(
        self, views: Sequence[tuple[Partition, ...]], budget: Fraction
    ) -> list[NDArray[np.float64]]:
        found = []
        for seen in views:
            self.measured.append((seen, budget))
            counts = np.zeros([view.n_groups for view in seen])
            np.add.at(counts, tuple(map(self._classes, seen)), 1)
            if self.rng is not None:
                counts += self.rng.laplace(0, 1 / float(budget), counts.shape)
            found.append(counts)
        return found

    def _classes(self, view: Partition) -> NDArray[np.int64]:
        classes: NDArray[np.int64] = view.labels[self.columns[view.axes[0]]]
        return classes

    def _table(self, choice: Choice, candidate: ChoiceCandidate) -> Contingency:
        views = [choice.views[place] for place in candidate.parents]
        parents = [(self._classes(view), view.n_groups) for view in views]
        child = self._classes(choice.views[candidate.child])
        return Contingency.of(child, parents, np.ones_like(child))
