"""Noisy tables made to agree: the weighted least-squares projection, in one pass.

A table is the sum of its interactions: for each set of its axes, a part that depends on these axes
alone and sums to zero along each of them. Tables agree when the interactions that they share are
equal, and noise with one variance in all cells of a table does not mix interactions. So each
interaction is averaged separately, over the tables that contain it, with inverse variances; that
solves the whole least-squares problem, and gives the variance of every cell as well.

Linear, so unbiased; cells below zero stay below zero (see `nonnegative`).
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from cube.pace import checkpoint
from cube.query import Scope
from cube.refusals import TooLarge
from inference.marginals.table import (
    ConsistentTable,
    Floats,
    NoisyTable,
    Reconciled,
    axis_sizes,
    marginal,
    misfit,
    n_cells,
    spread,
)

N_SHARED_MAX = 4096  # sets of axes that tables share: beyond this, comparing sets takes seconds


def reconciled(tables: Sequence[NoisyTable], *, total: float | None = None) -> Reconciled:
    """The closest tables that agree wherever they overlap, with their standard errors.

    Parameters
    ----------
    tables : sequence of NoisyTable
        At least one, with independent noise; several may have the same scope.
    total : float, optional
        The number of records, where it is public; treated as exact.

    Returns
    -------
    Reconciled
        Tables in the given order. ``sum ||X_j - M_j||**2 / variance_j`` is the least possible.

    Notes
    -----
    For every set A of axes that tables share, smaller sets first, the marginals on A are replaced
    by their mean with weights ``|A| / (variance_j |V_j|)``, and the difference is spread evenly
    over the cells of ``V_j``; ``|.|`` counts cells. Larger sets do not disturb smaller ones, whose
    marginals agree by then. The unweighted form is the consistency step of PriView (Qardaji, Yang
    and Li, SIGMOD 2014); with these weights and all intersections it is the projection itself.

    Examples
    --------
    >>> sexes = NoisyTable(("sex",), np.array([40.0, 70.0]), 2.0)
    >>> everyone = NoisyTable((), np.array(100.0), 4.0)
    >>> one, other = reconciled([sexes, everyone]).tables
    >>> one.values.tolist(), float(other.values), one.standard_error
    ([37.5, 67.5], 105.0, 1.224744871391589)
    """
    values = projected(tables, total=total)
    errors = standard_errors(tables, [table.scope for table in tables], total=total)
    return Reconciled(
        tuple(
            ConsistentTable(table.scope, moved, error)
            for table, moved, error in zip(tables, values, errors, strict=True)
        ),
        misfit(tables, values),
        disagreement(tables, values, total=total),
    )


def projected(tables: Sequence[NoisyTable], *, total: float | None = None) -> list[Floats]:
    """The values of `reconciled`, without standard errors or residuals."""
    if total is not None and not math.isfinite(total):
        raise ValueError("a total must be finite")
    sizes = axis_sizes(tables)
    values = [table.values for table in tables]
    for shared in meeting_sets((table.scope for table in tables), total=total):
        checkpoint()
        holders = [place for place, table in enumerate(tables) if shared.issubset(table.scope)]
        if len(holders) == 1 and (shared or total is None):
            continue
        sums = [marginal(values[place], tables[place].scope, shared) for place in holders]
        weights = np.array([_precision(tables[place]) for place in holders])
        agreed = np.tensordot(weights / weights.sum(), np.array(sums), axes=1)
        if total is not None and not shared:
            agreed = np.asarray(total)
        axes = tuple(sorted(shared))
        for place, held in zip(holders, sums, strict=True):
            scope = tables[place].scope
            share = n_cells(shared, sizes) / values[place].size
            values[place] = values[place] + spread((agreed - held) * share, axes, scope)
    return values


def standard_errors(
    tables: Sequence[NoisyTable], scopes: Sequence[Scope], *, total: float | None = None
) -> list[float]:
    """The standard error of each cell of the reconciled table of each scope.

    Parameters
    ----------
    tables : sequence of NoisyTable
        As passed to `reconciled`; only scopes, sizes and variances are read.
    scopes : sequence of tuple of str
        Each within the scope of some table: the error is of that reconciled table's marginal.
    total : float, optional
        As passed to `reconciled`.

    Notes
    -----
    The marginals on A have noise of variance ``variance_j |V_j| / |A|`` in each cell, and so has
    their interaction, centred along the axes of A. The inverse-variance mean over the tables that
    contain A leaves ``1 / (|A| S_A)``, where ``S_A = sum 1 / (variance_j |V_j|)``. Interactions are
    uncorrelated, and a cell of the marginal on V contains ``|A| / |V|`` of each, so that its
    variance is ::

        sum over A within V of  d_A / S_A / |V|**2,    d_A = product over A of (n_levels - 1)

    ``S_A`` depends only on the set of tables that contain A. Subsets with the same such set are
    counted together, by the smallest of the `meeting_sets` that contains them: there are ``2**|V|``
    subsets and few meeting sets. A public total makes ``S_A`` of the empty set infinite.
    """
    sizes = axis_sizes(tables)
    sets = meeting_sets([*(table.scope for table in tables), *scopes], total=total)
    dimensions: dict[frozenset[str], int] = {}
    parts: dict[frozenset[str], float] = {}
    for one in sets:
        precision = math.fsum(_precision(table) for table in tables if one.issubset(table.scope))
        if precision == 0:
            raise ValueError(f"no table covers {sorted(one)}")
        smaller = sum(count for other, count in dimensions.items() if other < one)
        dimensions[one] = n_cells(one, sizes) - smaller
        is_known = total is not None and not one
        parts[one] = 0.0 if is_known else dimensions[one] / precision
    return [
        math.sqrt(math.fsum(part for one, part in parts.items() if one.issubset(scope)))
        / n_cells(scope, sizes)
        for scope in scopes
    ]


def meeting_sets(scopes: Iterable[Scope], *, total: float | None = None) -> list[frozenset[str]]:
    """All intersections of scopes, the scopes included, smaller ones first.

    A public `total` adds the empty set. Raises `TooLarge` beyond a limit.
    """
    given = {frozenset(scope) for scope in scopes}
    found, fresh = set(given), set(given)
    while fresh:
        fresh = {one & other for one in fresh for other in given} - found
        found |= fresh
        if len(found) > N_SHARED_MAX:
            raise TooLarge(
                f"The tables share more than {N_SHARED_MAX} sets of columns.",
                hint="Use fewer tables, or tables that overlap less.",
            )
    if total is not None:
        found.add(frozenset())
    return sorted(found, key=lambda one: (len(one), sorted(one)))


def disagreement(
    tables: Sequence[NoisyTable], values: Sequence[Floats], *, total: float | None = None
) -> float:
    """The largest difference between marginals that two of the tables have in common."""
    worst = 0.0
    for shared in meeting_sets((table.scope for table in tables), total=total):
        sums = [
            marginal(cells, table.scope, shared)
            for table, cells in zip(tables, values, strict=True)
            if shared.issubset(table.scope)
        ]
        if total is not None and not shared:
            sums.append(np.asarray(total))
        worst = max(worst, float(np.ptp(np.array(sums), axis=0).max()))
    return worst


def _precision(table: NoisyTable) -> float:
    """One over the variance of the table's total."""
    return 1 / (table.variance * table.values.size)
