"""A Bayesian network over columns: its views of them, the rows drawn from it, its text.

Columns as a network sees them: at their finest, and at coarser levels as parents.

Public values only: which levels of a column go together is declared, or follows from the schema.

The model: a Bayesian network over columns, each with its law given its parents.

Post-processing of noisy tables: rows are drawn from it, and queries answered by it, any number of
times at no cost.

Rows from a network, one column after another, each given its parents in the row.

Variates come from the caller's generator: they do not protect data, so a table may be drawn again
with another seed, or the same.

A network as plain JSON values, and back, so that rows can be drawn from it again.

Released numbers and public names only.

Coarser views of columns with ordered levels: neighbours are merged in pairs.

Public values only. The meaning of levels is not known here, nor which columns need such views.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cube.query import Partition
from cube.runtime import cached_property
from synthesis.fitting import projected
from synthesis.tables import Column, Floats, Integers


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column, and the views of it that candidates may have.

    Parameters
    ----------
    name : str
        The name of the axis.
    views : tuple of Partition
        Partitions of all levels of that axis. Rows consist of classes of the first view; each
        further view merges classes of the one before, into at least two. A column may be a parent
        at any view.
    """

    name: str
    views: tuple[Partition, ...]

    def __post_init__(self) -> None:
        if not self.views:
            raise ValueError(f"the column {self.name} has no view")
        for view in self.views:
            if view.axes != (self.name,) or int(view.labels.min()) < 0:
                raise ValueError(f"a view of {self.name} must be a partition of all its levels")
        for finer, coarser in zip(self.views, self.views[1:], strict=False):
            merged = np.unique(np.stack([finer.labels, coarser.labels]), axis=1)
            if merged.shape[1] != finer.n_groups or not 1 < coarser.n_groups < finer.n_groups:
                raise ValueError(
                    f"a coarser view of {self.name} must merge whole classes of the finer one"
                )

    @classmethod
    def plain(cls, name: str, size: int) -> "Attribute":
        """A column with its levels as the only view."""
        return cls(name, (Partition((name,), np.arange(size)),))

    @property
    def size(self) -> int:
        """The number of classes in rows: those of the finest view."""
        return self.views[0].n_groups

    @property
    def parent_sizes(self) -> tuple[int, ...]:
        """The number of classes at each view; empty for a column with only one class."""
        return tuple(view.n_groups for view in self.views if view.n_groups > 1)

    @cached_property
    def classes(self) -> tuple[Integers, ...]:
        """For each view, the class of every class of the finest view."""
        finest, first = np.unique(self.views[0].labels, return_index=True)
        if not np.array_equal(finest, np.arange(self.size)):
            raise ValueError("a partition must number its groups consecutively")
        return tuple(view.labels[first] for view in self.views)


