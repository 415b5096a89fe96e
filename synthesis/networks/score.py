"""How well a column is explained by parents: BIC, with what noise adds to it taken off.

Scores are sums over columns, and each is computed once. Nothing is searched here.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from synthesis.fitting import projected
from synthesis.networks.graph import Dag
from synthesis.networks.source import ShareTable, TableSource
from synthesis.tables import Column, Floats

Parents: TypeAlias = tuple[int, ...]  # places of columns, ascending

N_CELLS_MAX: Final = 2**16  # of a table of a child and its parents
N_CELLS_KEPT: Final = 2**22  # of tables that were counted already: 32 MB
N_LOG_MIN: Final = 64  # the fewest rows whose logarithm is asked for: of fewer, chance would do
N_NULL_DRAWS: Final = 64  # their mean is known to an eighth of the spread of one
N_NULL_DRAWS_MIN: Final = 8  # for large tables: each draw is near the mean
N_FREE_DRAWN: Final = 2**10  # free cells that are drawn of larger ones: the mean to 5 %


@dataclass(frozen=True, slots=True)
class Information:
    """The information of parents about a child, in nats.

    Parameters
    ----------
    found : float
        The mutual information in the table.
    null : float
        What such a table would show on average if child and parents were independent: chance
        makes any table look dependent, small cells and noise more so.
    """

    found: float
    null: float


class BicScore:
    """The score of a column with its parents, for parents within a bound.

    Parameters
    ----------
    source : TableSource
    degree : int
        The most parents of a column; a table has a column more.
    seed : int
        The seed for simulated tables of independent columns; it protects nothing.

    Raises
    ------
    ValueError
        If the source has no tables of `degree` + 1 columns.

    Notes
    -----
    The score of a column is its log-likelihood given its parents, less half the logarithm of the
    number of rows for each free share [1]_; higher is better. Of `n` rows, independent columns show
    ``I0 = (|X| - 1) (|P| - 1) / (2 n)`` nats on average, so that in terms of shares it is ::

        n (I(X; P) - ln(n) I0(X; P) - H(X)) - (|X| - 1) ln(n) / 2

    which asks of parents that they say ln(n) times as much as chance would. Noise says something,
    too: with tables that have it, ``I0`` is what independent columns would show in such a table,
    found by simulation (`null_information`). Small cells and large tables show most, and an
    allowance for them that looks at the number of cells alone would make arcs of noise. With exact
    counts this is the textbook's score.

    `n` is one number for all scores: the least effective number of rows (`source.effective_rows`)
    of any table that may be compared. With a number for each table, a noisier one would weigh its
    log-likelihood less, and parents would seem to be better or worse for their noise alone. Noise
    may leave less than a row: the logarithm is of `N_LOG_MIN` rows at least, so that it still asks
    for more than chance.

    Tables of independent columns come about as the source says (`NoisyTables`): noise that was
    added to counts is added again, answers that were randomised are randomised again. What is drawn
    depends on a table and the seed alone, so a score is the same whenever it is asked for. Graphs
    that no table tells apart have the same score with exact counts, and nearly the same with noise:
    the tables of a column with its parents then contradict each other a little.

    References
    ----------
    .. [1] G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978.
    """

    def __init__(self, source: TableSource, *, degree: int, seed: int = 0) -> None:
        if not 0 <= degree < source.width_max:
            raise ValueError(
                f"{degree} parents need tables of {degree + 1} columns, but the tables "
                f"have at most {source.width_max}"
            )
        self.source = source
        self.degree = degree
        self._seed = seed
        self._kept: dict[Parents, ShareTable] = {}  # the latest, as many as there is room for
        self._n_kept = 0
        self._entropies: dict[int, float] = {}
        self._found: dict[tuple[int, Parents], Information] = {}
        self._local: dict[tuple[int, Parents], float] = {}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the source."""
        return self.source.columns

    @cached_property
    def n_effective(self) -> float:
        """The number of rows that all scores are about."""
        places = range(len(self.columns))
        return min(
            self.source.effective_rows(scope)
            for width in range(1, self.degree + 2)
            for scope in combinations(places, width)
            if self._n_cells(scope) <= N_CELLS_MAX
        )

    def may_have(self, child: int, parents: Iterable[int]) -> bool:
        """Whether these may be the parents of a column: no more than `degree`, no table too large.

        Columns without parents may always be.
        """
        own = tuple(parents)
        return not own or (len(own) <= self.degree and self._n_cells((child, *own)) <= N_CELLS_MAX)

    def local(self, child: int, parents: Iterable[int]) -> float:
        """The score of a column with these parents."""
        key = (child, tuple(sorted(parents)))
        if key not in self._local:
            self._local[key] = self._scored(*key)
        return self._local[key]

    def total(self, dag: Dag) -> float:
        """The score of a graph."""
        places = {one.name: place for place, one in enumerate(self.columns)}
        return sum(
            self.local(places[name], [places[parent] for parent in dag.parents(name)])
            for name in dag.columns
        )

    def information(self, child: int, parents: Iterable[int]) -> Information:
        """The information of some parents about a child."""
        key = (child, tuple(sorted(parents)))
        if key not in self._found:
            self._found[key] = self._compared(*key)
        return self._found[key]

    def _scored(self, child: int, parents: Parents) -> float:
        n, size = self.n_effective, self.columns[child].size
        if child not in self._entropies:
            self._entropies[child] = entropy(self.source.table((child,)).shares)
        factor = math.log(max(n, N_LOG_MIN))
        alone = -n * self._entropies[child] - (size - 1) * factor / 2
        if not parents:
            return alone
        seen = self.information(child, parents)
        n_classes = math.prod(self.columns[place].size for place in parents)
        null = max(seen.null, (size - 1) * (n_classes - 1) / (2 * n))
        return alone + n * (seen.found - factor * null)

    def _compared(self, child: int, parents: Parents) -> Information:
        scope = tuple(sorted((child, *parents)))
        table, axis = self._table(scope), scope.index(child)
        found = float(mutual_information(table.shares[np.newaxis], axis)[0])
        n_free = (table.shares.shape[axis] - 1) * (
            table.shares.size // table.shares.shape[axis] - 1
        )
        if table.law is None:
            return Information(found, n_free / (2 * table.n_rows))
        rng = np.random.default_rng((self._seed, *scope))
        return Information(found, null_information(table, axis, rng))

    def _table(self, scope: Parents) -> ShareTable:
        if scope not in self._kept:
            found = self.source.table(scope)
            self._n_kept += found.shares.size
            while self._kept and self._n_kept > N_CELLS_KEPT:
                self._n_kept -= self._kept.pop(next(iter(self._kept))).shares.size
            self._kept[scope] = found
        return self._kept[scope]

    def _n_cells(self, places: Iterable[int]) -> int:
        return math.prod(self.columns[place].size for place in places)


