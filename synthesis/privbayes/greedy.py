"""A network from tables that are there already: the greedy choice, and laws from the same tables.

For tables that are noisy by themselves, such as those of randomised answers: nothing is measured,
so nothing is paid for, and a choice need not be private. Which columns have tables together is what
somebody asked for earlier, and bounds the parents that a column may have.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np

from cube.query import Scope
from synthesis.privbayes.attributes import Attribute, check_distinct
from synthesis.privbayes.network import BayesianNetwork, Node, Parent, fitted_network
from synthesis.tables import Floats


class NoisyTables(Protocol):
    """The tables, and what they tell of dependence."""

    @property
    def scopes(self) -> Sequence[Scope]:
        """The columns of each table."""
        ...

    def worth(self, child: str, parents: Scope) -> float:
        """What parents tell of a child, which some table has with them, less what noise costs.

        The mutual information in the table, less twice what tables of independent columns show on
        average: once because noise shows as much here, and once because a law that is fitted to
        it is as far from the true one. Both grow with the number of cells, so that without that,
        candidates of different size would not be comparable.
        """
        ...

    def counts(self, names: Sequence[str]) -> Floats:
        """Unbiased counts of columns that some table has together, an axis for each, in order."""
        ...


def greedy_network(
    attributes: Sequence[Attribute],
    tables: NoisyTables,
    rng: np.random.Generator,
    *,
    degree: int,
) -> BayesianNetwork:
    """A network of all columns.

    Parameters
    ----------
    attributes : sequence of Attribute
    tables : NoisyTables
        Every column is in one of them.
    rng : numpy.random.Generator
        Chooses the first column.
    degree : int
        The most parents of a column.

    Notes
    -----
    GreedyBayes [1]_: of all columns that are left, with all sets of parents among those before
    them, the pair of greatest mutual information comes next. With one parent each, that is a
    spanning tree of greatest information. Sets are as large as tables and `degree` allow. Where no
    pair is worth its noise, the column is one without parents. Without noise the penalty is that of
    Akaike's criterion, which counts half a parameter twice.

    Laws come from the nearest tables that are not negative, never by shifting and scaling, which
    would make the smallest share 0 and the others too large. Where nobody has the parents' values,
    the law is the column's own.

    References
    ----------
    .. [1] J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: Private Data
       Release via Bayesian Networks", ACM Transactions on Database Systems 42, 2017, section 4.1.
    """
    check_distinct(attributes)
    if degree < 0:
        raise ValueError("a column has no fewer than 0 parents")
    names = [one.name for one in attributes]
    first = names[int(rng.integers(len(names)))]
    nodes = [Node(first, (), degree)]
    before = [first]
    told: dict[tuple[str, Scope], float] = {}
    while len(before) < len(names):
        left = [name for name in names if name not in before]
        best: tuple[str, Scope] = left[0], ()
        most = 0.0
        for pair in _candidates(left, before, tables.scopes, degree):
            if pair not in told:
                told[pair] = tables.worth(*pair)
            if told[pair] > most:
                best, most = pair, told[pair]
        child, parents = best
        before.append(child)
        nodes.append(Node(child, tuple(map(Parent, parents)), degree))
    counted = [
        tables.counts([node.child, *(parent.column for parent in node.parents)]) for node in nodes
    ]
    return fitted_network(attributes, nodes, counted)


def _candidates(
    left: Sequence[str], before: Sequence[str], scopes: Sequence[Scope], degree: int
) -> Iterator[tuple[str, Scope]]:
    """Each column with each set of parents that a table has with it, none within a larger one."""
    for child in left:
        found = {
            parents
            for scope in scopes
            if child in scope
            for parents in _sets([name for name in scope if name in before], degree)
        }
        yield from (
            (child, parents)
            for parents in sorted(found)
            if parents and not any(set(parents) < set(other) for other in found)
        )


def _sets(names: Sequence[str], degree: int) -> Iterator[Scope]:
    return combinations(sorted(names), min(degree, len(names)))