def check_distinct(attributes: Sequence[Attribute]) -> None:
    """Raise ValueError if there are none, or two with the same name."""
    if not attributes or len({one.name for one in attributes}) != len(attributes):
        raise ValueError("columns must have distinct names, and at least one is needed")


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
    """A network in which each column depends on columns before it.

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
                raise ValueError(f"the law of {node.child} has the wrong shape {conditional.shape}")
            if not (conditional >= 0).all() or np.abs(conditional.sum(axis=-1) - 1).max() > WHOLE:
                raise ValueError(
                    f"the shares of {node.child} must not be negative and must sum to 1"
                )
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
    attributes: Sequence[Attribute],
    nodes: Sequence[Node],
    tables: Sequence[Floats],
    *,
    total: float | None = None,
    pseudo_counts: Sequence[float] | None = None,
) -> BayesianNetwork:
    """The network with the laws estimated from noisy tables.

    Parameters
    ----------
    attributes : sequence of Attribute
    nodes : sequence of Node
    tables : sequence of (n_classes of child, n_classes of parent, ...) ndarray of float64
        Noisy counts, one table for each node. Where sums differ, all have the same noise scale.
    total : float, optional
        The number of rows, if it is known otherwise.
    pseudo_counts : sequence of float, optional
        For each node, what is added to a cell on average before shares are taken, spread as the
        child's own law (`smoothed`); nothing by default.

    Notes
    -----
    Where it is not given, the number of rows is the mean of the tables' sums, each weighted by one
    over its number of cells, which is right where each cell has the same noise. Each table is then
    replaced by the nearest non-negative one with this sum. The published method sets negative cells
    to 0, which raises every empty cell by half the scale of the noise on average: tables of many
    cells then consist mostly of that.
    """
    if total is None:
        weights = np.array([1 / table.size for table in tables])
        sums = np.array([table.sum() for table in tables])
        total = max(0.0, float(weights @ sums / weights.sum()))
    added = [0.0] * len(nodes) if pseudo_counts is None else pseudo_counts
    laws = [
        conditional_law(np.moveaxis(smoothed(nearest_counts(table, total), more), 0, -1))
        for table, more in zip(tables, added, strict=True)
    ]
    return BayesianNetwork(tuple(attributes), tuple(nodes), tuple(laws), total)


def nearest_counts(table: Floats, total: float) -> Floats:
    """The nearest non-negative table with this sum."""
    cells = table.reshape(1, -1)
    return projected(cells, np.array([total]), np.ones_like(cells)).reshape(table.shape)


def smoothed(counts: Floats, pseudo_count: float) -> Floats:
    """Counts of a child and its parents, moved towards a child that depends on nothing.

    Parameters
    ----------
    counts : (n_classes of child, n_classes of parent, ...) ndarray of float64
        Not negative.
    pseudo_count : float
        What is added to a cell on average; nothing is changed if it is 0.

    Notes
    -----
    Equal pseudo-counts, as published, move a law towards equal shares, which is far from every law
    with rare classes. A column without parents, and the law that others are moved to, have as much
    added to each count as goes with its noise: sums have that of a cell times the root of how many
    are added up. So no share is 0, and noise alone gives a law that is nearly even.

    Examples
    --------
    >>> smoothed(np.array([[3.0, 0.0], [3.0, 0.0]]), 1.0)
    array([[4., 1.],
           [4., 1.]])
    """
    if not pseudo_count:
        return counts
    n_summed = counts.size / len(counts)
    own = counts.reshape(len(counts), -1).sum(axis=1) + pseudo_count * math.sqrt(n_summed)
    if counts.ndim == 1:
        return np.asarray(own)
    spread = pseudo_count * len(counts) * own / own.sum()
    return np.asarray(counts + spread.reshape(-1, *[1] * (counts.ndim - 1)))


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


def draw_rows(
    network: BayesianNetwork, rng: np.random.Generator, *, n_rows: int | None = None
) -> NDArray[np.int32]:
    """Draw a synthetic table.

    Parameters
    ----------
    network : BayesianNetwork
    rng : numpy.random.Generator
    n_rows : int, optional
        The estimated number of rows by default.

    Returns
    -------
    (n_rows, n_columns) ndarray of int32
        The class of each row in each column, in the order of the network's attributes.
    """
    n_rows = round(network.total) if n_rows is None else n_rows
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative, got {n_rows}")
    drawn: dict[str, Integers] = {}
    for node, conditional in zip(network.nodes, network.conditionals, strict=True):
        laws, of_row = given_parents(network, node, conditional, drawn, n_rows)
        drawn[node.child] = drawn_classes(laws, of_row, rng.random(n_rows))
    return np.stack([drawn[one.name] for one in network.attributes], axis=1).astype(np.int32)


def given_parents(
    network: BayesianNetwork,
    node: Node,
    conditional: Floats,
    drawn: Mapping[str, Integers],
    n_rows: int,
) -> tuple[Floats, Integers]:
    """The laws of a column, (n_laws, n_classes), and the law of each row."""
    of_row = np.zeros(n_rows, dtype=np.int64)
    for parent, size in zip(node.parents, conditional.shape, strict=False):
        classes = network.attribute(parent.column).classes[parent.level]
        of_row = of_row * size + classes[drawn[parent.column]]
    return conditional.reshape(-1, conditional.shape[-1]), of_row


def drawn_classes(laws: Floats, of_row: Integers, uniforms: Floats) -> Integers:
    """A class for each row by its law: the first whose cumulative share exceeds the row's uniform.

    Parameters
    ----------
    laws : (n_laws, n_classes) ndarray of float64
    of_row : (n_rows,) ndarray of int64
    uniforms : (n_rows,) ndarray of float64
        A uniform number for each row, from 0 to less than 1.

    Examples
    --------
    >>> weather = np.array([[0.3, 0.4, 0.2, 0.1]])
    >>> drawn_classes(weather, np.zeros(3, dtype=int), np.array([0.67, 0.3, 0.999999]))
    array([1, 1, 3])
    """
    ends = np.cumsum(laws, axis=1)
    # If rounding leaves the sum below 1, the rest belongs to the last class that has a share
    ends[ends >= ends[:, -1:]] = 1.0
    # Laws are placed end to end on one line, law k from k to k + 1: one search finds all classes
    line = (np.arange(len(laws))[:, np.newaxis] + ends).ravel()
    points = np.minimum(of_row + uniforms, np.nextafter(of_row + 1.0, 0.0))
    return np.asarray(line.searchsorted(points, side="right") - of_row * laws.shape[1])


KIND: Final = "privbayes"


def network_json(network: BayesianNetwork) -> dict[str, Any]:
    """A network as JSON values."""
    return {
        "kind": KIND,
        "total": network.total,
        "columns": [
            {"name": one.name, "views": [view.labels.tolist() for view in one.views]}
            for one in network.attributes
        ],
        "nodes": [
            {
                "child": node.child,
                "parents": [{"column": one.column, "level": one.level} for one in node.parents],
                "degree_max": node.degree_max,
                "law": law.tolist(),
            }
            for node, law in zip(network.nodes, network.conditionals, strict=True)
        ],
    }


def network_of(encoded: dict[str, Any]) -> BayesianNetwork:
    """The network that `network_json` wrote.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the values are not such a network.
    """
    if encoded["kind"] != KIND:
        raise ValueError(f"the kind of model {encoded['kind']!r} is unknown here")
    attributes = tuple(
        Attribute(
            column["name"],
            tuple(
                Partition((column["name"],), np.array(labels, dtype=np.int64))
                for labels in column["views"]
            ),
        )
        for column in encoded["columns"]
    )
    nodes = tuple(
        Node(
            node["child"],
            tuple(Parent(one["column"], one["level"]) for one in node["parents"]),
            node["degree_max"],
        )
        for node in encoded["nodes"]
    )
    laws = tuple(np.array(node["law"], dtype=np.float64) for node in encoded["nodes"])
    return BayesianNetwork(attributes, nodes, laws, encoded["total"])


N_COARSEST: Final = 4  # ordered classes; two would hide most of a column's dependence on others


def plain_attribute(column: Column) -> Attribute:
    """A column that can be a parent only at its own levels."""
    return Attribute.plain(column.name, column.size)


def grouped_attribute(name: str, labels: Sequence[Sequence[int]]) -> Attribute:
    """A column that can also be a parent by groups of its levels.

    Parameters
    ----------
    name : str
    labels : sequence of sequence of int
        For each coarser view, the finest first, the class of every level.

    Raises
    ------
    ValueError
        If a view does not merge whole classes of the one before, into at least two.

    Examples
    --------
    >>> city = grouped_attribute("city", [[0, 0, 1, 1, 2]])
    >>> [view.labels.tolist() for view in city.views]
    [[0, 1, 2, 3, 4], [0, 0, 1, 1, 2]]
    """
    views = [np.arange(len(labels[0])), *(np.array(one, dtype=np.int64) for one in labels)]
    return Attribute(name, tuple(Partition((name,), view) for view in views))


def layered_attribute(column: Column) -> Attribute:
    """A column that can also be a parent at coarser views.

    Parameters
    ----------
    column : Column
        Its first `n_ordered` levels are ordered. Each further view has half as many classes of
        them, rounded up, down to `N_COARSEST` or one less. The levels after them (OTHER, NULL) are
        never merged.

    Examples
    --------
    >>> hours = layered_attribute(Column("hours", size=11, n_ordered=10))
    >>> [view.labels.tolist() for view in hours.views[1:]]
    [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3]]
    """
    n_ordered, views = column.n_ordered, [np.arange(column.size)]
    while n_ordered > N_COARSEST:
        views.append(_halved(n_ordered, column.size - column.n_ordered)[views[-1]])
        n_ordered = (n_ordered + 1) // 2
    return Attribute(column.name, tuple(Partition((column.name,), view) for view in views))


def _halved(n_ordered: int, n_apart: int) -> Integers:
    """The new class of each class after neighbours are merged."""
    n_merged = (n_ordered + 1) // 2
    return np.concatenate([np.arange(n_ordered) // 2, n_merged + np.arange(n_apart)])
