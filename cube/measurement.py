"""Measurements: the rows of the history, and the exact weights at which they were bought.

A row's noisy value is ``row . x + noise``, where the noise is discrete Laplace on the lattice
``2**-lattice_bits`` with scale at least ``1 / weight``. Weights and costs are whole multiples of
``2**-40``: what is spent never depends on a float.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cube.block import QueryBlock
from cube.cached import cached_property

EPSILON_UNIT_BITS = 40  # 2**-40 is a trillionth of epsilon: finer than any price
UNITS_PER_EPSILON = 2**EPSILON_UNIT_BITS
WEIGHT_UNITS_MAX = 2**52  # a weight of 4096: noise below a thousandth of a record is no noise


@dataclass(frozen=True, slots=True, order=True)
class Weight:
    """Epsilon per unit of sensitivity, in units of 2**-40.

    >>> Weight.at_least(0.1).exact >= Fraction(1, 10)
    True
    """

    units: int

    def __post_init__(self) -> None:
        if type(self.units) is not int:
            raise TypeError("a weight is a whole number of units")
        if not 0 < self.units <= WEIGHT_UNITS_MAX:
            raise ValueError(f"a weight is 1 to {WEIGHT_UNITS_MAX} units, not {self.units}")

    @classmethod
    def at_least(cls, epsilon: float | Fraction) -> "Weight":
        """The smallest weight not below `epsilon`: rounding goes towards more cost."""
        exact = Fraction(epsilon) * UNITS_PER_EPSILON
        return cls(max(1, -(-exact.numerator // exact.denominator)))

    @property
    def exact(self) -> Fraction:
        """The weight as an exact number."""
        return Fraction(self.units, UNITS_PER_EPSILON)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMeasurement:
    """A block to measure, and the weight at which to measure each of its rows.

    Parameters
    ----------
    block : QueryBlock
        Its query must be a whole-number row without a constant (`LinearQuery.primitive`).
    weight : Weight
        The weight of each row once it is measured.
    raised_from : int, optional
        The place, in the order of purchase, of an earlier measurement of the same block. Its noise
        is then refined to the larger weight, and only the difference is paid.
    """

    block: QueryBlock
    weight: Weight
    raised_from: int | None = None

    def __post_init__(self) -> None:
        if self.block.query.is_constant:
            raise ValueError("a block of constants needs no measurement")
        if self.block.query.constant != 0:
            raise ValueError("a measured row has no constant")
        if any(term.scale.denominator != 1 for term in self.block.query.terms):
            raise ValueError("a measured row has whole coefficients")
        _check_place(self.raised_from)


@dataclass(frozen=True, eq=False)
class Measurement:
    """A block that was measured.

    Parameters
    ----------
    block : QueryBlock
        What was measured.
    weight : Weight
        The epsilon paid, per unit of sensitivity.
    lattice_bits : int
        The noisy values are whole multiples of ``2**-lattice_bits``.
    noise_scale : float
        The scale of the Laplace noise, in units of the answer; at least ``1 / weight``.
    lattice_values : (n_rows,) tuple of int
        The noisy values in lattice steps.
    supersedes : int, optional
        The place, in the order of purchase, of the measurement from which this one was raised.
        The earlier one is this one plus noise: it adds no information, and nothing is paid twice.
    """

    block: QueryBlock
    weight: Weight
    lattice_bits: int
    noise_scale: float
    lattice_values: tuple[int, ...]
    supersedes: int | None = None

    def __post_init__(self) -> None:
        if len(self.lattice_values) != self.block.n_rows:
            raise ValueError(f"{len(self.lattice_values)} values for {self.block.n_rows} rows")
        if Fraction(self.noise_scale) * self.weight.exact < 1:
            raise ValueError("the noise is smaller than the paid weight allows")
        _check_place(self.supersedes)

    @property
    def lattice_step(self) -> float:
        """The lattice step in units of the answer, a power of two."""
        return 2.0**-self.lattice_bits

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The noisy values, (n_rows,), in units of the answer."""
        steps = np.array([float(value) for value in self.lattice_values], dtype=np.float64)
        values = steps * self.lattice_step
        values.flags.writeable = False
        return values


def _check_place(place: int | None) -> None:
    if place is not None and (type(place) is not int or place < 0):
        raise ValueError(f"a place in the history is 0, 1, 2, ..., not {place!r}")
