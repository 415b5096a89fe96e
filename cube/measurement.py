"""Measurements: the rows of the history, and the exact prices at which they were bought.

A row's noisy value is ``row . x + noise``. The noise is discrete Laplace on the lattice
``2**-lattice_bits`` with scale at least ``1 / weight``; or, on a table whose owner offers a delta,
discrete Gaussian with variance at least ``1 / (2 * precision)``. Weights and costs are whole
multiples of ``2**-40``, precisions of ``2**-100``: what is spent never depends on a float.

    Weight           what a row with Laplace noise costs, in epsilon, for each unit of sensitivity
    Precision        what a row costs for each squared unit by which one record moves it
    Rho              what a whole release costs, in zero-concentrated differential privacy
    GaussianTerms    the delta and the order at which rho becomes epsilon, one pair a table

Nothing here touches data, noise or budget.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.query import QueryBlock
from cube.runtime import cached_property

RHO_UNIT_BITS: Final = 60  # one unit gives a count a standard deviation near a billion records
UNITS_PER_RHO: Final = 2**RHO_UNIT_BITS
RHO_UNITS_MAX: Final = 2**63  # a rho of 8: a deviation of a quarter of a record is no noise
DELTA_MIN: Final = Fraction(1, 10**30)  # less is practically zero
DELTA_MAX: Final = Fraction(1, 1000)  # a record may be exposed with this probability
ORDER_UNIT_BITS: Final = 10  # of an order: finer than any price shows
ORDER_MAX: Final = 2**20


@dataclass(frozen=True, slots=True, order=True)
class Rho:
    """Zero-concentrated differential privacy, in units of 2**-60.

    >>> Rho.at_most(0.5).exact
    Fraction(1, 2)
    """

    units: int

    def __post_init__(self) -> None:
        if type(self.units) is not int:
            raise TypeError("rho must be a whole number of units")
        if not 0 < self.units <= RHO_UNITS_MAX:
            raise ValueError(f"rho must be 1 to {RHO_UNITS_MAX} units, not {self.units}")

    @classmethod
    def at_most(cls, rho: float | Fraction) -> "Rho":
        """The largest rho not above `rho`, for callers that divide a budget."""
        return cls(int(Fraction(rho) * UNITS_PER_RHO))

    @property
    def exact(self) -> Fraction:
        """The rho as an exact number."""
        return Fraction(self.units, UNITS_PER_RHO)


@dataclass(frozen=True, slots=True)
class GaussianTerms:
    """The terms on which all Gaussian noise of a table is accounted; they never change.

    Parameters
    ----------
    delta : Fraction
        The probability with which the epsilon guarantee may fail.
    order : Fraction
        The Renyi order at which rho is converted to epsilon: above 1, in whole units of 2**-10.
        Every order is sound; for each epsilon one of them is best.
    """

    delta: Fraction
    order: Fraction

    def __post_init__(self) -> None:
        if not DELTA_MIN <= self.delta <= DELTA_MAX:
            raise ValueError("delta must be 1e-30 to 1e-3")
        if not 1 < self.order <= ORDER_MAX or 2**ORDER_UNIT_BITS % self.order.denominator:
            raise ValueError("the order must be above 1, at most 2**20 and a multiple of 2**-10")


PRECISION_UNIT_BITS: Final = 100  # fine enough for sums of billions, in cents
UNITS_PER_PRECISION: Final = 2**PRECISION_UNIT_BITS
PRECISION_UNITS_MAX: Final = 8 * UNITS_PER_PRECISION  # as for a rho: more is no noise


@dataclass(frozen=True, slots=True, order=True)
class Precision:
    """The rho that a row costs a cell for each squared unit of its coefficient, in 2**-100.

    It is half of one over the variance of the row's Gaussian noise: of two independent values of a
    row, the precisions add up, and so do their costs.

    >>> Precision.at_least(Fraction(1, 8)).exact
    Fraction(1, 8)
    """

    units: int

    def __post_init__(self) -> None:
        if type(self.units) is not int:
            raise TypeError("a precision must be a whole number of units")
        if not 0 < self.units <= PRECISION_UNITS_MAX:
            raise ValueError(
                f"a precision must be 1 to {PRECISION_UNITS_MAX} units, not {self.units}"
            )

    @classmethod
    def at_least(cls, rho: float | Fraction) -> "Precision":
        """The smallest precision not below `rho`: rounding goes towards more cost."""
        exact = Fraction(rho) * UNITS_PER_PRECISION
        return cls(max(1, -(-exact.numerator // exact.denominator)))

    @property
    def exact(self) -> Fraction:
        """The precision as an exact number."""
        return Fraction(self.units, UNITS_PER_PRECISION)


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
            raise TypeError("a weight must be a whole number of units")
        if not 0 < self.units <= WEIGHT_UNITS_MAX:
            raise ValueError(f"a weight must be 1 to {WEIGHT_UNITS_MAX} units, not {self.units}")

    @classmethod
    def at_least(cls, epsilon: float | Fraction) -> "Weight":
        """The smallest weight not below `epsilon`: rounding goes towards more cost."""
        exact = Fraction(epsilon) * UNITS_PER_EPSILON
        return cls(max(1, -(-exact.numerator // exact.denominator)))

    @property
    def exact(self) -> Fraction:
        """The weight as an exact number."""
        return Fraction(self.units, UNITS_PER_EPSILON)


class _OfEitherKind:
    """A base of measurements with noise of either kind; the weight shows the kind."""

    __slots__ = ()
    weight: Weight | Precision

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is Gaussian; Laplace otherwise."""
        return isinstance(self.weight, Precision)

    @property
    def laplace_weight(self) -> Weight:
        """The weight, of a measurement with Laplace noise; TypeError for another."""
        if not isinstance(self.weight, Weight):
            raise TypeError("a measurement with Gaussian noise has a precision, not a weight")
        return self.weight

    @property
    def precision(self) -> Precision:
        """The precision, of a measurement with Gaussian noise; TypeError for another."""
        if not isinstance(self.weight, Precision):
            raise TypeError("a measurement with Laplace noise has a weight, not a precision")
        return self.weight


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMeasurement(_OfEitherKind):
    """A block to measure, and the weight at which to measure each of its rows.

    Parameters
    ----------
    block : QueryBlock
        Its query must be a whole-number row without a constant (`LinearQuery.primitive`).
    weight : Weight or Precision
        The weight of each row once it is measured; a precision for Gaussian noise.
    raised_from : int, optional
        The place, in the order of purchase, of an earlier measurement of the same block with noise
        of the same kind. Its noise is then refined to the larger weight, or its value combined with
        another; only the difference is paid.
    terms : GaussianTerms, optional
        With a precision, and only then: the table's terms, or for a table without Gaussian noise so
        far those that it will have.
    """

    block: QueryBlock
    weight: Weight | Precision
    raised_from: int | None = None
    terms: GaussianTerms | None = None

    def __post_init__(self) -> None:
        if (self.terms is not None) != isinstance(self.weight, Precision):
            raise ValueError(
                "Gaussian noise needs a precision and terms; Laplace noise must have neither"
            )
        if self.block.query.is_constant:
            raise ValueError("a block of constants needs no measurement")
        if self.block.query.constant != 0:
            raise ValueError("a measured row must not have a constant")
        if any(term.scale.denominator != 1 for term in self.block.query.terms):
            raise ValueError("the coefficients of a measured row must be whole numbers")
        _check_place(self.raised_from)


