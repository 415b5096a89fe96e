"""The law of a noisy table: how such a table is drawn, and how precise its cells are.

A test uses a law twice: its scales say how precise each cell is, and tables are simulated with it.
Noise that is added to counts has a law of its own, in the classes here; of a table that no trusted
hand counted, such as of randomised answers, the law knows how it is collected. Draws are of double
precision: suitable for a test, never for releasing an answer.

The laws know their cells only by position; the caller knows which queries these are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Gaboardi et al.'s value: close to the likelihood of Laplace noise, yet the best table is unique.
LAPLACE_SQUARED_SHARE = 0.01


class NoisyTables(Protocol):
    """How noisy tables like one that was released come about, sampled rows and noise together."""

    def noisy_tables(
        self, probabilities: Floats, total: float, n_tables: int, generator: np.random.Generator
    ) -> Floats:
        """Draw noisy tables, ``(n_tables, *shape)``, of records with given probabilities.

        Parameters
        ----------
        probabilities : ndarray of float64
            The probabilities of the cells, in the table's shape; their sum is 1.
        total : float
            The number of records; a positive whole number.
        n_tables : int
        generator : numpy.random.Generator
        """


class TableLaw(NoisyTables, Protocol):
    """How noisy tables like one that is tested come about."""

    @property
    def scales(self) -> Floats:
        """The positive scale of the noise of each cell, in the table's shape."""

    @property
    def squared_share(self) -> float:
        """The share of squared deviations in a fit, in (0, 1]; the rest is absolute ones."""


class CellNoise(TableLaw, Protocol):
    """Noise that is added to counts, whatever they are."""

    def draw(self, n_tables: int, generator: np.random.Generator) -> Floats:
        """Draw the noise of independent tables, ``(n_tables, *shape)``."""


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceCells:
    """Independent Laplace noise, cell by cell, on the lattice of the measurement.

    Parameters
    ----------
    scales : ndarray of float64
        The Laplace scale of each cell (`Measurement.noise_scale`), in the table's shape.
    lattice_step : float
        The step of the coarsest lattice of any cell (`Measurement.lattice_step`); 0 for continuous
        noise.

    Notes
    -----
    With ``E`` exponential of mean ``b``, ``floor(E / g)`` is geometric with ratio ``exp(-g / b)``,
    and the difference of two such is discrete Laplace: ``Pr(k)`` proportional to
    ``exp(-|k| g / b)``, the law that the accountant draws from.
    """

    scales: Floats
    lattice_step: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", _locked_scales(self.scales))
        if not 0 <= self.lattice_step < float(self.scales.min()):
            raise ValueError(
                f"a lattice step must lie between 0 and the noise scale, not {self.lattice_step}"
            )

    @property
    def squared_share(self) -> float:
        """Small: a fit is nearly the one of greatest likelihood."""
        return LAPLACE_SQUARED_SHARE

    def draw(self, n_tables: int, generator: np.random.Generator) -> Floats:
        """Draw the noise of independent tables, ``(n_tables, *shape)``."""
        return self._one_side(n_tables, generator) - self._one_side(n_tables, generator)

    def noisy_tables(
        self, probabilities: Floats, total: float, n_tables: int, generator: np.random.Generator
    ) -> Floats:
        """Draw independent tables of `total` records, and add noise to each."""
        exact = _exact_tables(probabilities, total, n_tables, generator)
        return exact + self.draw(n_tables, generator)

    def _one_side(self, n_tables: int, generator: np.random.Generator) -> Floats:
        size = generator.standard_exponential((n_tables, *self.scales.shape)) * self.scales
        if self.lattice_step:
            size = np.floor(size / self.lattice_step) * self.lattice_step
        return size


@dataclass(frozen=True, slots=True, eq=False)
class SampledCells:
    """Noise of any joint law that can be sampled, such as of estimates that share measurements.

    Parameters
    ----------
    scales : ndarray of float64
        The standard deviation of each cell, in the table's shape.
    sampler : callable
        ``sampler(n_tables, generator)`` draws the noise, ``(n_tables, *shape)``. Cells of one table
        may depend on each other; tables must not.

    Notes
    -----
    Fits weight the cells by their variances alone. The dependence between cells is in the draws,
    and so in the threshold of a test: leaving it out of the fit costs power, not level.
    """

    scales: Floats
    sampler: Callable[[int, np.random.Generator], Floats]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", _locked_scales(self.scales))

    @property
    def squared_share(self) -> float:
        """1: a fit is by least squares."""
        return 1.0

    def draw(self, n_tables: int, generator: np.random.Generator) -> Floats:
        """Draw the noise of independent tables, ``(n_tables, *shape)``.

        Raises
        ------
        ValueError
            If the sampler returns another shape, or values that are not finite.
        """
        drawn = np.asarray(self.sampler(n_tables, generator), dtype=np.float64)
        shape = (n_tables, *self.scales.shape)
        if drawn.shape != shape:
            raise ValueError(f"the sampler drew noise of the shape {drawn.shape}, not {shape}")
        if not np.isfinite(drawn).all():
            raise ValueError("the sampler drew values that are not finite")
        return drawn

    def noisy_tables(
        self, probabilities: Floats, total: float, n_tables: int, generator: np.random.Generator
    ) -> Floats:
        """Draw independent tables of `total` records, and add noise to each."""
        exact = _exact_tables(probabilities, total, n_tables, generator)
        return exact + self.draw(n_tables, generator)


def _exact_tables(
    probabilities: Floats, total: float, n_tables: int, generator: np.random.Generator
) -> Floats:
    drawn = generator.multinomial(int(total), probabilities.ravel(), size=n_tables)
    return np.asarray(drawn.reshape(n_tables, *probabilities.shape), dtype=np.float64)


def _locked_scales(scales: Floats) -> Floats:
    own = np.array(scales, dtype=np.float64)
    if own.size == 0:
        raise ValueError("a table must have cells")
    if not bool(((own > 0) & (own < np.inf)).all()):
        raise ValueError("the noise of every cell must have a positive, finite scale")
    own.setflags(write=False)
    return own
