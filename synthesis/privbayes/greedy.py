"""Learns a network from tables that exist already, and scores parents in a noisy table.

What parents are worth in a noisy table: whether a law is nearer to the truth with them.

Of one table, and of tables that are drawn like it; how these are drawn is the caller's.

For tables that are noisy by themselves, such as those of randomised answers: nothing is measured,
so nothing is paid for, and a choice need not be private. Which columns have tables together is what
somebody asked for earlier, and bounds the parents that a column may have.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import Final, Protocol, TypeAlias

import numpy as np
from scipy.special import gammainccinv

from cube.query import Scope
from synthesis.networks import mutual_information
from synthesis.privbayes.network import (
    Attribute,
    BayesianNetwork,
    Node,
    Parent,
    check_distinct,
    fitted_network,
    nearest_counts,
)
from synthesis.tables import Floats

FALSE_ODDS: Final = 0.02  # that a table of independent columns gets a parent, of all its columns

Draw: TypeAlias = Callable[[Floats], Floats]


def parents_worth(shares: Floats, drawn: Draw, odds: float) -> float:
    """The information of parents about a column in a table, minus the cost of noise, in nats.

    Parameters
    ----------
    shares : (n_classes of child, n_classes of parent, ...) ndarray of float64
        The share of each combination of classes: not negative, with sum 1.
    drawn : callable
        Shares of tables of a law in the shape of `shares`, noisy in the same way: (n_tables, ...).
    odds : float
        The odds of taking an uninformative parent for an informative one.

    Returns
    -------
    float
        Positive if each of the parents is worth having beside the others.

    Notes
    -----
    Distance is Kullback and Leibler's. A law without parents is too far by their information `I`;
    one with them, by what noise does to it. To second order that is the mean `m` of the information
    in tables of independent columns. The table shows ``I + m`` on average, so what parents are
    worth is ``found - 2 m``: for noise that is only of counts, Akaike's criterion.

    That is right on average over tables, not for the best of many candidates, which is the one that
    noise favours. So a parent also has to tell, given the others, more than chance reaches at these
    odds; and twice its mean, so that it pays for its own noise. Chance is told by tables in which
    the child does not depend on this parent given the others.

    Information by chance is nearly a sum of squares, with a weight each. Its law is approximated by
    the gamma law of its mean and variance (Satterthwaite), with no more degrees of freedom than the
    table has: fewer draws than odds have zeros say little about a tail.
    """
    axes = tuple(range(1, shares.ndim))
    by_chance = _information(drawn(_independent(shares, axes)))
    if len(axes) == 1:
        beyond = _beyond_chance(shares, 1, by_chance, odds)
    else:
        beyond = min(
            _beyond_chance(shares, axis, _gain(drawn(_independent(shares, (axis,))), axis), odds)
            for axis in axes
        )
    if beyond <= 0:
        return beyond
    return float(_information(shares[np.newaxis])[0] - 2 * by_chance.mean())


def n_simulations(parents: Scope) -> int:
    """How often tables are drawn for these parents."""
    return 1 if len(parents) == 1 else 1 + len(parents)


def _beyond_chance(shares: Floats, axis: int, by_chance: Floats, odds: float) -> float:
    """The information of a parent, given the others, minus the threshold that it must pass."""
    n_free = (shares.shape[0] - 1) * (shares.shape[axis] - 1) * shares.size
    n_free //= shares.shape[0] * shares.shape[axis]
    mean, variance = float(by_chance.mean()), float(by_chance.var())
    reached = 0.0
    if mean > 0 and variance > 0:
        half_freedom = min(mean**2 / variance, n_free / 2)
        reached = float(gammainccinv(half_freedom, odds)) * mean / half_freedom
    return float(_gain(shares[np.newaxis], axis)[0] - max(reached, 2 * mean))


def _independent(shares: Floats, axes: tuple[int, ...]) -> Floats:
    """The law in which the child does not depend on some parents, given the others."""
    own, parents = shares.sum(axis=axes, keepdims=True), shares.sum(axis=0, keepdims=True)
    given = own.sum(axis=0, keepdims=True)
    law = parents * np.divide(own, given, out=np.zeros_like(own), where=given > 0)
    return np.asarray(law / law.sum())


def _information(tables: Floats) -> Floats:
    return mutual_information(tables, 0)


def _gain(tables: Floats, axis: int) -> Floats:
    """The information that a parent adds to the others, in each of several tables."""
    return _information(tables) - _information(tables.sum(axis=axis + 1))


class NoisyTables(Protocol):
    """The tables, and what they tell of dependence."""

    @property
    def scopes(self) -> Sequence[Scope]:
        """The columns of each table."""
        ...

    def worth(self, child: str, parents: Scope, odds: float) -> float:
        """The information of parents about a child, from one table, minus the cost of noise.

        Positive where the law is nearer to the truth with all of these parents. At these odds, it
        is positive where they tell nothing (`synthesis.privbayes.greedy`).
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
        The tables; every column is in one of them.
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
    would make the smallest share 0 and the others too large. Where no record has the parents'
    values, the law is the column's own.

    References
    ----------
    .. [1] J. Zhang, G. Cormode, C. Procopiuc, D. Srivastava, X. Xiao, "PrivBayes: Private Data
       Release via Bayesian Networks", ACM Transactions on Database Systems 42, 2017, section 4.1.
    """
    check_distinct(attributes)
    if degree < 0:
        raise ValueError("the number of parents must not be negative")
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
    """The table summed over all other columns, with its axes in the order of `kept`."""
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
