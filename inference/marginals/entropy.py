"""A marginal that was not measured: the one of greatest entropy that agrees with those that were.

It assumes no more dependence between columns than the tables show. That is a model: no table shows
how far it is from the truth, so the result has no standard error and no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cube.pace import checkpoint
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
SWEEPS_ENOUGH = 1e-9  # of the total: a residual at which sweeping ends
CONTRADICTED = 1e-6  # of the total: a residual after all sweeps that is not slow convergence
ALIKE = 1e-9  # of the total: a difference up to which two tables are taken as equal


@dataclass(frozen=True, eq=False)
class ModelledTable:
    """Counts that a model supplies where nothing was measured.

    Parameters
    ----------
    scope : tuple of str
    values : (n_levels of scope[0], ...) ndarray of float64
    residual : float
        The largest deviation from any cell of the tables' marginals, in counts: well above 0 if
        the tables contradict one another, or have cells below zero.
    """

    scope: Scope
    values: Floats
    residual: float


def maximum_entropy(scope: Scope, tables: Sequence[ConsistentTable]) -> ModelledTable:
    """The table of greatest entropy over `scope` that agrees with `tables`.

    Parameters
    ----------
    scope : tuple of str
        Sorted; each axis in at least one table. If `scope` is within one table, the result is that
        table's marginal.
    tables : sequence of ConsistentTable
        Consistent, and preferably nowhere negative.

    Raises
    ------
    ValueError
        If some axis of `scope` is in no table: nothing is known about it.
    TooLarge
        If the table has too many cells to be stored.

    Notes
    -----
    Iterative proportional fitting from the uniform table, which converges to the table of greatest
    entropy that meets the constraints (Csiszar, *I-divergence geometry*, Ann. Probab. 3, 1975). If
    no table meets them, least squares over all tables instead (see `joint.fitted_joint`), with
    equal weight for every cell of every constraint.

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
        raise TooLarge(
            f"A table of {', '.join(scope)} has more than {N_JOINT_CELLS_MAX} cells.",
            hint="Ask for fewer columns.",
        )
    wanted = _constraints(scope, tables)
    total = max(float(cells.sum()) for _, cells in wanted)
    values = _fitted([sizes[name] for name in scope], scope, wanted)
    if _residual(values, scope, wanted) > CONTRADICTED * max(total, 0.0):
        values = fitted_joint([NoisyTable(axes, cells, 1.0) for axes, cells in wanted]).values
    return ModelledTable(scope, values, _residual(values, scope, wanted))


def _constraints(scope: Scope, tables: Sequence[ConsistentTable]) -> list[tuple[Scope, Floats]]:
    """The constraints on `scope`: the tables' marginals, without those implied by others."""
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
    """Scale the uniform table to one constraint after another until all hold, or sweeps run out."""
    total = max(0.0, float(wanted[0][1].sum()))
    values = np.full(shape, total)
    values /= values.size
    for _ in range(N_SWEEPS_MAX):
        checkpoint()
        for axes, cells in wanted:
            sums = marginal(values, scope, axes)
            factors = np.divide(np.maximum(cells, 0), sums, out=np.zeros_like(sums), where=sums > 0)
            values = values * spread(factors, axes, scope)
        if _residual(values, scope, wanted) <= SWEEPS_ENOUGH * total:
            break
    return values


def _residual(values: Floats, scope: Scope, wanted: Sequence[tuple[Scope, Floats]]) -> float:
    return max(float(np.abs(marginal(values, scope, axes) - cells).max()) for axes, cells in wanted)
