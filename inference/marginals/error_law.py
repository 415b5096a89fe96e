"""The law of the error of a reconciled cell: a weighted sum of the noises of the measurements.

The projection is linear, so the error of a cell is a weighted sum of the measurements' noises, and
its interval is as exact as that of a single measurement. All cells of a table have the same law,
since the projection treats them alike.

Nothing here reads values.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cube.query import Scope
from inference.marginals.projection import projected
from inference.marginals.table import Floats, NoisyTable, marginal
from inference.noise_law import NoiseLaw, law_of_noises


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Counts of every cell of a scope, and the composition of their noise.

    Parameters
    ----------
    scope : tuple of str
    values : (n_levels of scope[0], ...) ndarray of float64
    scale : float
        The scale of one measured count's noise; see `Measurement.noise_scale`.
    n_summed : int
        How many measured counts, with independent noise, were added up for each cell.
    lattice_step : float
        The lattice step of the measured counts' noise.
    is_gaussian : bool
        Whether that noise is Gaussian; Laplace otherwise.
    """

    scope: Scope
    values: Floats
    scale: float
    n_summed: int = 1
    lattice_step: float = 0.0
    is_gaussian: bool = False

    def __post_init__(self) -> None:
        if self.n_summed < 1 or not 0 < self.scale < math.inf or self.lattice_step < 0:
            raise ValueError("a measured table needs noise, and at least one count for each cell")

    @property
    def noisy(self) -> NoisyTable:
        """The table in the form that the projection needs."""
        return NoisyTable(self.scope, self.values, 2 * self.scale**2 * self.n_summed)

    def onto(self, scope: Scope) -> "MeasuredTable":
        """The sums over all axes that are not in `scope`."""
        values = marginal(self.values, self.scope, scope)
        n_summed = self.n_summed * (self.values.size // values.size)
        return replace(self, scope=scope, values=values, n_summed=n_summed)


@dataclass(frozen=True, slots=True, eq=False)
class CellError:
    """The error of every cell of a reconciled table.

    Parameters
    ----------
    law : NoiseLaw
        The law of estimate less truth, for continuous noise.
    lattice_widening : float
        A certain bound on what noise on a lattice adds to the error.
    """

    law: NoiseLaw
    lattice_widening: float

    @property
    def standard_error(self) -> float:
        """The standard deviation of the error."""
        return math.sqrt(2 * float(np.square(self.law.scales).sum()) + self.law.gaussian**2)

    def half_width(self, confidence: float) -> float:
        """Half the width of the interval around the estimate."""
        return self.law.half_width(confidence) + self.lattice_widening


def cell_error(
    tables: Sequence[MeasuredTable], scope: Scope, *, total: float | None = None
) -> CellError:
    """The error of each cell of the reconciled tables' marginal on a scope.

    Parameters
    ----------
    tables : sequence of MeasuredTable
        The measured tables, with independent noise.
    scope : tuple of str
        Within the scope of at least one of them.
    total : float, optional
        As passed to `reconciled`: not None if the number of records is public. Its value does not
        matter.

    Notes
    -----
    All cells of the scope have the law of the first, whose coefficients are `cell_coefficients`.

    Examples
    --------
    Two measurements of one number, the second half as noisy, have weights 1/5 and 4/5.

    >>> looks = [MeasuredTable((), np.array(0.0), scale) for scale in (2.0, 1.0)]
    >>> cell_error(looks, ()).law.scales.round(6).tolist()
    [0.4, 0.8]
    """
    noisy = [table.noisy for table in tables]
    holders = [place for place, one in enumerate(noisy) if set(scope).issubset(one.scope)]
    if not holders:
        raise ValueError(f"no table covers {scope}")
    holder = min(holders, key=lambda place: noisy[place].values.size)
    summed = np.zeros_like(noisy[holder].values)
    summed[tuple(0 if name in scope else slice(None) for name in noisy[holder].scope)] = 1.0
    coefficients = [
        np.abs(cells).ravel()
        for cells in cell_coefficients(noisy, holder, summed, is_total_public=total is not None)
    ]
    scales = [
        np.repeat(shares * table.scale, table.n_summed)
        for shares, table in zip(coefficients, tables, strict=True)
    ]
    is_gaussian = np.repeat([one.is_gaussian for one in tables], [one.size for one in scales])
    widenings = [
        float(shares.sum()) * table.n_summed * table.lattice_step
        for shares, table in zip(coefficients, tables, strict=True)
    ]
    return CellError(law_of_noises(np.concatenate(scales), is_gaussian), math.fsum(widenings))


def cell_coefficients(
    tables: Sequence[NoisyTable], holder: int, summed: Floats, *, is_total_public: bool = False
) -> list[Floats]:
    """The coefficient of every measured value in a sum of reconciled cells.

    Parameters
    ----------
    tables : sequence of NoisyTable
        Only scopes and variances are read, not values.
    holder : int
        The table whose cells are summed.
    summed : ndarray of float64
        In that table's shape: how often each of its cells is in the sum.
    is_total_public : bool

    Returns
    -------
    list of ndarray of float64
        In the shapes of the tables.

    Notes
    -----
    With ``W`` the diagonal matrix of inverse variances, the projection ``P`` is symmetric for the
    inner product of ``W``: ``W P = P' W``. The sum is ``f' P m``, ``m`` all measured values, so
    that the coefficients are ``P' f = W P (W^-1 f)``: one projection, of ``f`` times the holder's
    variance, finds them all.
    """
    probes = [NoisyTable(one.scope, np.zeros_like(one.values), one.variance) for one in tables]
    own = tables[holder]
    probes[holder] = NoisyTable(own.scope, summed * own.variance, own.variance)
    moved = projected(probes, total=0.0 if is_total_public else None)
    return [cells / one.variance for cells, one in zip(moved, tables, strict=True)]


class UnknownLaw:
    """The unknown law of an error: which cells were clipped depends on the noise.

    Its widths are NaN, so that an interval has no ends rather than wrong ones.
    """

    __slots__ = ()

    @property
    def scales(self) -> Floats:
        """One scale, not a number."""
        return np.array([math.nan])

    @property
    def gaussian(self) -> float:
        """No Gaussian part beside it."""
        return 0.0

    @property
    def tail_error(self) -> float:
        """Not a number."""
        return math.nan

    def tail(self, z: float) -> float:  # noqa: ARG002 - a law's method
        """Not a number."""
        return math.nan

    def half_width(self, confidence: float) -> float:  # noqa: ARG002 - a law's method
        """Not a number."""
        return math.nan
