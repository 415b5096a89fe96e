"""Sources of tables for learning networks: the interface, and two implementations.

A source gives the shares of every combination of levels of a few columns, not negative and summing
to 1, and says how many rows would know them as well as it does. It reads no private row: its tables
were released, or are counted from rows that a model drew.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Protocol

import numpy as np

from inference.independence import NoisyTables
from synthesis.fitting import projected
from synthesis.tables import Column, Floats, Integers

WHOLE: Final = 1e-9  # the largest deviation of a table's sum from 1


@dataclass(frozen=True, slots=True)
class AddedNoise:
    """Noise that was added to the counts of rows, taken as normal and independent between cells.

    Parameters
    ----------
    variance : float
        The variance of the noise of each cell.
    """

    variance: float

    def noisy_tables(
        self, probabilities: Floats, total: float, n_tables: int, generator: np.random.Generator
    ) -> Floats:
        """See `NoisyTables`."""
        drawn: Integers = generator.multinomial(
            max(1, round(total)), probabilities.ravel(), size=n_tables
        )
        noisy = drawn + generator.normal(0.0, math.sqrt(self.variance), drawn.shape)
        return noisy.reshape(n_tables, *probabilities.shape)


@dataclass(frozen=True, eq=False)
class ShareTable:
    """The shares of the cells of a few columns.

    Parameters
    ----------
    shares : (size of each column, ...) ndarray of float64
        The share of each combination of levels: not negative, with sum 1.
    n_rows : float
        The approximate number of rows, positive.
    law : NoisyTables, optional
        How such a table comes about, with its noise; None if it was counted exactly.
    """

    shares: Floats
    n_rows: float
    law: NoisyTables | None = None

    def __post_init__(self) -> None:
        if not 0 < self.n_rows < math.inf:
            raise ValueError(f"the number of rows must be positive, not {self.n_rows}")
        if not (self.shares >= 0).all() or abs(self.shares.sum() - 1) > WHOLE:
            raise ValueError("shares must not be negative and must sum to 1")


def effective_rows(n_rows: float, n_cells: int, noise_variance: float) -> float:
    """The number of rows whose shares, without noise, would be as uncertain as these.

    Notes
    -----
    The counts of `n` sampled rows vary by ``n p`` in each cell, ``n`` in all cells together (to the
    first order), and noise adds its variance for each of `K` cells. Shares divide by ``n``, so that
    they vary by ``(n + K v) / n**2``; `m` rows without noise vary by ``1 / m``.

    Examples
    --------
    >>> effective_rows(1000, 4, 0.0), effective_rows(1000, 4, 250.0)
    (1000.0, 500.0)
    """
    return n_rows**2 / (n_rows + n_cells * noise_variance)


class TableSource(Protocol):
    """Gives tables of a few columns; the same table each time it is asked."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it has tables of."""

    @property
    def width_max(self) -> int:
        """The most columns of one table."""

    def effective_rows(self, places: Sequence[int]) -> float:
        """The number of rows whose shares, without noise, would be as uncertain as this table's."""

    def table(self, places: Sequence[int]) -> ShareTable:
        """The table of the columns at these places, an axis for each, in ascending order."""


class RowTables:
    """Tables counted from rows: of a synthetic table, or of any rows that are public.

    Parameters
    ----------
    columns : sequence of Column
    codes : (n_rows, n_columns) ndarray of int64
        The level of each row in each column.

    Notes
    -----
    The rows count as they are. If a model drew them, a network of them is the model's: how well the
    model knows the private rows is no part of it.
    """

    def __init__(self, columns: Sequence[Column], codes: Integers) -> None:
        if codes.ndim != 2 or codes.shape[1] != len(columns) or not len(codes):  # noqa: PLR2004 - rows and columns
            raise ValueError(
                f"codes of the shape {codes.shape} do not match {len(columns)} columns"
            )
        sizes = np.array([one.size for one in columns])
        if (codes < 0).any() or (codes >= sizes).any():
            raise ValueError("a code is not one of its column's levels")
        self.columns = tuple(columns)
        self.width_max = len(self.columns)
        self.n_rows = len(codes)
        self._codes = np.asfortranarray(codes)  # a column's codes lie together

    def effective_rows(self, places: Sequence[int]) -> float:  # noqa: ARG002 - the same for every table
        """The number of rows."""
        return float(self.n_rows)

    def table(self, places: Sequence[int]) -> ShareTable:
        """The shares among the rows."""
        places = sorted(places)
        sizes = tuple(self.columns[place].size for place in places)
        cells = np.ravel_multi_index(tuple(self._codes[:, place] for place in places), sizes)
        counts = np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes)
        return ShareTable(counts / self.n_rows, float(self.n_rows))


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """A released table: the counts of every combination of levels of a few columns.

    Parameters
    ----------
    names : tuple of str
        The column of each axis.
    values : (size of names[0], ...) ndarray of float64
        The noisy count of each cell, possibly negative.
    variance : float
        The variance of a cell's noise, independent between cells; the mean, if cells differ.
    """

    names: tuple[str, ...]
    values: Floats
    variance: float

    def __post_init__(self) -> None:
        if len(set(self.names)) != self.values.ndim or not self.names:
            raise ValueError(f"there are {self.values.ndim} axes for the columns {self.names}")
        if not (np.isfinite(self.values).all() and 0 <= self.variance < math.inf):
            raise ValueError("counts and the variance of their noise must be finite")


