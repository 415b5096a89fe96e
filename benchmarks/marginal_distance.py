"""The distance between the small marginals of two tables.

The distance of two tables of counts is the total variation distance of their shares,
``1/2 sum |p - q|``, each over its own total and over every declared combination of levels, whether
or not a row has it. 0 is equal, 1 has nothing in common.

The data is read directly here: it belongs to benchmarks, and none of it is served.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb, prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

N_CELLS_MAX = 2**24  # of a marginal that is counted cell by cell
N_TRIPLES = 100  # drawn once and for all, so that methods are compared on the same ones

Rows: TypeAlias = NDArray[np.integer[Any]]


def pairs_distance(real: Rows, synthetic: Rows, sizes: Sequence[int]) -> float:
    """The mean distance over all pairs of columns.

    Parameters
    ----------
    real, synthetic : (n_rows, n_columns) ndarray of int
        Positions of levels.
    sizes : sequence of int
        Levels of each column.
    """
    return mean_distance(real, synthetic, sizes, combinations(range(len(sizes)), 2))


def triples_distance(real: Rows, synthetic: Rows, sizes: Sequence[int]) -> float:
    """The mean distance over a hundred fixed triples of columns; over all, if there are fewer."""
    n_triples = comb(len(sizes), 3)
    drawn = np.random.RandomState(0).choice(n_triples, min(n_triples, N_TRIPLES), replace=False)
    triples = list(combinations(range(len(sizes)), 3))
    return mean_distance(real, synthetic, sizes, (triples[place] for place in drawn))


def mean_distance(
    real: Rows, synthetic: Rows, sizes: Sequence[int], scopes: Iterable[tuple[int, ...]]
) -> float:
    """The mean distance over some sets of columns, each the columns' places."""
    distances = [distance(*_both_counted(real, synthetic, sizes, scope)) for scope in scopes]
    return float(np.mean(distances))


def _both_counted(
    real: Rows, synthetic: Rows, sizes: Sequence[int], scope: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The counts of both; of very many combinations, those that occur in either."""
    if prod(sizes[place] for place in scope) <= N_CELLS_MAX:
        return counted(real, sizes, scope), counted(synthetic, sizes, scope)
    cells = np.concatenate([_cells(real, sizes, scope), _cells(synthetic, sizes, scope)])
    found, which = np.unique(cells, return_inverse=True)
    first, second = which[: len(real)], which[len(real) :]
    return np.bincount(first, minlength=found.size), np.bincount(second, minlength=found.size)


def counted(rows: Rows, sizes: Sequence[int], scope: Sequence[int]) -> NDArray[np.int64]:
    """How many rows each combination of levels of some columns has, as one long array."""
    n_cells = prod(sizes[place] for place in scope)
    return np.bincount(_cells(rows, sizes, scope), minlength=n_cells)


def _cells(rows: Rows, sizes: Sequence[int], scope: Sequence[int]) -> NDArray[np.int64]:
    """The number of each row's combination of levels."""
    shape = tuple(sizes[place] for place in scope)
    cells: NDArray[np.int64] = np.ravel_multi_index(tuple(rows[:, place] for place in scope), shape)
    return cells


def distance(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The total variation distance of two tables of counts; 1 from a table without rows."""
    if not (first.sum() and second.sum()):
        return 1.0
    return float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)
