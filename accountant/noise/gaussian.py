"""The Gaussian noise for a rho, or for the precision of a row, on a lattice.

A row's exact answer is put on a power-of-two lattice far finer than the noise, and a discrete
Gaussian variable is added there. One record moves the rows of a block by at most the `sensitivity`,
in L2, as it is in only one group. The sensitivity is computed from the query; no caller states it.
A row of the history is priced for each cell by its own coefficient there: its noise is for one
unit.

Values only; laplace.py draws the noise. Proof: proofs/gaussian_noise.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from accountant.noise.lattice import STEP_BITS_UNDER_SCALE, OnLattice
from cube.measurement import Precision, Rho
from cube.statistic import GaussianStatistic

# Of the deviation: so that OpenDP's own account, in floats rounded up, stays within what is paid.
MARGIN: Final = 2.0**-40


@dataclass(frozen=True, slots=True)
class GaussianNoise(OnLattice):
    """The noise for a rho, for rows of a sensitivity.

    Parameters
    ----------
    rho : Rho or Precision
        Of a row of the history, its precision: the rho of a record that moves it by one unit.
    sensitivity : int
        The most by which one record moves the answers, in L2 and in their own unit; 1 with a
        precision.
    lattice_bits : int
        The lattice is the whole multiples of ``2**-lattice_bits``.
    scale_in_steps : float
        The parameter `sigma` of the discrete Gaussian law, in lattice steps. A record loses
        ``(sensitivity * 2**lattice_bits / sigma)**2 / 2``, which must not exceed rho.
    """

    rho: Rho | Precision
    sensitivity: int
    lattice_bits: int
    scale_in_steps: float

    def __post_init__(self) -> None:
        if self.sensitivity < 1:
            raise ValueError("a sensitivity of 0 needs no noise")
        if isinstance(self.rho, Precision) and self.sensitivity != 1:
            raise ValueError("a precision is for one unit")
        moved = Fraction(self.sensitivity * 2**self.lattice_bits)
        if (moved / Fraction(self.scale_in_steps)) ** 2 > 2 * self.rho.exact:
            raise ValueError("the noise is smaller than the paid rho allows")

    @classmethod
    def for_rho(cls, rho: Rho | Precision, sensitivity: int) -> "GaussianNoise":
        """The finest useful lattice, and nearly the smallest scale that the rho allows on it."""
        deviation = sensitivity / math.sqrt(2 * rho.exact) * (1 + MARGIN)
        bits_of_deviation = math.frexp(deviation)[1] - 1  # 2**bits <= deviation
        lattice_bits = max(0, STEP_BITS_UNDER_SCALE - bits_of_deviation)
        return cls(rho, sensitivity, lattice_bits, math.ldexp(deviation, lattice_bits))

    @classmethod
    def for_precision(cls, precision: Precision) -> "GaussianNoise":
        """The same for a row of the history."""
        return cls.for_rho(precision, 1)

    @property
    def variance(self) -> Fraction:
        """The variance, in squared units of the answer; of the discrete law, at most this."""
        return Fraction(self.noise_scale) ** 2


def sensitivity_of(statistic: GaussianStatistic) -> int:
    """The most by which one record moves the released numbers, in L2.

    Notes
    -----
    The groups of a block share no cell, so only one row moves, by the coefficient at the record's
    cell; and a sum of distances moves by no more than the rows.
    """
    return max(1, int(statistic.block.query.bound))