class MeasuredTables:
    """Tables that are margins of released ones.

    Parameters
    ----------
    tables : iterable of NoisyCounts
        Tables of the same columns and rows. A table of fewer columns is a margin of the one that
        leaves it least noise.

    Raises
    ------
    ValueError
        If there is no table, two tables differ in the number of a column's levels, or a set of
        columns as wide as the widest table has none: `width_max` would not be true.

    Notes
    -----
    The number of rows is the mean of the tables' sums, each by the inverse of its variance. A
    margin is projected onto the non-negative tables of that sum, the nearest one [1]_: clipping
    would add half a noise scale to every empty cell.

    References
    ----------
    .. [1] J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, "Efficient Projections onto the
       l1-Ball for Learning in High Dimensions", ICML 2008.
    """

    def __init__(self, tables: Iterable[NoisyCounts]) -> None:
        self._tables = list(tables)
        if not self._tables:
            raise ValueError("at least one table is needed")
        self.columns = _columns_of(self._tables)
        self.n_rows = _n_rows(self._tables)
        self.width_max = max(one.values.ndim for one in self._tables)
        self._names = tuple(one.name for one in self.columns)
        for places in combinations(range(len(self.columns)), self.width_max):
            self._holder(places)

    def effective_rows(self, places: Sequence[int]) -> float:
        """The effective number of rows of a margin, in the table that leaves it least noise."""
        n_cells = math.prod(self.columns[place].size for place in places)
        return effective_rows(self.n_rows, n_cells, self._variance(self._holder(places), places))

    def table(self, places: Sequence[int]) -> ShareTable:
        """The nearest shares to a margin of the table that leaves it least noise."""
        holder = self._holder(places)
        names = [self._names[place] for place in sorted(places)]
        others = tuple(axis for axis, name in enumerate(holder.names) if name not in names)
        kept = [name for name in holder.names if name in names]
        margin = holder.values.sum(axis=others).transpose([kept.index(name) for name in names])
        cells = margin.reshape(1, -1)
        counts = projected(cells, np.array([self.n_rows]), np.ones_like(cells))
        shares = counts.reshape(margin.shape) / counts.sum()
        variance = self._variance(holder, places)
        return ShareTable(shares, self.n_rows, AddedNoise(variance) if variance else None)

    def _holder(self, places: Sequence[int]) -> NoisyCounts:
        names = {self._names[place] for place in places}
        holders = [one for one in self._tables if names.issubset(one.names)]
        if not holders:
            raise ValueError(f"no table has the columns {sorted(names)}")
        return min(holders, key=lambda one: self._variance(one, places))

    def _variance(self, holder: NoisyCounts, places: Sequence[int]) -> float:
        """The variance of a cell of a margin: each is a sum of so many cells."""
        n_cells = math.prod(self.columns[place].size for place in places)
        return holder.variance * holder.values.size / n_cells


def _columns_of(tables: Sequence[NoisyCounts]) -> tuple[Column, ...]:
    sizes: dict[str, int] = {}
    for one in tables:
        for name, size in zip(one.names, one.values.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"the tables have different numbers of levels of {name}")
    return tuple(Column(name, size) for name, size in sizes.items())


def _n_rows(tables: Sequence[NoisyCounts]) -> float:
    """The mean of the sums by the inverse of their variances; at least one row."""
    sums = np.array([one.values.sum() for one in tables])
    variances = np.array([one.variance * one.values.size for one in tables])
    if (variances == 0).any():
        return max(1.0, float(sums[variances == 0].mean()))
    return max(1.0, float(np.average(sums, weights=1 / variances)))
