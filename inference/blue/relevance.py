"""Which rows of the history a query is estimated from: the relevant ones, up to a limit.

Rows can be left out safely: an estimate from a subset of the history is still unbiased and its
interval still exact, only wider. So the rows are taken scope by scope, the most relevant first,
while the product of their axes' classes and the number of rows stay within limits.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cube.query import Scope


@dataclass(frozen=True, slots=True)
class RelevantRows:
    """The rows from which a query is estimated.

    Parameters
    ----------
    axes : tuple of str
        The axes of the query and of the rows.
    scopes : tuple of tuple of str
        The scopes of the rows that are used, sorted.
    n_rows : int
        The number of these rows.
    """

    axes: Scope
    scopes: tuple[Scope, ...]
    n_rows: int


def relevant_rows(
    scope: Scope,
    n_rows: Mapping[Scope, int],
    n_classes: Mapping[str, int],
    *,
    n_cells_max: int,
    n_rows_max: int,
) -> RelevantRows:
    """Choose the rows from which a query of `scope` is estimated.

    Parameters
    ----------
    scope : tuple of str
        The axes that the query touches; always part of the result.
    n_rows : mapping
        The number of rows that the history has on each scope.
    n_classes : mapping
        The number of classes into which the history cuts each axis.
    n_cells_max : int
        The limit on the product of classes (the query's own axes are exempt).
    n_rows_max : int
        The limit on the number of rows (the most relevant scope is exempt).

    Notes
    -----
    Rows whose scope contains the query's scope come first (their sums answer it), then rows that
    share an axis, then the others (which are relevant through totals only); smaller ones first.
    """
    wanted = frozenset(scope)

    def cells(axes: Collection[str]) -> int:
        n_cells = 1
        for name in axes:  # every scope of the history is asked about: no generator
            n_cells *= n_classes.get(name, 1)
        return n_cells

    def relevance(candidate: Scope) -> tuple[bool, bool, int, Scope]:
        is_within = len(candidate) >= len(wanted) and wanted.issubset(candidate)
        return (not is_within, wanted.isdisjoint(candidate), cells(candidate), candidate)

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
