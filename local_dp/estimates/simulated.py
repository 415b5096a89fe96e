"""Makes tables from a combination's answers, and simulates tables that are collected the same way.

A test of independence compares the estimated table with tables of independent columns. These are
drawn as the one before them came about: respondents from a population, whose answers go through the
channel of each block; then the same inversion. So the noise of the channel is on both sides.

Nothing here tests anything (`inference.independence` does), and nothing draws an answer that is
sent: variates are of double precision, from the caller's generator.

The argument is in `proofs/estimates.md`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cube.runtime import cached_property
from local_dp.channels import AnyChannel, Floats, UnaryEncoding
from local_dp.estimates.shares import TableEstimate, Tally

N_COUNTS_AT_ONCE = 2**20  # of all tables that are drawn at once: 8 MB


@dataclass(frozen=True, eq=False)
class CellsOfTable:
    """The estimates of a table's cells from one combination.

    Parameters
    ----------
    estimate : TableEstimate
    coefficients : (n_cells of the combination, n_cells of the table) ndarray of float64
        1 where a cell of the combination counts for a cell of the table: for one of them or none.
    """

    estimate: TableEstimate
    coefficients: Floats

    def __post_init__(self) -> None:
        n_rows = self.coefficients.shape[0]
        if self.coefficients.ndim != 2 or n_rows != self.estimate.n_cells:  # noqa: PLR2004 - a matrix
            raise ValueError(
                f"coefficients of shape {self.coefficients.shape} do not have a row for each "
                "cell of the combination"
            )
        if not np.isin(self.coefficients, (0.0, 1.0)).all() or self.coefficients.sum(1).max() > 1:
            raise ValueError(
                "a cell of the combination may count for at most one cell of the table"
            )

    @property
    def shares(self) -> Floats:
        """Of the table's cells, among all who answered; unbiased."""
        return np.asarray(self.estimate.shares @ self.coefficients)

    @cached_property
    def typical_variances(self) -> Floats:
        """Of these, where all cells of the combination are equal: no answer is looked at."""
        found = np.zeros(self.coefficients.shape[1])
        equal = np.full(self.estimate.n_cells, 1 / self.estimate.n_cells)
        for weight, block in zip(self.estimate.weights, self.estimate.blocks, strict=True):
            of_one = block.channel.variances(self.coefficients, block.channel.rates(equal))
            found += weight**2 * of_one / block.n_answers
        return found

    def with_shares(self, shares: Floats) -> Floats:
        """The combination's cells where the table's have these shares.

        Within a cell of the table, and beside the table, they are in the proportions of the nearest
        shares that are nowhere negative; in equal ones where these are all 0.
        """
        inside = self.coefficients.sum(axis=1, keepdims=True)
        groups = np.concatenate([self.coefficients, 1 - inside], axis=1)
        wanted = np.append(shares, max(0.0, 1 - shares.sum()))
        likely = self.estimate.likely_shares[:, np.newaxis] * groups
        sums, sizes = likely.sum(axis=0), groups.sum(axis=0)
        equal = np.divide(groups, sizes, out=np.zeros_like(groups), where=sizes > 0)
        within = np.divide(likely, sums, out=equal, where=sums > 0)
        cells = within @ wanted
        return np.asarray(cells / cells.sum())

    def drawn(self, shares: Floats, n_tables: int, generator: np.random.Generator) -> Floats:
        """Estimates of as many answers, where the table's cells have these shares."""
        cells = self.with_shares(shares)
        found = np.zeros((n_tables, self.coefficients.shape[1]))
        for weight, block in zip(self.estimate.weights, self.estimate.blocks, strict=True):
            parts = block.channel.contributions(self.coefficients)
            counts = drawn_counts(block, cells, n_tables, generator)
            means = np.concatenate([some @ parts for some in counts]) / block.n_answers
            found += weight * (means + block.channel.constants(self.coefficients))
        return found


