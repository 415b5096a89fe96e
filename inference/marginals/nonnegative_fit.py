"""Tables that agree and have no cell below zero.

Up to a limit on cells, the closest such tables: a quadratic programme, solved by cvxpy. Beyond the
limit, two steps alternate: negative cells are set to zero at the expense of their neighbours, and
the tables are projected. The result is not the closest, but it is quick at any size. Both end with
the projection, so that the tables agree up to rounding, and the lowest cell is reported.

Clipping depends on the noise: cells are no longer unbiased, and none has a standard error.
"""

import math
import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from cube.query import Scope
from inference.marginals.projection import disagreement, meeting_sets, reconciled
from inference.marginals.table import (
    ConsistentTable,
    Floats,
    NoisyTable,
    Reconciled,
    Solver,
    axis_sizes,
    misfit,
    n_cells,
)

N_PROGRAMME_CELLS_MAX = 20_000  # a second or two for the solver
N_ROUNDS_MAX = 50  # of rippling and projecting; the gain of more is far below the noise
N_RIPPLES_MAX = 1000  # within one table and round; rarely reached unless the total is near zero
RIPPLE_ENOUGH = 0.01  # in standard deviations of a table's noise: negligible
ROUNDING = 1e-9  # of the largest cell: a cell this little below zero counts as zero


def nonnegative(
    tables: Sequence[NoisyTable],
    *,
    total: float | None = None,
    n_programme_cells_max: int = N_PROGRAMME_CELLS_MAX,
) -> Reconciled:
    """Tables close to the given ones that agree and are nowhere negative.

    Parameters
    ----------
    tables : sequence of NoisyTable
    total : float, optional
        The number of records, where it is public; not below zero.
    n_programme_cells_max : int
        The number of cells, over all tables, up to which the closest such tables are computed.

    Returns
    -------
    Reconciled
        `residual` is also how far the lowest cell is below zero, and `solver` says which way the
        tables were computed.
    """
    if total is not None and total < 0:
        raise ValueError("the number of records must not be negative")
    projected = _values(reconciled(tables, total=total))
    solver = Solver.PROJECTION
    if min(float(cells.min()) for cells in projected) < 0:
        found = None
        if sum(table.values.size for table in tables) <= n_programme_cells_max:
            found = _closest(tables, total)
        if found is None:
            solver, projected = Solver.RIPPLING, _rippled(tables, projected)
        else:
            solver, projected = Solver.CLARABEL, _agreeing(tables, found, total=total)
    unit = ROUNDING * max(float(np.abs(table.values).max()) for table in tables)
    values = [np.where((cells < 0) & (cells > -unit), 0.0, cells) for cells in projected]
    below = -min(float(cells.min()) for cells in values)
    return Reconciled(
        tuple(
            ConsistentTable(table.scope, cells) for table, cells in zip(tables, values, strict=True)
        ),
        misfit(tables, values),
        max(below, disagreement(tables, values, total=total)),
        solver,
    )


