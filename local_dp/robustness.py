"""Computes how likely noise is to change the outcome of a test of independence.

The likelihood-ratio test on a noisy table, made as if there were no noise, against the same test on
the table itself: how often do they disagree? Simulated, before a release for a table that is public
or made up, and after it for the noisy table, over tables that it may come from. What it shows is a
reason to use a test that knows the noise (`inference.independence`), or more epsilon.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, xlogy

from inference.independence import degrees_of_freedom
from local_dp.channels import AnyChannel, Floats, UnaryEncoding
from local_dp.estimates import project_simplex

LEAST_COUNT = 0.5  # noisy counts below are raised to it, so that the statistic is defined
N_DRAWS = 20_000
N_PEOPLE_MAX = 10**9 - 1  # of whom some are drawn: numpy's bound
ROUNDING = 1e-6  # a whole count may be off by what a computation of it leaves


class TableNoise(Protocol):
    """How a table of counts becomes a noisy one."""

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Independent noisy tables, (n_draws, ..) with the shape of a table."""

    def truths(self, noisy: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Tables that a noisy one may come from, (n_draws, ..) with its shape.

        The noisy one less noise that is drawn anew, moved to the nearest table without negative
        counts: what is known of the table if nothing was known before, nearly.
        """


@dataclass(frozen=True)
class LaplaceNoise:
    """Noise that a trusted server adds to every count.

    Parameters
    ----------
    scale : float
        Sensitivity over epsilon.
    """

    scale: float

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise ValueError(f"scale must be positive, not {self.scale}")

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Each count with noise of its own."""
        return np.asarray(table + generator.laplace(0, self.scale, (n_draws, *table.shape)))

    def truths(self, noisy: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Less noise, which is as often positive as negative."""
        return np.maximum(self.tables(noisy, n_draws, generator), 0.0)


@dataclass(frozen=True)
class RandomisedAnswers:
    """Noise that respondents add themselves: counts are estimated from their answers.

    Parameters
    ----------
    channel : RandomisedResponse, UnaryEncoding or LocalHashing
        For as many cells as the table has.
    n_answers : int, optional
        How many of the respondents, drawn at random, were asked about the table; all by default.
        Counts are estimated for all of them.
    """

    channel: AnyChannel
    n_answers: int | None = None

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """The estimates for as many respondents as the table counts, from their answers."""
        cells = np.rint(table.ravel()).astype(np.int64)
        if not np.allclose(cells, table.ravel(), rtol=0, atol=ROUNDING):
            raise ValueError("the table's counts must be whole numbers")
        if cells.size != self.channel.n_cells:
            raise ValueError(
                f"the table must have {self.channel.n_cells} cells, as the channel has"
            )
        n = int(cells.sum())
        asked = self._asked(cells, n_draws, generator)
        n_answers = int(asked[0].sum())
        of_each = np.eye(cells.size)
        parts = self._heard(asked, generator) @ self.channel.contributions(of_each)
        found = parts + n_answers * self.channel.constants(of_each)
        return np.asarray(n / n_answers * found).reshape(n_draws, *table.shape)

    def _asked(
        self, cells: NDArray[np.int64], n_draws: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """How many of each cell are asked, (n_draws, n_cells)."""
        n = int(cells.sum())
        if self.n_answers is None or self.n_answers == n:
            return np.broadcast_to(cells, (n_draws, cells.size))
        if not 0 < self.n_answers < n <= N_PEOPLE_MAX:
            raise ValueError(f"{self.n_answers} of {n} respondents cannot be drawn")
        drawn = generator.multivariate_hypergeometric(cells, self.n_answers, n_draws)
        return np.asarray(drawn, dtype=np.int64)

    def _heard(self, asked: NDArray[np.int64], generator: np.random.Generator) -> Floats:
        """How many answers count at each place, (n_draws, n_tallies)."""
        n_draws, n_cells = asked.shape
        if isinstance(self.channel, UnaryEncoding):  # every bit has a coin of its own
            others = asked.sum(axis=1, keepdims=True) - asked
            fakes = generator.binomial(others, float(self.channel.noise))
            return np.asarray(generator.binomial(asked, 0.5) + fakes, dtype=np.float64)
        counts = np.zeros((n_draws, self.channel.n_tallies))
        for cell in range(n_cells):
            rates = self.channel.rates(np.eye(1, n_cells, cell)[0])
            counts += generator.multinomial(asked[:, cell], rates / rates.sum())
        return counts

    def truths(self, noisy: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Less noise as the nearest table has it, for as many respondents.

        Noise of answers depends on the answers, but hardly more on the truth than on what is near.
        """
        total = float(noisy.sum())
        if total < 1:
            raise ValueError("the table must count at least one respondent")
        near = _whole(project_simplex(noisy.ravel(), total)).reshape(noisy.shape)
        found = noisy - (self.tables(near, n_draws, generator) - near)
        for place in np.flatnonzero(found.reshape(n_draws, -1).min(axis=1) < 0):
            found[place] = project_simplex(found[place].ravel(), total).reshape(noisy.shape)
        return np.asarray(found)


@dataclass(frozen=True, slots=True)
class Flip:
    """How often noise changes what the test says.

    Parameters
    ----------
    probability, standard_error : float
        The probability of a different decision, and the standard error of its simulation.
    statistic, critical : float
        Of the table that was given, and from where on it counts as dependent.
    """

    probability: float
    standard_error: float
    statistic: float
    critical: float

    @property
    def is_dependent(self) -> bool:
        """Whether the test finds the given table dependent."""
        return self.statistic >= self.critical


def flip_probability(
    table: Floats,
    noise: TableNoise,
    *,
    generator: np.random.Generator,
    level: float = 0.05,
    n_draws: int = N_DRAWS,
) -> Flip:
    """The probability that noise changes the outcome of the likelihood-ratio test.

    Parameters
    ----------
    table : (n_rows, n_columns, ...) ndarray of float64
        Counts that are public or made up; not private ones. Axes after the second are of columns
        that are given: for each of their values, rows and columns are tested.
    noise : TableNoise
    generator : numpy.random.Generator
    level : float
        Of the test, ``G**2`` against chi-square with ``(n_rows - 1) (n_columns - 1)`` degrees for
        each combination of given values.
    n_draws : int

    Notes
    -----
    ``G**2 = 2 sum w log(w n / (row column))``, added up over given values. What decides is how far
    it is from its critical value, compared with the noise; the size of the table matters only
    through that.
    """
    if table.min(initial=0.0) < 0:
        raise ValueError("a table without noise cannot have a count below 0")
    _check(table, level, n_draws)
    noisy = np.maximum(noise.tables(table, n_draws, generator), LEAST_COUNT)
    return _flips(_likelihood_ratio(table[np.newaxis]), _likelihood_ratio(noisy), table, level)


def doubt_of_release(
    noisy: Floats,
    noise: TableNoise,
    *,
    generator: np.random.Generator,
    level: float = 0.05,
    n_draws: int = N_DRAWS,
) -> Flip:
    """The probability that the test decides differently on a noisy table and on the true one.

    Parameters
    ----------
    noisy : (n_rows, n_columns, ...) ndarray of float64
        A release, of counts with noise or of counts estimated from answers: some may be below 0.
    noise : TableNoise
        The noise that would be added to the table.
    generator, level, n_draws :
        As in `flip_probability`.

    Notes
    -----
    Over tables that it may come from, if nothing else is known of the true one. Where no count is
    near 0, that is how often the same noise would flip a true table like this. It reads a release
    alone, so that it costs nothing.
    """
    _check(noisy, level, n_draws)
    given = _likelihood_ratio(np.maximum(noisy, LEAST_COUNT)[np.newaxis])
    others = plausible_statistics(noisy, noise, generator=generator, n_draws=n_draws)
    return _flips(given, others, noisy, level)


def plausible_statistics(
    noisy: Floats, noise: TableNoise, *, generator: np.random.Generator, n_draws: int = N_DRAWS
) -> Floats:
    """The statistics, (n_draws,), of tables that a noisy one may come from."""
    return _likelihood_ratio(noise.truths(noisy, n_draws, generator))


def _whole(counts: Floats) -> Floats:
    """Counts as whole ones of as many people: down, and up where the most was lost."""
    below = np.floor(counts)
    n_missing = round(float(counts.sum() - below.sum()))
    below[np.argsort(below - counts, kind="stable")[:n_missing]] += 1
    return below


def _check(table: Floats, level: float, n_draws: int) -> None:
    if table.ndim < 2 or min(table.shape[:2]) < 2:  # noqa: PLR2004 - a table of two ways
        raise ValueError("the table must have at least two rows and two columns")
    if not np.isfinite(table).all() or not table.sum() > 0:
        raise ValueError("the table's counts must be finite and add up to more than 0")
    if not 0 < level < 1 or n_draws < 1:
        raise ValueError("level must be above 0 and below 1, and n_draws must be at least 1")


def _flips(given: Floats, others: Floats, table: Floats, level: float) -> Flip:
    """How often other statistics are on the other side of the critical value than the given one."""
    critical = float(chdtri(degrees_of_freedom(table.shape), level))
    statistic = float(given[0])
    share = float(((others >= critical) != (statistic >= critical)).mean())
    error = math.sqrt(share * (1 - share) / others.size)
    return Flip(share, error, statistic, critical)


def _likelihood_ratio(tables: Floats) -> Floats:
    """``G**2`` of each table, (n_tables,)."""
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    everyone = tables.sum(axis=(1, 2))
    own = xlogy(tables, tables).sum(axis=(1, 2)) + xlogy(everyone, everyone)
    margins = xlogy(rows, rows).sum(axis=1) + xlogy(columns, columns).sum(axis=1)
    return np.asarray(2 * (own - margins).reshape(len(tables), -1).sum(axis=1))
