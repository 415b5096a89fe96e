"""Tables of counts over the cells of a few axes: as measured, and as reconciled.

A table is an array with one dimension for each axis of its scope, so that leaving axes out is a
sum and putting them back is broadcasting. What the levels are called is the schema's business.

Nothing here estimates anything.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope, check_scope

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Counts of every cell of a scope with independent noise, as they were measured.

    Parameters
    ----------
    scope : tuple of str
        Sorted and distinct; empty for a total alone.
    values : (n_levels of scope[0], ...) ndarray of float64
        Finite; may be negative.
    variance : float
        Of the noise of each cell; a fact about the mechanism, never worked out from values.
    """

    scope: Scope
    values: Floats
    variance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked(self.scope, self.values))
        if not 0 < self.variance < math.inf:
            raise ValueError(f"a variance is positive and finite, not {self.variance}")


@dataclass(frozen=True, eq=False)
class ConsistentTable:
    """Counts of every cell of a scope that agree with those of other tables.

    Its cells err together, and together with those tables: it must not be handed on as if it had
    been measured beside them.

    Parameters
    ----------
    scope : tuple of str
    values : (n_levels of scope[0], ...) ndarray of float64
    standard_error : float or None
        Of each cell, the same for all; None where no linear map was applied, so that it has none.
    """

    scope: Scope
    values: Floats
    standard_error: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked(self.scope, self.values))
        if self.standard_error is not None and not 0 <= self.standard_error < math.inf:
            raise ValueError(f"a standard error is finite, not {self.standard_error}")


@dataclass(frozen=True, eq=False)
class Reconciled:
    """Tables that were made to agree, and how far they had to move for it.

    Parameters
    ----------
    tables : tuple of ConsistentTable
        In the order in which they were given.
    misfit : float
        Root mean square, over all cells, of how far a cell moved in units of its noise. Noise alone
        moves cells by less than 1; more says that something other than noise was in the way.
    residual : float
        The most by which any promise of whoever made this is missed, in counts: two tables that
        disagree, a cell below zero, a total that is not the public one.
    """

    tables: tuple[ConsistentTable, ...]
    misfit: float
    residual: float


def axis_sizes(tables: Iterable[NoisyTable | ConsistentTable]) -> dict[str, int]:
    """The number of levels of each axis; ValueError if two tables differ, or there are none."""
    sizes: dict[str, int] = {}
    given = list(tables)
    if not given:
        raise ValueError("at least one table is needed")
    for table in given:
        for name, size in zip(table.scope, table.values.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"axis {name} has {sizes[name]} levels in one table, {size} here")
    return sizes


def n_cells(scope: Iterable[str], sizes: dict[str, int]) -> int:
    """The number of cells of a scope, exactly."""
    return math.prod(sizes[name] for name in scope)


def marginal(values: Floats, scope: Scope, onto: Iterable[str]) -> Floats:
    """Sums over the axes of `scope` that are not in `onto`; those that stay keep their order."""
    kept = set(onto)
    if not kept.issubset(scope):
        raise ValueError(f"{sorted(kept)} is not within {scope}")
    summed = tuple(place for place, name in enumerate(scope) if name not in kept)
    return np.asarray(values.sum(axis=summed))


def spread(values: Floats, scope: Scope, over: Scope) -> Floats:
    """A table of `scope` as an array that broadcasts over the cells of a wider scope."""
    lengths = dict(zip(scope, values.shape, strict=True))
    return values.reshape([lengths.get(name, 1) for name in over])


def misfit(tables: Sequence[NoisyTable], values: Sequence[Floats]) -> float:
    """Root mean square of how far values are from tables, in units of the noise."""
    squares = sum(
        float(((new - table.values) ** 2).sum()) / table.variance
        for table, new in zip(tables, values, strict=True)
    )
    return math.sqrt(squares / sum(table.values.size for table in tables))


def _checked(scope: Scope, values: Floats) -> Floats:
    check_scope(scope)
    locked = np.array(values, dtype=np.float64, order="C", copy=True)
    if locked.ndim != len(scope):
        raise ValueError(f"{locked.ndim} dimensions for {len(scope)} axes")
    if locked.size == 0 or not np.isfinite(locked).all():
        raise ValueError("a table has cells, and they are finite")
    locked.flags.writeable = False
    return locked
