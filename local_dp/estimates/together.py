"""Answers a query from all tables that share an attribute with it, in batches of rows.

Tables of overlapping combinations are made to agree by the weighted projection that marginals have,
with weights that depend on channels and numbers of answers alone. Of a table, an answer depends on
its margin on the attributes of the query alone; tables with the same of them differ in their
precision only. So what is projected is as large as the query, however many tables there are and
however large, and rows with the same margin have the same part of a table: of the pairs of two
attributes, a table that shares one of them has as many parts as that one has levels.

Where respondents answer several combinations, what tables of a view say goes together as the
attributes do, at the shares that the tables agree on.

Nothing here chooses a law: see `collection`.

The argument is in `proofs/estimates.md`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint
from cube.query import Scope
from cube.runtime import cached_property
from inference.marginals import NoisyTable, marginal, projected
from local_dp.channels import Floats
from local_dp.estimates.shares import N_ENTRIES_AT_ONCE, TableEstimate, project_simplex

N_PROJECTED_AT_ONCE = 2**20  # coefficients: 8 MB, a few times over
ROWS = "\0"  # a name that no attribute has; it sorts before all of them


@dataclass(frozen=True, eq=False)
class ScopedTable:
    """A combination that has answers.

    Parameters
    ----------
    scope : tuple of str
        Its attributes.
    shape : tuple of int
        The number of levels of each.
    estimate : TableEstimate
    """

    scope: Scope
    shape: tuple[int, ...]
    estimate: TableEstimate

    @property
    def precision(self) -> float:
        """One over the variance of the total of its cells, if each had the typical one."""
        return 1 / (self.estimate.typical_variance * self.estimate.n_cells)

    def within(self, scope: Scope) -> Scope:
        """Its attributes that are in a scope."""
        return tuple(name for name in self.scope if name in scope)

    def margin(self, scope: Scope) -> Floats:
        """The estimated shares of the cells of some of its attributes."""
        return marginal(self.estimate.shares.reshape(self.shape), self.scope, scope)

    def widened(self, scope: Scope, coefficients: Floats) -> Floats:
        """Coefficients of the cells of some of its attributes, as those of its own cells."""
        return _widened(self.scope, self.shape, scope, coefficients)

    def batches(self, n_queries: int) -> Iterator[slice]:
        """As many queries at a time as memory allows, each a step of the statement's work."""
        for some in batches(n_queries, N_ENTRIES_AT_ONCE // self.estimate.n_places):
            checkpoint()
            yield some

    def moments(self, scope: Scope, coefficients: Floats) -> tuple[Floats, Floats]:
        """Variances and third moments of queries on some of its attributes; see `TableEstimate`."""
        variances = np.zeros(coefficients.shape[1])
        thirds = np.zeros_like(variances)
        for some in self.batches(variances.size):
            own = self.widened(scope, coefficients[:, some])
            variances[some], thirds[some] = self.estimate.moments(own)
        return variances, thirds


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Which tables have respondents in common.

    Parameters
    ----------
    parts : (n_tables, n_tables) ndarray
        For two tables, the number of respondents who answered both, over the product of the
        numbers who answered each. 0 for a table with itself.
    n_answered : int
        How many combinations each respondent answers.
    """

    parts: Floats
    n_answered: int


@dataclass(frozen=True, eq=False)
class TablesTogether:
    """All tables that share an attribute with a scope.

    Parameters
    ----------
    scope : tuple of str
    tables : sequence of ScopedTable
        Randomised independently. One at least has all of the scope, each some of it.
    overlaps : Overlaps, optional
        Of the tables; none are about the same respondents by default.
    """

    scope: Scope
    tables: Sequence[ScopedTable]
    overlaps: Overlaps | None = None

    def __post_init__(self) -> None:
        if self.scope not in self._alike or () in self._alike:
            raise ValueError(
                f"every table must share an attribute of {self.scope}, and one table must have "
                "all of them"
            )

    def values(self, coefficients: Floats) -> Floats:
        """Queries of the shares that the tables agree on, (n_queries,)."""
        return np.asarray(self._agreed @ coefficients)

    def moments(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """The variance of each value, and the sum of third moments of all answers' parts of it.

        Parameters
        ----------
        coefficients : (n_cells of the scope, n_queries) ndarray
        """
        variances = np.zeros(coefficients.shape[1])
        thirds = np.zeros_like(variances)
        n_at_once = N_PROJECTED_AT_ONCE // sum(one.values.size for one in self._merged)
        for place, (scope, tables) in enumerate(self._alike.items()):
            first, of_row = self._distinct(scope, coefficients)
            precision = sum(table.precision for table in tables)
            found = np.zeros((2, first.size))
            for some in batches(first.size, n_at_once):
                checkpoint()
                part = self._parts(coefficients[:, first[some]])[place]
                for table in tables:
                    found[:, some] += table.moments(scope, part * (table.precision / precision))
            variances += found[0, of_row]
            thirds += found[1, of_row]
        if self.overlaps is None:
            return variances, thirds
        # Tables of a view have no attribute in common, so no more of them than the scope's
        n_parts = min(self.overlaps.n_answered, len(self.scope))
        return variances + self._dependence(self.overlaps, coefficients), n_parts**2 * thirds

    def _dependence(self, overlaps: Overlaps, coefficients: Floats) -> Floats:
        """What the covariance of tables adds to each variance, at the likely shares.

        At least 0: what shares that are estimated say in favour of an answer is not relied on.
        """
        shares = project_simplex(self._agreed)
        between = self._weights @ overlaps.parts @ self._weights.T
        found = np.zeros(coefficients.shape[1])
        shape = self._merged[self._holder].values.shape
        for some in batches(found.size, N_PROJECTED_AT_ONCE // (shares.size * len(between))):
            checkpoint()
            parts = zip(self._alike, self._parts(coefficients[:, some]), strict=True)
            of_cell = np.array([_widened(self.scope, shape, *part) for part in parts])
            of_cell -= np.einsum("c,scq->sq", shares, of_cell)[:, np.newaxis]
            met = np.einsum("st,scq,tcq->cq", between, of_cell, of_cell, optimize=True)
            found[some] = shares @ met
        return np.maximum(found, 0.0)

    @cached_property
    def _agreed(self) -> Floats:
        """The shares of the scope's cells that the tables agree on."""
        return np.asarray(projected(self._merged, total=1.0)[self._holder].ravel())

    @cached_property
    def _weights(self) -> Floats:
        """The weight of each table in the mean of tables with the same attributes of the scope.

        (n_merged, n_tables); 0 where a table has others.
        """
        found = np.array(
            [
                [one.precision * (one.within(self.scope) == scope) for one in self.tables]
                for scope in self._alike
            ]
        )
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    @cached_property
    def _alike(self) -> dict[Scope, list[ScopedTable]]:
        """The tables that have the same attributes of the scope, by these."""
        found: dict[Scope, list[ScopedTable]] = {}
        for table in self.tables:
            found.setdefault(table.within(self.scope), []).append(table)
        return found

    @cached_property
    def _merged(self) -> list[NoisyTable]:
        """For each of these attributes, the weighted mean of their margins."""
        found = []
        for scope, tables in self._alike.items():
            precision = sum(table.precision for table in tables)
            weights = np.array([table.precision for table in tables]) / precision
            margins = np.array([table.margin(scope) for table in tables])
            mean = np.tensordot(weights, margins, axes=1)
            found.append(NoisyTable(scope, mean, 1 / (precision * mean.size)))
        return found

    @property
    def _holder(self) -> int:
        return list(self._alike).index(self.scope)

    def _parts(self, columns: Floats) -> list[Floats]:
        """The coefficients of each merged table's cells in the projected queries.

        As `cell_coefficients`, of all queries at once: they are one more axis, of every table. That
        shares add up to 1 is known, so a constant in the coefficients makes no difference.
        """
        n_queries, holder = columns.shape[1], self._holder
        probes = []
        for place, one in enumerate(self._merged):
            cells = np.zeros((n_queries, *one.values.shape))
            if place == holder:
                cells += (columns - columns.mean(axis=0)).T.reshape(cells.shape) * one.variance
            probes.append(NoisyTable((ROWS, *one.scope), cells, one.variance))
        moved = projected(probes)
        return [
            cells.reshape(n_queries, -1).T / one.variance
            for cells, one in zip(moved, self._merged, strict=True)
        ]

    def _distinct(self, scope: Scope, columns: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Queries with distinct margins on a scope, and which of these each query agrees with."""
        n_queries = columns.shape[1]
        if scope == self.scope:
            return np.arange(n_queries), np.arange(n_queries)
        shape = self._merged[self._holder].values.shape
        lost = tuple(place for place, name in enumerate(self.scope) if name not in scope)
        margins = columns.reshape(*shape, n_queries).sum(axis=lost).reshape(-1, n_queries)
        _, first, of_row = np.unique(margins, axis=1, return_index=True, return_inverse=True)
        return first, of_row.ravel()


def _widened(scope: Scope, shape: Sequence[int], within: Scope, coefficients: Floats) -> Floats:
    """Coefficients of the cells of some of a scope's attributes, as those of all of its cells."""
    lengths = [size if name in within else 1 for name, size in zip(scope, shape, strict=True)]
    n_queries = coefficients.shape[1]
    columns = coefficients.reshape(*lengths, n_queries)
    return np.broadcast_to(columns, (*shape, n_queries)).reshape(-1, n_queries)


def batches(n: int, n_at_once: int) -> Iterator[slice]:
    """Slices of so many at a time, of one at least."""
    step = max(1, n_at_once)
    return (slice(first, min(n, first + step)) for first in range(0, n, step))