def _closest(tables: Sequence[NoisyTable], total: float | None) -> list[Floats] | None:
    """The solution of the quadratic programme; None if the solver gives up.

    ``min sum ||X_j - M_j||**2 / variance_j`` where marginals agree, ``X >= 0`` and the total holds.
    """
    cvxpy: Any = import_module("cvxpy")  # here, because loading it takes a second

    # Scaled so that cells and noise are near one: the solver's tolerances are absolute.
    unit = max(float(np.abs(table.values).max()) for table in tables)
    least = min(table.variance for table in tables)
    counts = np.concatenate([table.values.ravel() for table in tables]) / unit
    weights = np.concatenate(
        [np.full(table.values.size, math.sqrt(least / table.variance)) for table in tables]
    )
    cells = cvxpy.Variable(counts.size, nonneg=True)
    agreements = _agreements(tables)
    constraints = [agreements @ cells == 0] if agreements.shape[0] else []
    if total is not None:
        constraints.append(cvxpy.sum(cells[: tables[0].values.size]) == total / unit)
    distance = cvxpy.sum_squares(cvxpy.multiply(weights, cells - counts))
    problem = cvxpy.Problem(cvxpy.Minimize(distance), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate solution is projected, `residual` shows
            problem.solve(solver=cvxpy.CLARABEL)
    except cvxpy.error.SolverError:
        return None
    if cells.value is None:
        return None
    ends = np.cumsum([table.values.size for table in tables])[:-1]
    parts = np.split(np.asarray(cells.value, dtype=np.float64) * unit, ends)
    return [
        np.maximum(part, 0).reshape(table.values.shape)
        for table, part in zip(tables, parts, strict=True)
    ]


def _agreements(tables: Sequence[NoisyTable]) -> csr_array:
    """A matrix whose product with all cells, table after table, is zero exactly if they agree."""
    sizes = axis_sizes(tables)
    starts = np.cumsum([0, *(table.values.size for table in tables)])
    rows, columns, signs = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)]
    n_rows = 0
    for shared in meeting_sets(table.scope for table in tables):
        holders = [place for place, table in enumerate(tables) if shared.issubset(table.scope)]
        axes = tuple(sorted(shared))
        for pair in pairwise(holders):
            for place, sign in zip(pair, (1.0, -1.0), strict=True):
                marginal_cells = _marginal_cells(tables[place], axes, sizes)
                rows.append(n_rows + marginal_cells)
                columns.append(starts[place] + np.arange(marginal_cells.size))
                signs.append(np.full(marginal_cells.size, sign))
            n_rows += n_cells(axes, sizes)
    entries = (np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns)))
    return csr_array(coo_array(entries, shape=(n_rows, int(starts[-1]))))


def _marginal_cells(table: NoisyTable, axes: Scope, sizes: dict[str, int]) -> NDArray[np.int64]:
    """For each cell of the table, its cell in the marginal on `axes`."""
    numbers = np.arange(n_cells(axes, sizes)).reshape([sizes[name] for name in axes])
    lengths = [sizes[name] if name in axes else 1 for name in table.scope]
    return np.broadcast_to(numbers.reshape(lengths), table.values.shape).ravel()


def _rippled(tables: Sequence[NoisyTable], projected: list[Floats]) -> list[Floats]:
    """Ripple, then project, until no cell is noticeably below zero (PriView, SIGMOD 2014).

    The paper corrects one cell at a time; here all cells of a table are corrected at once.
    """
    everyone = float(projected[0].sum())
    if everyone <= 0:
        return [np.zeros_like(cells) for cells in projected]
    tolerances = [RIPPLE_ENOUGH * math.sqrt(table.variance) for table in tables]
    for _ in range(N_ROUNDS_MAX):
        lows = (float(cells.min()) for cells in projected)
        if all(low >= -enough for low, enough in zip(lows, tolerances, strict=True)):
            break
        rippled = [
            _ripple(cells, enough) for cells, enough in zip(projected, tolerances, strict=True)
        ]
        projected = _agreeing(tables, rippled, total=everyone)
    return projected


def _ripple(cells: Floats, tolerance: float) -> Floats:
    """Set negative cells to zero, and subtract the excess from their neighbours in equal parts.

    Neighbours differ along one axis. The total stays the same; marginals do not.
    """
    n_neighbours = max(1, sum(length - 1 for length in cells.shape))
    for _ in range(N_RIPPLES_MAX):
        below = np.minimum(cells, 0)
        if below.min() >= -tolerance:
            break
        taken = np.zeros_like(cells)
        for axis in range(cells.ndim):
            taken += below.sum(axis=axis, keepdims=True) - below
        cells = cells - below + taken / n_neighbours
    return cells


def _agreeing(
    tables: Sequence[NoisyTable], values: Sequence[Floats], *, total: float | None = None
) -> list[Floats]:
    """The projection of `values`, with the variances of the tables from which they came."""
    moved = [
        NoisyTable(table.scope, cells, table.variance)
        for table, cells in zip(tables, values, strict=True)
    ]
    return _values(reconciled(moved, total=total))


def _values(found: Reconciled) -> list[Floats]:
    return [table.values for table in found.tables]
