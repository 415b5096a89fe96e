"""A network from tables that are there already: the greedy choice, and laws from the same tables.

For tables that are noisy by themselves, such as those of randomised answers: nothing is measured,
so nothing is paid for, and a choice need not be private. Which columns have tables together is what
somebody asked for earlier, and bounds the parents that a column may have.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np

from cube.query import Scope
from synthesis.privbayes.attributes import Attribute, check_distinct
from synthesis.privbayes.network import (
    BayesianNetwork,
    Node,
    Parent,
    fitted_network,
    nearest_counts,
)
from synthesis.privbayes.worth import FALSE_ODDS
from synthesis.tables import Floats


class NoisyTables(Protocol):
    """The tables, and what they tell of dependence."""

    @property
    def scopes(self) -> Sequence[Scope]:
        """The columns of each table."""
        ...

    def worth(self, child: str, parents: Scope, odds: float) -> float:
        """What parents tell of a child, which some table has with them, less what noise costs.

        Positive where the law is nearer to the truth with all of these parents. At these odds, it
        is positive where they tell nothing (`synthesis.privbayes.worth`).
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
    them, the pair that is worth most comes next. With one parent each and no noise, that is a
    spanning tree of greatest information. The published choice takes sets as large as they may be,
    since they tell most; here noise is taken off, so that smaller ones may be worth more. Where no
    pair is worth its noise, the next column is one without parents.

    One set of columns is weighed once, with the child that is left. So the odds of a whole network
    are divided by the number of sets that tables and `degree` allow, and if all columns are
    independent, the network has a parent at `FALSE_ODDS` at most.

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
    odds = FALSE_ODDS / max(1, _n_candidates(names, tables.scopes, degree))
    told: dict[tuple[str, Scope], float] = {}
    while len(before) < len(names):
        left = [name for name in names if name not in before]
        best: tuple[str, Scope] = left[0], ()
        most = 0.0
        for pair in _candidates(left, before, tables.scopes, degree):
            if pair not in told:
                told[pair] = tables.worth(*pair, odds)
            if told[pair] > most:
                best, most = pair, told[pair]
        child, parents = best
        before.append(child)
        nodes.append(Node(child, tuple(map(Parent, parents)), degree))
    counted = [tables.counts(_columns(node)) for node in nodes]
    return fitted_network(attributes, nodes, with_first_laws_of_one(nodes, counted))


def with_first_laws_of_one(nodes: Sequence[Node], tables: Sequence[Floats]) -> list[Floats]:
    """The tables, with those of the first columns from the one that has all of their columns.

    Parameters
    ----------
    nodes : sequence of Node
        In the network's order; parents at their finest.
    tables : sequence of (n_classes of child, n_classes of parent, ...) ndarray of float64
        Noisy counts, that agree with each other as long as cells may be negative.

    Notes
    -----
    The first node with as many parents as any has: its table, made non-negative, also tells the
    laws of the nodes before it that have none but its columns, as in the paper. Where they are each
    other's parents, the network's law of these columns is that table.
    """
    most = max(len(node.parents) for node in nodes)
    place = next(place for place, node in enumerate(nodes) if len(node.parents) == most)
    names = _columns(nodes[place])
    one = nearest_counts(tables[place], max(0.0, float(tables[place].sum())))
    return [
        _margin(one, names, _columns(node))
        if number <= place and set(_columns(node)) <= set(names)
        else table
        for number, (node, table) in enumerate(zip(nodes, tables, strict=True))
    ]


def _columns(node: Node) -> list[str]:
    return [node.child, *(parent.column for parent in node.parents)]


def _margin(table: Floats, names: Sequence[str], kept: Sequence[str]) -> Floats:
    """Summed over all other columns, with axes in the order of those that are kept."""
    others = tuple(axis for axis, name in enumerate(names) if name not in kept)
    left = [name for name in names if name in kept]
    summed: Floats = table.sum(axis=others)
    return summed.transpose([left.index(name) for name in kept])


def _candidates(
    left: Sequence[str], before: Sequence[str], scopes: Sequence[Scope], degree: int
) -> Iterator[tuple[str, Scope]]:
    """Each column with each set of parents that a table has with it."""
    for child in left:
        found = {
            parents
            for scope in scopes
            if child in scope
            for parents in _sets([name for name in scope if name in before], degree)
        }
        yield from ((child, parents) for parents in sorted(found))


def _n_candidates(names: Collection[str], scopes: Sequence[Scope], degree: int) -> int:
    """How many sets of columns some table has: of each, one column comes last, as the child."""
    return len(
        {
            found
            for scope in scopes
            for found in _sets([name for name in scope if name in names], degree + 1)
            if len(found) > 1
        }
    )


def _sets(names: Sequence[str], n_most: int) -> Iterator[Scope]:
    """All of at least one name."""
    for size in range(1, min(n_most, len(names)) + 1):
        yield from combinations(sorted(names), size)
