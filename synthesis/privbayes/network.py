"""The model: a Bayesian network over columns, each with its law given its parents.

Post-processing of noisy tables: rows are drawn from it, and queries answered by it, any number of
times at no cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synthesis.fitting import projected
from synthesis.privbayes.attributes import Attribute, check_distinct
from synthesis.tables import Floats

WHOLE: float = 1e-9  # the largest deviation of a law's sum from 1


@dataclass(frozen=True, slots=True)
class Parent:
    """A parent, and the number of its view: 0 for the finest."""

    column: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A column and its parents.

    Parameters
    ----------
    child : str
    parents : tuple of Parent
    degree_max : int
        The most parents that it was allowed: below the requested degree where there would have been
        too many candidates.
    """

    child: str
    parents: tuple[Parent, ...] = ()
    degree_max: int = 0


@dataclass(frozen=True, eq=False)
class BayesianNetwork:
    """Columns, each of which depends on columns before it.

    Parameters
    ----------
    attributes : tuple of Attribute
        In the order of the columns in rows.
    nodes : tuple of Node
        Each column once, after its parents.
    conditionals : tuple of (n_classes of parent, ..., n_classes of child) ndarray of float64
        The law of each node's child, given its parents' classes: not negative, sum 1.
    total : float
        The approximate number of rows.
    """

    attributes: tuple[Attribute, ...]
    nodes: tuple[Node, ...]
    conditionals: tuple[Floats, ...]
    total: float

    def __post_init__(self) -> None:
        check_distinct(self.attributes)
        if not 0 <= self.total < float("inf"):
            raise ValueError(f"a table cannot have {self.total} rows")
        by_name = {attribute.name: attribute for attribute in self.attributes}
        before: set[str] = set()
        for node, conditional in zip(self.nodes, self.conditionals, strict=True):
            parents = {parent.column for parent in node.parents}
            if node.child in before or not parents <= before or len(parents) != len(node.parents):
                raise ValueError(f"{node.child} must be in the network once, after its parents")
            before.add(node.child)
            shape = [by_name[one.column].views[one.level].n_groups for one in node.parents]
            if conditional.shape != (*shape, by_name[node.child].size):
                raise ValueError(f"{conditional.shape} numbers for the law of {node.child}")
            if not (conditional >= 0).all() or np.abs(conditional.sum(axis=-1) - 1).max() > WHOLE:
                raise ValueError(f"shares of {node.child} are negative or do not sum to 1")
        if before != by_name.keys():
            raise ValueError("a network must contain every column once")

    @property
    def degree(self) -> int:
        """The largest number of parents."""
        return max(len(node.parents) for node in self.nodes)

    def attribute(self, name: str) -> Attribute:
        """A column by its name."""
        return next(one for one in self.attributes if one.name == name)


def fitted_network(
    attributes: Sequence[Attribute], nodes: Sequence[Node], tables: Sequence[Floats]
) -> BayesianNetwork:
    """The network with the laws estimated from noisy tables.

    Parameters
    ----------
    attributes : sequence of Attribute
    nodes : sequence of Node
    tables : sequence of (n_classes of child, n_classes of parent, ...) ndarray of float64
        Noisy counts, one table for each node. Where sums differ, all have the same noise scale.

    Notes
    -----
    The number of rows is the mean of the tables' sums, each weighted by one over its number of
    cells, which is right where each cell has the same noise. Each table is then replaced by the
    nearest non-negative one with this sum. The published method sets negative cells to 0, which
    raises every empty cell by half the scale of the noise on average: tables of many cells then
    consist mostly of that.
    """
    weights = np.array([1 / table.size for table in tables])
    sums = np.array([table.sum() for table in tables])
    total = max(0.0, float(weights @ sums / weights.sum()))
    laws = [conditional_law(np.moveaxis(nearest_counts(table, total), 0, -1)) for table in tables]
    return BayesianNetwork(tuple(attributes), tuple(nodes), tuple(laws), total)


def nearest_counts(table: Floats, total: float) -> Floats:
    """The nearest non-negative table with this sum."""
    cells = table.reshape(1, -1)
    return projected(cells, np.array([total]), np.ones_like(cells)).reshape(table.shape)


def conditional_law(counts: Floats) -> Floats:
    """Shares along the last axis, from counts that are not negative.

    Where all counts are 0, the shares are those of the whole table; in an empty table, all are
    equal.
    """
    overall = counts.reshape(-1, counts.shape[-1]).sum(axis=0)
    total = overall.sum()
    fallback = overall / total if total > 0 else np.full(overall.size, 1 / overall.size)
    sums = counts.sum(axis=-1, keepdims=True)
    shares = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
    law: Floats = np.where(sums > 0, shares, fallback)
    return law
