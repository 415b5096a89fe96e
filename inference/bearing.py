"""Which axes to work on for a query: enough for the measured rows that bear on it, not too many.

A row can be left out freely: an estimate from a subset of the history is still unbiased and its
interval still exact, only wider. So the working axes are grown greedily, the most relevant rows
first, while the product of their classes stays within a limit.
"""

import math
from collections.abc import Collection, Mapping

from cube.query import Scope


def working_axes(
    scope: Scope,
    measured: Collection[Scope],
    n_classes: Mapping[str, int],
    *,
    n_cells_max: int,
) -> Scope:
    """The axes on which a query of `scope` is estimated.

    Parameters
    ----------
    scope : tuple of str
        The axes the query touches; always part of the result.
    measured : collection of tuple of str
        The scopes of the history's rows.
    n_classes : mapping
        How many classes the history cuts each axis into.
    n_cells_max : int
        The limit on the product of classes (the query's own axes are exempt).

    Notes
    -----
    Rows whose scope contains the query's come first (summing them answers it), then rows that
    share an axis, then the others (which bear on it through totals only); smaller ones first.
    """
    wanted = frozenset(scope)

    def cells(axes: Collection[str]) -> int:
        return math.prod(n_classes.get(name, 1) for name in axes)

    def relevance(candidate: Scope) -> tuple[bool, bool, int, Scope]:
        axes = frozenset(candidate)
        return (not axes >= wanted, not axes & wanted, cells(candidate), candidate)

    chosen = set(wanted)
    for candidate in sorted(measured, key=relevance):
        if cells(chosen | set(candidate)) <= n_cells_max:
            chosen |= set(candidate)
    return tuple(sorted(chosen))
