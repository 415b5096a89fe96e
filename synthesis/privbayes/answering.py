"""The law of some columns of a network, given values of others: exactly, or by weighted rows.

Exact where no intermediate table is too large: a product of the network's laws, from which the
other columns are summed out one after another (variable elimination). Otherwise by likelihood
weighting, with variates of the caller's generator. Neither reads anything but the model.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from synthesis.privbayes.network import BayesianNetwork, drawn_classes, given_parents
from synthesis.tables import Floats, Integers

N_CELLS_MAX: Final = 2**22  # of one intermediate table: 32 MB
N_ROWS_WEIGHTED: Final = 100_000


@dataclass(frozen=True, eq=False)
class Law:
    """Shares of the combinations of some columns' classes.

    Parameters
    ----------
    shares : (n_classes of column, ...) ndarray of float64
        The share of each combination of classes, with sum 1.
    n_effective : float, optional
        The effective number of simulated rows; None if the law is exact.
    """

    shares: Floats
    n_effective: float | None = None


@dataclass(frozen=True, eq=False)
class _Factor:
    """A table over the classes of columns."""

    columns: tuple[str, ...]
    values: Floats


def law_given(
    network: BayesianNetwork,
    columns: Sequence[str],
    given: Mapping[str, int],
    rng: np.random.Generator,
) -> Law:
    """The joint law of columns, given the classes of others.

    Parameters
    ----------
    network : BayesianNetwork
    columns : sequence of str
        At least one, distinct, and none of them in `given`.
    given : mapping of str to int
        Classes of other columns.
    rng : numpy.random.Generator
        For networks that are too dense for an exact answer.

    Raises
    ------
    ValueError
        If `given` has probability 0 in the model.
    """
    if not columns or len({*columns, *given}) != len(columns) + len(given):
        raise ValueError("columns must be distinct, at least one, and none of them also given")
    for name, value in given.items():
        if not 0 <= value < network.attribute(name).size:
            raise ValueError(f"{name} has no class {value}")
    exact = exact_law(network, columns, given)
    return weighted_law(network, columns, given, rng) if exact is None else exact


def exact_law(
    network: BayesianNetwork,
    columns: Sequence[str],
    given: Mapping[str, int],
    n_cells_max: int = N_CELLS_MAX,
) -> Law | None:
    """The law by variable elimination; None if a table would have more than `n_cells_max` cells.

    Notes
    -----
    Columns on which no requested or given column depends are left out. Of the others, the one whose
    elimination makes the smallest table is eliminated first.
    """
    sizes = {one.name: one.size for one in network.attributes}

    def n_cells(names: Iterable[str]) -> int:
        return math.prod(sizes[name] for name in names)

    needed = _ancestors(network, {*columns, *given})
    factors = []
    for place, node in enumerate(network.nodes):
        if node.child in needed:
            names = (*(parent.column for parent in node.parents), node.child)
            if n_cells(set(names) - given.keys()) > n_cells_max:
                return None
            factors.append(_factor(network, place, given))
    left = needed - {*columns, *given}
    while left:
        touched = {name: _touched(factors, name) for name in sorted(left)}
        name = min(touched, key=lambda name: n_cells(touched[name]))
        if n_cells(touched[name]) > n_cells_max:
            return None
        joined = _product([one for one in factors if name in one.columns])
        summed = joined.values.sum(axis=joined.columns.index(name))
        rest = tuple(other for other in joined.columns if other != name)
        factors = [one for one in factors if name not in one.columns] + [_Factor(rest, summed)]
        left.remove(name)
    if n_cells(columns) > n_cells_max:
        return None
    ones = _Factor(tuple(columns), np.ones([sizes[name] for name in columns]))
    return Law(_normalised(_product([ones, *factors]).values))


def weighted_law(
    network: BayesianNetwork,
    columns: Sequence[str],
    given: Mapping[str, int],
    rng: np.random.Generator,
    n_rows: int = N_ROWS_WEIGHTED,
) -> Law:
    """The law by likelihood weighting.

    Notes
    -----
    Rows are drawn column by column; a given column is not drawn, but its share, given the drawn
    parents, multiplies the row's weight.
    """
    drawn: dict[str, Integers] = {}
    weights = np.ones(n_rows)
    for node, conditional in zip(network.nodes, network.conditionals, strict=True):
        laws, of_row = given_parents(network, node, conditional, drawn, n_rows)
        if node.child in given:
            value = given[node.child]
            weights *= laws[of_row, value]
            drawn[node.child] = np.full(n_rows, value)
        else:
            drawn[node.child] = drawn_classes(laws, of_row, rng.random(n_rows))
    shares = np.zeros([network.attribute(name).size for name in columns])
    np.add.at(shares, tuple(drawn[name] for name in columns), weights)
    squares = float((weights**2).sum())
    return Law(_normalised(shares), float(weights.sum()) ** 2 / squares if squares else 0.0)


def _normalised(shares: Floats) -> Floats:
    total = shares.sum()
    if not total > 0:
        raise ValueError("the given values have probability 0 in the model")
    return np.asarray(shares / total)


def _ancestors(network: BayesianNetwork, names: set[str]) -> set[str]:
    """The columns, and all columns on which they depend."""
    found = set(names)
    for node in reversed(network.nodes):
        if node.child in found:
            found |= {parent.column for parent in node.parents}
    return found


def _factor(network: BayesianNetwork, place: int, given: Mapping[str, int]) -> _Factor:
    """A node's law over the classes of its columns that are not given."""
    node, values = network.nodes[place], network.conditionals[place]
    classes = [network.attribute(one.column).classes[one.level] for one in node.parents]
    classes.append(np.arange(values.shape[-1]))
    names = (*(parent.column for parent in node.parents), node.child)
    picked = [
        levels[given[name]][np.newaxis] if name in given else levels
        for name, levels in zip(names, classes, strict=True)
    ]
    fixed = tuple(axis for axis, name in enumerate(names) if name in given)
    free = tuple(name for name in names if name not in given)
    return _Factor(free, values[np.ix_(*picked)].squeeze(axis=fixed))


def _touched(factors: Sequence[_Factor], name: str) -> set[str]:
    """The columns that share a factor with `name`, and `name` itself."""
    return {other for one in factors if name in one.columns for other in one.columns}


def _product(factors: Sequence[_Factor]) -> _Factor:
    """The product of factors, over the columns of all, in the order of first occurrence."""
    names = tuple(dict.fromkeys(name for one in factors for name in one.columns))

    def spread(one: _Factor) -> Floats:
        order = sorted(range(len(one.columns)), key=lambda axis: names.index(one.columns[axis]))
        sizes = dict(zip(one.columns, one.values.shape, strict=True))
        return one.values.transpose(order).reshape([sizes.get(name, 1) for name in names])

    return _Factor(names, reduce(np.multiply, map(spread, factors)))
