"""Which rows of the history to work on for a query: those that bear on it, and not too many.

A row can be left out freely: an estimate from a subset of the history is still unbiased and its
interval still exact, only wider. So the rows are taken scope by scope, the most relevant first,
while the product of their axes' classes and the number of rows stay within limits.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cube.query import Scope


@dataclass(frozen=True, slots=True)
class RelevantRows:
    """What a query is estimated from.

    Parameters
    ----------
    axes : tuple of str
        The axes to work on: the query's own and those of the rows.
    scopes : tuple of tuple of str
        The scopes of the rows that are used, sorted.
    n_rows : int
        How many rows these are.
    """

    axes: Scope
    scopes: tuple[Scope, ...]
    n_rows: int


def rows_that_bear(
    scope: Scope,
    n_rows: Mapping[Scope, int],
    n_classes: Mapping[str, int],
    *,
    n_cells_max: int,
    n_rows_max: int,
) -> RelevantRows:
    """Choose the rows that a query of `scope` is estimated from.

    Parameters
    ----------
    scope : tuple of str
        The axes the query touches; always part of the result.
    n_rows : mapping
        The number of rows that the history has on each scope.
    n_classes : mapping
        How many classes the history cuts each axis into.
    n_cells_max : int
        The limit on the product of classes (the query's own axes are exempt).
    n_rows_max : int
        The limit on the number of rows (the most relevant scope is exempt).

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

    axes, scopes, n_chosen = set(wanted), list[Scope](), 0
    for candidate in sorted((known for known in n_rows if n_rows[known]), key=relevance):
        n_together = n_chosen + n_rows[candidate]
        if scopes and n_together > n_rows_max:
            continue
        if axes.issuperset(candidate) or cells(axes | set(candidate)) <= n_cells_max:
            axes |= set(candidate)
            scopes.append(candidate)
            n_chosen = n_together
    return RelevantRows(tuple(sorted(axes)), tuple(sorted(scopes)), n_chosen)
