"""A marginal that nobody measured: the most even one that agrees with those that were.

It says of the columns' dependence what the tables say and nothing beside. That is a model: no
table tells how far the truth is from it, so the result has no standard error and no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cube.query import Scope, check_scope
from cube.refusals import TooLarge
from inference.marginals.joint import N_JOINT_CELLS_MAX, fitted_joint
from inference.marginals.table import (
    ConsistentTable,
    Floats,
    NoisyTable,
    axis_sizes,
    marginal,
    n_cells,
    spread,
)

N_SWEEPS_MAX = 1000
SWEEPS_ENOUGH = 1e-9  # of the total: sweeping ends
CONTRADICTED = 1e-6  # of the total: what is still missed after all sweeps was not slowness
ALIKE = 1e-9  # of the total: two tables that say the same are one


@dataclass(frozen=True, eq=False)
class ModelledTable:
    """Counts that a model supplies where nothing was measured.

    Parameters
    ----------
    scope : tuple of str
    values : (n_levels of scope[0], ...) ndarray of float64
    residual : float
        The most by which any cell of a table's marginal is missed, in counts: well above 0 if the
        tables contradict one another, or have cells below zero.
    """

    scope: Scope
    values: Floats
    residual: float


def maximum_entropy(scope: Scope, tables: Sequence[ConsistentTable]) -> ModelledTable:
    """The table of greatest entropy over `scope` that agrees with `tables`.

    Parameters
    ----------
    scope : tuple of str
        Sorted; each axis in at least one table. Its marginal if it is within one.
    tables : sequence of ConsistentTable
        Consistent, and best nowhere negative.

    Raises
    ------
    ValueError
        If no table has an axis of `scope`: nothing is known about it.
    TooLarge
        If the table has too many cells to be written out.

    Notes
    -----
    Iterative proportional fitting from the uniform table, which tends to the table of greatest
    entropy that meets the constraints (Csiszar, *I-divergence geometry*, Ann. Probab. 3, 1975). If
    none meets them, least squares over all tables instead, see `joint.fitted_joint`, every cell of
    every constraint weighing the same.

    Examples
    --------
    >>> a = ConsistentTable(("a",), np.array([9.0, 1.0]))
    >>> b = ConsistentTable(("b",), np.array([5.0, 5.0]))
    >>> maximum_entropy(("a", "b"), [a, b]).values.tolist()
    [[4.5, 4.5], [0.5, 0.5]]
    """
    check_scope(scope)
    sizes = axis_sizes(tables)
    unknown = sorted(set(scope) - sizes.keys())
    if unknown:
        raise ValueError(f"no table has {unknown}")
    for table in tables:
        if set(scope).issubset(table.scope):
            return ModelledTable(scope, marginal(table.values, table.scope, scope), 0.0)
    if n_cells(scope, sizes) > N_JOINT_CELLS_MAX:
        raise TooLarge(f"A table of {', '.join(scope)} has more than {N_JOINT_CELLS_MAX} cells.")
    wanted = _constraints(scope, tables)
    total = max(float(cells.sum()) for _, cells in wanted)
    values = _fitted([sizes[name] for name in scope], scope, wanted)
    if _residual(values, scope, wanted) > CONTRADICTED * max(total, 0.0):
        values = fitted_joint([NoisyTable(axes, cells, 1.0) for axes, cells in wanted]).values
    return ModelledTable(scope, values, _residual(values, scope, wanted))


def _constraints(scope: Scope, tables: Sequence[ConsistentTable]) -> list[tuple[Scope, Floats]]:
    """What tables say about `scope`: their marginals, less those that others of them imply."""
    kept = [tuple(name for name in table.scope if name in scope) for table in tables]
    found: list[tuple[Scope, Floats]] = []
    for axes, table in zip(kept, tables, strict=True):
        if any(set(axes) < set(other) for other in kept):
            continue
        cells = marginal(table.values, table.scope, axes)
        near = ALIKE * abs(float(cells.sum()))
        if not any(axes == one and np.allclose(cells, said, 0, near) for one, said in found):
            found.append((axes, cells))
    return found


def _fitted(shape: list[int], scope: Scope, wanted: Sequence[tuple[Scope, Floats]]) -> Floats:
    """Scale the uniform table to one constraint after another, until all are met or time is up."""
    total = max(0.0, float(wanted[0][1].sum()))
    values = np.full(shape, total)
    values /= values.size
    for _ in range(N_SWEEPS_MAX):
        for axes, cells in wanted:
            sums = marginal(values, scope, axes)
            factors = np.divide(np.maximum(cells, 0), sums, out=np.zeros_like(sums), where=sums > 0)
            values = values * spread(factors, axes, scope)
        if _residual(values, scope, wanted) <= SWEEPS_ENOUGH * total:
            break
    return values


def _residual(values: Floats, scope: Scope, wanted: Sequence[tuple[Scope, Floats]]) -> float:
    return max(float(np.abs(marginal(values, scope, axes) - cells).max()) for axes, cells in wanted)