def entropy(shares: Floats) -> float:
    """The entropy of shares, in nats.

    >>> round(entropy(np.array([0.5, 0.5, 0.0])) / math.log(2), 9)
    1.0
    """
    return float(_surprise(shares.reshape(1, -1))[0])


def mutual_information(shares: Floats, axis: int) -> Floats:
    """Between one axis and all others, in nats, of each of several tables.

    Parameters
    ----------
    shares : (n_tables, ...) ndarray of float64
        Not negative; each table's sum is 1.
    axis : int
        The axis of a table, from 0.
    """
    n_tables = len(shares)
    cells = np.moveaxis(shares, axis + 1, 1).reshape(n_tables, shares.shape[axis + 1], -1)
    own, others = _surprise(cells.sum(axis=2)), _surprise(cells.sum(axis=1))
    return np.asarray(np.maximum(own + others - _surprise(cells.reshape(n_tables, -1)), 0.0))


def null_information(table: ShareTable, axis: int, rng: np.random.Generator) -> float:
    """The mean mutual information of tables as this one, if the axis were independent of the rest.

    Notes
    -----
    Rows are drawn from the product of the margins and made noisy by the table's law, and the
    nearest non-negative table of their number is compared, as was done with the table itself.

    Raises
    ------
    ValueError
        If the table is exact.
    """
    if table.law is None:
        raise ValueError("the table is exact, so its mean needs no estimate")
    shares = np.moveaxis(table.shares, axis, 0)
    own, others = shares.sum(axis=tuple(range(1, shares.ndim))), shares.sum(axis=0)
    law = np.moveaxis(np.multiply.outer(own, others), 0, axis)
    n_draws, n_rows = null_draws(shares.shape[0], others.size), max(1.0, float(round(table.n_rows)))
    noisy = table.law.noisy_tables(law / law.sum(), n_rows, n_draws, rng).reshape(n_draws, -1)
    counts = projected(noisy, np.full(n_draws, n_rows), np.ones_like(noisy))
    independent = (counts / counts.sum(axis=1, keepdims=True)).reshape(-1, *law.shape)
    return float(mutual_information(independent, axis).mean())


def null_draws(size: int, n_classes: int) -> int:
    """How many tables of a child and its parents' combinations are drawn.

    Fewer of large ones: without noise, the ratio of the spread of one table's mutual information to
    its mean is the root of 2 / (the number of free cells).
    """
    n_free = max(1, (size - 1) * (n_classes - 1))
    return max(N_NULL_DRAWS_MIN, min(N_NULL_DRAWS, N_FREE_DRAWN // n_free))


def _surprise(shares: Floats) -> Floats:
    """The entropy of each row of shares; 0 ln 0 is 0."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-np.einsum("ij,ij->i", shares, logs), dtype=np.float64)
