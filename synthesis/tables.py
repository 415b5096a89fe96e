"""Estimates for synthesis: counts over the levels, or buckets, of one or two columns.

An estimate is unbiased, with a known variance and independent noise: two estimates that share noise
must not be passed as two. Whether it was bought for this table or found in the history is not known
here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cube.query import Scope, check_scope

N_DIMENSIONS_MAX = 2

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """A public column of the table to make.

    Parameters
    ----------
    name : str
    size : int
        The number of its levels, at least 1.
    n_ordered : int
        How many of them, from the first, are ordered so that neighbours are similar (bins of a
        number, for example). 0 for categories; the levels after them (OTHER, NULL) have no
        neighbours.
    """

    name: str
    size: int
    n_ordered: int = 0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"{self.name} must have at least one level, not {self.size}")
        if not 0 <= self.n_ordered <= self.size:
            raise ValueError(
                f"the number of ordered levels of {self.name} must be 0 to {self.size}, "
                f"not {self.n_ordered}"
            )


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """Unbiased estimates of the counts of one or two columns' cells.

    Parameters
    ----------
    scope : tuple of str
        The columns, sorted by name.
    values : (size of scope[0], ...) ndarray of float64
        The estimated count of each cell, possibly negative.
    variance : float or ndarray, positive
        The variance of each cell's noise, which is independent; one number stands for all cells.
    """

    scope: Scope
    values: Floats
    variance: Floats

    def __post_init__(self) -> None:
        check_scope(self.scope)
        values = np.array(self.values, dtype=np.float64)
        if not 1 <= values.ndim == len(self.scope) <= N_DIMENSIONS_MAX:
            raise ValueError(f"there are {values.ndim} dimensions for the columns {self.scope}")
        variance = np.array(np.broadcast_to(self.variance, values.shape), dtype=np.float64)
        if not (np.isfinite(values).all() and np.isfinite(variance).all()):
            raise ValueError("estimates and variances must be finite")
        if not (variance > 0).all():
            raise ValueError("variances must be positive, because every estimate has noise")
        for name, array in (("values", values), ("variance", variance)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def margin(self, column: str) -> "TableEstimate":
        """The sums over the other column, if there is one."""
        others = tuple(axis for axis, name in enumerate(self.scope) if name != column)
        if len(others) == len(self.scope):
            raise ValueError(f"{column} is not in {self.scope}")
        values, variance = self.values.sum(axis=others), self.variance.sum(axis=others)
        return TableEstimate((column,), values, variance)


def combined(tables: Iterable[TableEstimate]) -> TableEstimate:
    """The best linear unbiased combination of independent estimates of the same cells.

    Notes
    -----
    Each estimate has the weight ``1 / variance``, and the variance of the combination is one over
    the sum of the weights [1]_.

    References
    ----------
    .. [1] W. G. Cochran, "Problems Arising in the Analysis of a Series of Similar Experiments",
       Supplement to the Journal of the Royal Statistical Society 4, 1937.

    Examples
    --------
    >>> looks = [TableEstimate(("sex",), np.array([value, 1.0]), 2.0) for value in (10.0, 14.0)]
    >>> both = combined(looks)
    >>> both.values, both.variance
    (array([12.,  1.]), array([1., 1.]))
    """
    tables = list(tables)
    if len({(table.scope, table.values.shape) for table in tables}) != 1:
        raise ValueError("at least one estimate is needed, and all must cover the same cells")
    weight = np.sum([1 / table.variance for table in tables], axis=0)
    weighted = np.sum([table.values / table.variance for table in tables], axis=0)
    return TableEstimate(tables[0].scope, weighted / weight, 1 / weight)


def estimated_total(tables: Iterable[TableEstimate]) -> float:
    """The number of rows: the inverse-variance mean of the tables' sums, never below 0."""
    sums = [(float(table.values.sum()), float(table.variance.sum())) for table in tables]
    weight = sum(1 / variance for _, variance in sums)
    weighted = sum(value / variance for value, variance in sums)
    return max(0.0, weighted / weight) if sums else 0.0


def expected_l1(table: TableEstimate) -> float:
    """The approximate expected L1 noise of a table: exact for Gaussian noise, high for Laplace."""
    return float(np.sqrt(2 / np.pi * table.variance).sum())


def all_pairs(names: Iterable[str]) -> list[Scope]:
    """Every pair of columns, as sorted scopes in sorted order."""
    return list(combinations(sorted(names), 2))