@dataclass(frozen=True, eq=False)
class Measurement(_OfEitherKind):
    """A block that was measured.

    Parameters
    ----------
    block : QueryBlock
        The measured rows.
    weight : Weight or Precision
        The epsilon paid, per unit of sensitivity; or the rho, per squared unit.
    lattice_bits : int
        The noisy values are whole multiples of ``2**-lattice_bits``.
    noise_scale : float
        The scale of the Laplace noise, in units of the answer; at least ``1 / weight``. For
        Gaussian noise, the scale of Laplace noise of the same variance: ``deviation / sqrt(2)``,
        so that rows of both kinds are combined by one number.
    lattice_values : (n_rows,) tuple of int
        The noisy values in lattice steps.
    supersedes : int, optional
        The place, in the order of purchase, of the measurement from which this one was raised.
        The earlier one is this one plus independent noise: it adds no information, and nothing is
        paid twice.
    averaging_error : float
        For values that are averages of others, what the lattices of those and the rounding of the
        average add to `lattice_widening`.
    """

    block: QueryBlock
    weight: Weight | Precision
    lattice_bits: int
    noise_scale: float
    lattice_values: tuple[int, ...]
    supersedes: int | None = None
    averaging_error: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.averaging_error < math.inf:
            raise ValueError("the error of averaging must be finite and not negative")
        if len(self.lattice_values) != self.block.n_rows:
            raise ValueError(
                f"there are {len(self.lattice_values)} values for {self.block.n_rows} rows"
            )
        if not self._is_paid:
            raise ValueError("the noise is smaller than the paid weight allows")
        _check_place(self.supersedes)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise, in units of the answer."""
        return math.sqrt(2) * self.noise_scale

    @property
    def _is_paid(self) -> bool:
        """Whether noise this small costs no more than was paid; in whole numbers."""
        scale, divisor = self.noise_scale.as_integer_ratio()
        if isinstance(self.weight, Precision):  # twice the variance, times the precision
            paid = 4 * scale * scale * self.weight.units
            return bool(paid >= divisor * divisor * UNITS_PER_PRECISION)
        return bool(scale * self.weight.units >= divisor * UNITS_PER_EPSILON)

    @property
    def lattice_step(self) -> float:
        """The lattice step in units of the answer, a power of two."""
        return 2.0**-self.lattice_bits

    @property
    def lattice_widening(self) -> float:
        """A certain bound on how far the noise is from continuous noise of its law."""
        return self.lattice_step + self.averaging_error

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The noisy values, (n_rows,), in units of the answer."""
        steps = np.array([float(value) for value in self.lattice_values], dtype=np.float64)
        values = steps * self.lattice_step
        values.flags.writeable = False
        return values


def _check_place(place: int | None) -> None:
    if place is not None and (type(place) is not int or place < 0):
        raise ValueError(f"a place in the history must be 0, 1, 2, ..., not {place!r}")
