"""How much of a query lies in each interaction of columns; its variance from marginals follows.

Functions of a table's cells fall into orthogonal parts, one for each set of columns: what is said
by these columns together and by no fewer of them. A marginal measured with independent noise says
equally much about every function of such a part (McKenna et al. 2018, "Optimizing error of
high-dimensional statistical queries"; Xiao et al. 2023, "An optimal and scalable matrix mechanism
for noisy marginals"). So with ``w_S`` the weight of the marginal on the columns ``S``, which has
``n_S`` cells, the best linear unbiased estimate of a query ``q`` on the columns ``A`` has the
variance

    sum over R within A of  (|part of q in R|**2 / n_A) / (sum over S around R of w_S**2 / (2 n_S))

Levels that no query of a batch distinguishes are one level, so that all of this is small. Nothing
here weighs or prices.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cube.grid import Grid
from cube.query import QueryBlock, Scope
from inference.blue.atoms import row_signature

Floats = NDArray[np.float64]


def subsets(scope: Scope) -> list[Scope]:
    """Every set of the columns, the smaller ones first."""
    return [chosen for size in range(len(scope) + 1) for chosen in combinations(scope, size)]


def interactions(block: QueryBlock, grid: Grid) -> dict[Scope, Floats]:
    """For each set of the block's columns, ``|part of a row|**2 / n_A`` for every row, (n_rows,).

    Parameters
    ----------
    block : QueryBlock
    grid : Grid
        On the block's columns, its rows constant on each cell.
    """
    coefficient, group = row_signature(grid, block)
    (touched,) = np.nonzero(group >= 0)
    places = np.unravel_index(touched, grid.shape) if grid.axes else ()
    coefficient, group = coefficient[touched], group[touched]
    within: dict[Scope, Floats] = {}
    for chosen in subsets(grid.axes):
        cell, n_cells = group, 1
        for place in (grid.position[name] for name in chosen):
            size = grid.shape[place]
            cell, n_cells = cell * size + places[place], n_cells * size
        cells, where = np.unique(cell, return_inverse=True)
        sums = np.bincount(where, coefficient, cells.size)
        squares = np.bincount(cells // n_cells, np.square(sums), block.n_rows)
        within[chosen] = squares * n_cells / grid.n_cells**2
    return {chosen: _own_part(within, chosen) for chosen in within}


def _own_part(within: dict[Scope, Floats], chosen: Scope) -> Floats:
    """The square of what these columns say and no fewer do, from the squares of averages."""
    signs = {fewer: (-1.0) ** (len(chosen) - len(fewer)) for fewer in subsets(chosen)}
    found = sum(sign * within[fewer] for fewer, sign in signs.items())
    return np.maximum(found, 0.0)
