"""Cells that paid much: lower bounds on the largest cost of a cell, by local search.

From a few cells of the cube, one column after the other is moved to its most expensive segment
until nothing increases. What these cells paid is exact, so it is shown beside a proved upper bound.
It need not be the maximum, and is not called one.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope
from proxy.reporting.cost_tables import CostTables, Whole

N_STARTS: Final = 32
N_ROUNDS_MAX: Final = 8  # each moves every column once; a few are nearly always enough
SEED: Final = 1  # of the starting cells: nothing is private here, and reports are reproducible


def attained(
    paid: CostTables, tables: Mapping[Scope, Whole], columns: Sequence[str]
) -> dict[str, Whole]:
    """For each of the columns, what some cell in each segment has paid.

    Parameters
    ----------
    paid : CostTables
        The cost tables whose segments are used.
    tables : mapping of Scope to ndarray
        Lower bounds on what cells have paid, over some of the columns.
    columns : sequence of str
    """
    draw = np.random.default_rng(SEED)
    cells = {axis: draw.integers(0, paid.segments[axis].size, N_STARTS) for axis in columns}
    for _ in range(N_ROUNDS_MAX):
        before = {axis: places.copy() for axis, places in cells.items()}
        for axis in columns:
            cells[axis] = _along(paid, tables, cells, axis).argmax(axis=1)
        if all(np.array_equal(before[axis], cells[axis]) for axis in columns):
            break
    return {axis: _along(paid, tables, cells, axis).max(axis=0) for axis in columns}


def _along(
    paid: CostTables,
    tables: Mapping[Scope, Whole],
    cells: Mapping[str, NDArray[np.int64]],
    axis: str,
) -> Whole:
    """What each cell would have paid in each segment of a column, (n_cells, n_segments)."""
    dtype = next((values.dtype for values in tables.values()), np.dtype(np.float64))
    along: Whole = np.zeros((N_STARTS, paid.segments[axis].size), dtype=dtype)
    for scope, values in tables.items():
        others = tuple(cells[name] for name in scope if name != axis)
        if axis in scope:
            moved = np.moveaxis(values, scope.index(axis), -1)
            along += moved[others] if others else moved
        else:
            along += values[others][:, np.newaxis]
    return along
