"""Scopes that are read together: several scopes' counts are sums of the counts of their union.

Which scopes share a read follows from public sizes alone, and decides only how much work a choice
is. Nothing private is here.

Proof: proofs/choices.md, "Counts of several scopes".
"""

from collections.abc import Iterable, Mapping
from typing import Final

from cube.query import Scope

N_CELLS_TOGETHER: Final = 2**16  # few enough that adding up is less work than another read


def read_together(scopes: Iterable[Scope], sizes: Mapping[str, int]) -> dict[Scope, Scope]:
    """The scope that is read for each scope: itself, or one with further axes.

    Parameters
    ----------
    scopes : iterable of Scope
    sizes : mapping of str to int
        The number of levels of each axis.

    Notes
    -----
    Axes are dealt into groups of few combinations, and a scope is read with all axes of the groups
    that it touches. A scope of few axes then shares its read with all scopes that touch the same
    groups. An axis of many levels is a group of its own.

    Examples
    --------
    >>> together = read_together([("a", "c"), ("a", "d")], {"a": 2, "b": 2, "c": 2, "d": 99})
    >>> together["a", "c"], together["a", "d"]
    (('a', 'c'), ('a', 'c', 'd'))
    """
    asked = set(scopes)
    group = _groups({axis for scope in asked for axis in scope}, max(map(len, asked)), sizes)
    return {scope: tuple(sorted({axis for one in scope for axis in group[one]})) for scope in asked}


def _groups(axes: Iterable[str], n_touched: int, sizes: Mapping[str, int]) -> dict[str, Scope]:
    """The group of each axis: `n_touched` groups of several axes have few cells together."""
    groups: list[Scope] = []
    n_cells = 1
    for axis in sorted(axes, key=lambda axis: (sizes[axis], axis)):
        n_cells *= sizes[axis]
        if groups and n_cells**n_touched <= N_CELLS_TOGETHER:
            groups[-1] += (axis,)
        else:
            groups.append((axis,))
            n_cells = sizes[axis]
    return {axis: group for group in groups for axis in group}
