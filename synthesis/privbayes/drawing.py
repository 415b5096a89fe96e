"""Rows from a network, one column after another, each given its parents in the row.

Variates come from the caller's generator: they do not protect data, so a table may be drawn again
with another seed, or the same.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from synthesis.privbayes.network import BayesianNetwork, Node
from synthesis.tables import Floats, Integers


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
        From 0 to less than 1.

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
