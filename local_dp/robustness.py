"""Whether noise would turn a dependence into independence, or the other way round.

The likelihood-ratio test on a noisy table, made as if there were no noise, against the same test on
the table itself: how often do they disagree? Simulated, for a table that is public or made up. What
it shows is a reason to use a test that knows the noise (`inference.independence`), or more epsilon.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from scipy.special import xlogy
from scipy.stats import chi2

from local_dp.channels.channel import Floats
from local_dp.channels.choice import AnyChannel

LEAST_COUNT = 0.5  # noisy counts below are raised to it, so that the statistic is defined
N_DRAWS = 20_000


class TableNoise(Protocol):
    """How a table of counts becomes a noisy one."""

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Independent noisy tables, (n_draws, n_rows, n_columns)."""


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
            raise ValueError(f"a scale is positive, not {self.scale}")

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Each count with noise of its own."""
        return np.asarray(table + generator.laplace(0, self.scale, (n_draws, *table.shape)))


@dataclass(frozen=True)
class GeometricNoise:
    """Whole noise that a trusted server adds to every count: two-sided geometric.

    Parameters
    ----------
    ratio : Fraction
        Of neighbouring probabilities, ``exp(-epsilon / sensitivity)``; between 0 and 1.
    """

    ratio: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise ValueError(f"a ratio lies between 0 and 1, not {self.ratio}")

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """Each count with noise of its own: the difference of two geometric variables."""
        shape = (2, n_draws, *table.shape)
        one, other = generator.geometric(1 - float(self.ratio), shape)
        return np.asarray(table + one - other)


@dataclass(frozen=True)
class RandomisedAnswers:
    """Noise that respondents add themselves: counts are estimated from their answers.

    Parameters
    ----------
    channel : RandomisedResponse, UnaryEncoding or LocalHashing
        For as many cells as the table has.
    """

    channel: AnyChannel

    def tables(self, table: Floats, n_draws: int, generator: np.random.Generator) -> Floats:
        """The estimates from the answers of as many respondents as the table counts."""
        cells = np.rint(table.ravel()).astype(np.int64)
        if cells.size != self.channel.n_cells:
            raise ValueError(f"the channel is for {self.channel.n_cells} cells")
        counts = np.zeros((n_draws, self.channel.n_tallies))
        for cell, n_true in enumerate(cells.tolist()):
            alone = np.zeros(cells.size)
            alone[cell] = 1.0
            rates = self.channel.rates(alone)
            if self.channel.is_categorical:
                counts += generator.multinomial(n_true, rates / rates.sum(), n_draws)
            else:
                counts += generator.binomial(n_true, rates, (n_draws, rates.size))
        n = int(cells.sum())
        found = [n * self.channel.inverted(one / n) for one in counts]
        return np.array(found).reshape(n_draws, *table.shape)


@dataclass(frozen=True, slots=True)
class Flip:
    """How often noise changes what the test says.

    Parameters
    ----------
    probability, standard_error : float
        Of a different decision; the error is that of the simulation.
    statistic, critical : float
        Of the table without noise, and from where on it counts as dependent.
    """

    probability: float
    standard_error: float
    statistic: float
    critical: float

    @property
    def is_dependent(self) -> bool:
        """What the test says without noise."""
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
    table : (n_rows, n_columns) ndarray of float64
        Counts that are public or made up; not private ones.
    noise : TableNoise
    generator : numpy.random.Generator
    level : float
        Of the test, ``G**2`` against chi-square with ``(n_rows - 1) (n_columns - 1)`` degrees.
    n_draws : int

    Notes
    -----
    ``G**2 = 2 sum w log(w n / (row column))``. What decides is how far it is from its critical
    value, compared with the noise; the size of the table matters only through that.
    """
    if table.ndim != 2 or min(table.shape) < 2 or table.min() < 0 or not table.sum() > 0:  # noqa: PLR2004
        raise ValueError("a table of counts has at least two rows and two columns")
    if not 0 < level < 1 or n_draws < 1:
        raise ValueError("a level between 0 and 1 and at least one draw are needed")
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    critical = float(chi2.isf(level, degrees))
    statistic = float(_likelihood_ratio(table[np.newaxis])[0])
    noisy = np.maximum(noise.tables(table, n_draws, generator), LEAST_COUNT)
    flipped = (_likelihood_ratio(noisy) >= critical) != (statistic >= critical)
    share = float(flipped.mean())
    return Flip(share, math.sqrt(share * (1 - share) / n_draws), statistic, critical)


def _likelihood_ratio(tables: Floats) -> Floats:
    """``G**2`` of each table."""
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    everyone = tables.sum(axis=(1, 2))
    own = xlogy(tables, tables).sum(axis=(1, 2)) + xlogy(everyone, everyone)
    margins = xlogy(rows, rows).sum(axis=1) + xlogy(columns, columns).sum(axis=1)
    return np.asarray(2 * (own - margins))
