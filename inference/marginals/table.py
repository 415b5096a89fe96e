"""Tables of counts over the cells of a few axes: as measured, and as reconciled.

A table is an array with one dimension for each axis of its scope, so that leaving axes out is a
sum and putting them back is broadcasting. The names of levels are in the schema.

Nothing here estimates anything.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

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
        The noisy count of each cell: finite, possibly negative.
    variance : float
        The variance of each cell's noise, known from the mechanism, never estimated from values.
    """

    scope: Scope
    values: Floats
    variance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked(self.scope, self.values))
        if not 0 < self.variance < math.inf:
            raise ValueError(f"a variance must be positive and finite, not {self.variance}")


@dataclass(frozen=True, eq=False)
class ConsistentTable:
    """Counts of every cell of a scope that agree with those of other tables.

    The errors of its cells are dependent, also on the errors of those tables: it must not be used
    as a further independent measurement.

    Parameters
    ----------
    scope : tuple of str
    values : (n_levels of scope[0], ...) ndarray of float64
    standard_error : float or None
        The standard error of every cell; None if the map was not linear, so that there is none.
    """

    scope: Scope
    values: Floats
    standard_error: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked(self.scope, self.values))
        if self.standard_error is not None and not 0 <= self.standard_error < math.inf:
            raise ValueError(f"a standard error must be finite, not {self.standard_error}")


class Solver(StrEnum):
    """How tables that agree were computed."""

    PROJECTION = "projection"  # linear, in one pass
    CLARABEL = "Clarabel"  # an interior-point method, called by cvxpy
    RIPPLING = "rippling"
    MIRROR_DESCENT = "mirror descent"  # on the joint table


@dataclass(frozen=True, eq=False)
class Reconciled:
    """Tables that were made to agree, and how far their cells were moved for it.

    Parameters
    ----------
    tables : tuple of ConsistentTable
        In the given order.
    misfit : float
        Root mean square, over all cells, of the distance that a cell was moved in units of its
        noise. Noise alone gives less than 1; more shows a cause other than noise.
    residual : float
        The largest violation, in counts, of any property that the function promises: agreement of
        two tables, no cell below zero, the public total.
    solver : Solver
    """

    tables: tuple[ConsistentTable, ...]
    misfit: float
    residual: float
    solver: Solver = Solver.PROJECTION


def axis_sizes(tables: Iterable[NoisyTable | ConsistentTable]) -> dict[str, int]:
    """The number of levels of each axis; ValueError if two tables differ, or there are none."""
    sizes: dict[str, int] = {}
    given = list(tables)
    if not given:
        raise ValueError("at least one table is needed")
    for table in given:
        for name, size in zip(table.scope, table.values.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(
                    f"the axis {name} has {sizes[name]} levels in one table and {size} in another"
                )
    return sizes


def n_cells(scope: Iterable[str], sizes: dict[str, int]) -> int:
    """The number of cells of a scope, exactly."""
    return math.prod(sizes[name] for name in scope)


def marginal(values: Floats, scope: Scope, onto: Iterable[str]) -> Floats:
    """Sums over the axes of `scope` that are not in `onto`; the other axes keep their order."""
    kept = set(onto)
    if not kept.issubset(scope):
        raise ValueError(f"the columns {sorted(kept)} are not all in {scope}")
    summed = tuple(place for place, name in enumerate(scope) if name not in kept)
    return np.asarray(values.sum(axis=summed))


def spread(values: Floats, scope: Scope, over: Scope) -> Floats:
    """A table of `scope` as an array that broadcasts over the cells of a wider scope."""
    lengths = dict(zip(scope, values.shape, strict=True))
    return values.reshape([lengths.get(name, 1) for name in over])


def misfit(tables: Sequence[NoisyTable], values: Sequence[Floats]) -> float:
    """Root mean square of the distance of values from tables, in units of the noise."""
    squares = sum(
        float(((new - table.values) ** 2).sum()) / table.variance
        for table, new in zip(tables, values, strict=True)
    )
    return math.sqrt(squares / sum(table.values.size for table in tables))


def _checked(scope: Scope, values: Floats) -> Floats:
    check_scope(scope)
    locked = np.array(values, dtype=np.float64, order="C", copy=True)
    if locked.ndim != len(scope):
        raise ValueError(f"there are {locked.ndim} dimensions for {len(scope)} axes")
    if locked.size == 0 or not np.isfinite(locked).all():
        raise ValueError("a table needs at least one cell, and all cells must be finite")
    locked.flags.writeable = False
    return locked