@dataclass(frozen=True, eq=False)
class AnsweredTable:
    """A table of estimated counts, and the law of tables that are collected like it.

    Counts are of those who answered a combination that has all of the table's columns. With
    several such combinations, the estimates are pooled by what their channels and sizes say.

    Parameters
    ----------
    parts : tuple of CellsOfTable
        The estimates by combination; each is from different respondents.
    shape : tuple of int
        Of the table; its last axis varies fastest.
    """

    parts: tuple[CellsOfTable, ...]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        n_cells = math.prod(self.shape)
        if not self.parts or any(one.coefficients.shape[1] != n_cells for one in self.parts):
            raise ValueError(
                "the coefficients do not have a column for each cell of a table of shape "
                f"{self.shape}"
            )

    @property
    def n_answers(self) -> int:
        """Of all combinations."""
        return sum(one.estimate.n_answers for one in self.parts)

    @cached_property
    def counts(self) -> Floats:
        """Unbiased, in the shape of the table; some may be negative."""
        found = sum(
            (weight * one.shares for weight, one in zip(self._weights, self.parts, strict=True)),
            np.zeros(math.prod(self.shape)),
        )
        return np.asarray(self.n_answers * found).reshape(self.shape)

    @cached_property
    def scales(self) -> Floats:
        """The standard deviation of each count where shares are equal, in the table's shape."""
        variances = sum(
            (
                weight**2 * one.typical_variances
                for weight, one in zip(self._weights, self.parts, strict=True)
            ),
            np.zeros(math.prod(self.shape)),
        )
        return np.asarray(self.n_answers * np.sqrt(variances)).reshape(self.shape)

    @property
    def squared_share(self) -> float:
        """1: a fit is by least squares."""
        return 1.0

    def noisy_tables(
        self, probabilities: Floats, total: float, n_tables: int, generator: np.random.Generator
    ) -> Floats:
        """Independent tables of estimated counts, ``(n_tables, *shape)``.

        Parameters
        ----------
        probabilities : ndarray of float64
            Of the cells, for those who are in the table; their sum is 1.
        total : float
            How many of those who answered are in the table, about.
        """
        shares = min(1.0, total / self.n_answers) * probabilities.ravel()
        found = np.zeros((n_tables, shares.size))
        for weight, one in zip(self._weights, self.parts, strict=True):
            found += weight * one.drawn(shares, n_tables, generator)
        return (self.n_answers * found).reshape(n_tables, *self.shape)

    @property
    def _weights(self) -> Sequence[float]:
        precisions = [1 / float(one.typical_variances.mean()) for one in self.parts]
        return [one / sum(precisions) for one in precisions]


def drawn_counts(
    block: Tally, shares: Floats, n_draws: int, generator: np.random.Generator
) -> Iterator[Floats]:
    """Counts of as many answers as a block has, of respondents drawn from a population.

    Parameters
    ----------
    block : Tally
        Its channel and number of answers; its counts are not looked at.
    shares : (n_cells,) ndarray of float64
        The population; not negative, with sum 1.
    n_draws : int
    generator : numpy.random.Generator

    Yields
    ------
    (n_some, n_tallies) ndarray of float64
        `n_draws` rows in all.
    """
    n_at_once = max(1, N_COUNTS_AT_ONCE // block.channel.n_tallies)
    for first in range(0, n_draws, n_at_once):
        size = min(n_at_once, n_draws - first)
        yield _counts(block.channel, block.n_answers, shares, size, generator)


def _counts(
    channel: AnyChannel, n: int, shares: Floats, size: int, generator: np.random.Generator
) -> Floats:
    if isinstance(channel, UnaryEncoding):
        true = generator.multinomial(n, shares, size)
        ones = generator.binomial(true, 0.5) + generator.binomial(n - true, float(channel.noise))
        return np.asarray(ones, dtype=np.float64)
    rates = np.maximum(channel.rates(shares), 0.0)  # transforms leave rounding below 0
    return np.asarray(generator.multinomial(n, rates / rates.sum(), size), dtype=np.float64)
