"""Checks that the noise a charge records is large enough for its price, and prices it at a cell.

Laplace noise is for a weight. ``2**-lattice_bits`` is the lattice and `s` the scale of the discrete
Laplace variable in units of the answer: a record that moves an answer by 1 moves it by ``2**bits``
steps of a law whose scale is ``s 2**bits`` steps, so the privacy loss is ``1/s``. So ``1/s`` must
not exceed the paid weight, exactly: see proofs/noise.md.

Gaussian noise is for a rho:

    rho      = (sensitivity / sigma)**2 / 2 at least, sigma in units of the answer
    epsilon  = order * rho + log(1 / (order * delta)) / (order - 1) + log(1 - 1 / order)

for the sum of the rho of a table's statistics, at one delta and one order that never change. The
logarithms are computed here in whole numbers, by a series; the result is at most `SLACK` below the
exact epsilon and never above it, so that no charge that pays enough is rejected. Rows have a
precision, the rho of one unit. Proof: proofs/gaussian_noise.md.

What a row costs a cell is a number of whole units of 2**-40 epsilon, by the size of its coefficient
there, and is added up in the cost of rows (costs/tables.py):

    Laplace noise     weight * size
    Gaussian noise    order * precision * size**2, rounded up

Nothing here knows which sizes there are. Proof: proofs/ledger.md, "The most expensive cell".
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.auditor.fields import Fields, Json, Wrong, fields_of, fraction, text, whole
from cube.measurement import (
    DELTA_MAX,
    DELTA_MIN,
    EPSILON_UNIT_BITS,
    ORDER_MAX,
    ORDER_UNIT_BITS,
    PRECISION_UNIT_BITS,
    PRECISION_UNITS_MAX,
    RHO_UNITS_MAX,
    UNITS_PER_EPSILON,
    UNITS_PER_PRECISION,
    UNITS_PER_RHO,
    WEIGHT_UNITS_MAX,
)

LATTICE_BITS_MAX: Final = 32
# Whatever the public bound on answers was, a value up to here was not clamped.
UNCLAMPED_MAX: Final = 2**63 - 2 - 2**62


@dataclass(frozen=True, slots=True)
class Noise:
    """Discrete Laplace noise of a scale, on a lattice, for a weight."""

    weight_units: int
    lattice_bits: int
    scale: float


def noise_of(fields: Fields) -> Noise:
    """The noise among the fields of a purchase; Wrong if there is none."""
    units, bits = whole(fields, "weight_units", 1), whole(fields, "lattice_bits")
    if units > WEIGHT_UNITS_MAX or bits > LATTICE_BITS_MAX:
        raise Wrong(f"a weight of {units} units or a lattice of {bits} bits is too large")
    return Noise(units, bits, scale_of(fields, "noise_scale"))


def check_noise(noise: Noise) -> None:
    """Raise Wrong unless the privacy loss is within the weight: ``1/scale <= weight``."""
    numerator, denominator = noise.scale.as_integer_ratio()
    if denominator * UNITS_PER_EPSILON > numerator * noise.weight_units:
        raise Wrong("the noise is smaller than the paid weight allows")


def refined_by(after: Noise, before: Noise, *, may_be_clamped: bool) -> int:
    """The weight that is added; Wrong unless the noise is a refinement of the earlier one.

    `may_be_clamped` says whether that can be told from the earlier values.
    """
    if after.weight_units <= before.weight_units:
        raise Wrong("a measurement was raised to a weight that is not larger")
    if may_be_clamped or after.lattice_bits != before.lattice_bits or after.scale >= before.scale:
        raise Wrong("a measurement was raised to noise that does not refine its noise")
    return after.weight_units - before.weight_units


def scale_of(fields: Fields, name: str) -> float:
    """A positive float, to the last bit."""
    written = text(fields, name)
    try:
        scale = float.fromhex(written)
    except (ValueError, OverflowError):
        scale = math.nan
    if not 0 < scale < math.inf or scale.hex() != written:
        raise Wrong(f"{name} is not a positive number in hexadecimal")
    return scale


Whole: TypeAlias = NDArray[Any]  # int64, or Python's integers where those could overflow


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a row at a cell, by the size of its share there, in units of 2**-40 epsilon.

    ``numerator * size**power / 2**shift``, rounded up.

    Parameters
    ----------
    numerator : int
    shift : int
    power : int
        1 for Laplace noise, 2 for Gaussian noise.
    """

    numerator: int
    shift: int = 0
    power: int = 1

    def of(self, size: int) -> int:
        """The price of one size."""
        price: int = -(-self.numerator * size**self.power >> self.shift)
        return price

    def of_all(self, sizes: Whole) -> Whole:
        """The prices of many, where they and the sizes fit into the type of `sizes`."""
        if (self.shift, self.power) == (0, 1):
            multiplied: Whole = sizes * np.array(self.numerator, dtype=sizes.dtype)
            return multiplied
        found, places = np.unique(sizes, return_inverse=True)
        prices = np.array([self.of(size) for size in found.tolist()], dtype=sizes.dtype)
        return prices[places].reshape(sizes.shape)

    def of_part(self, whole: int) -> "Price":
        """The price of parts of a size that is at most `whole`: their sum is nowhere below."""
        return Price(self.numerator * whole ** (self.power - 1), self.shift)


SLACK: Final = Fraction(1, 10**40)
BITS: Final = 256  # of the fixed point in which logarithms are computed


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Discrete Gaussian noise with a standard deviation, for a rho."""

    rho_units: int
    scale: float


@dataclass(frozen=True, slots=True)
class RowNoise:
    """Discrete Gaussian noise with a standard deviation, for the precision of a row."""

    precision_units: int
    scale: float


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which a table's Gaussian noise is accounted."""

    delta: Fraction
    order: Fraction


class GaussianAccount:
    """The Gaussian noise of one table's statistics, and the terms of all such noise.

    Parameters
    ----------
    rows_per_unit : int
        The most rows of one unit.
    """

    def __init__(self, rows_per_unit: int = 1) -> None:
        self._rows_per_unit = rows_per_unit
        self._terms: Terms | None = None
        self._rho_units = 0
        self._steps: list[tuple[int, int]] = []  # an entry, and the cost from that entry on

    @property
    def units(self) -> int:
        """The present cost, in units of 2**-40 epsilon."""
        return self._steps[-1][1] if self._steps else 0

    def charge(self, seq: int, terms: Terms, rho_units: int) -> None:
        """Add Gaussian noise; Wrong if on other terms."""
        if self._terms not in (None, terms):
            raise Wrong("the terms of the Gaussian noise differ from the table's")
        self._terms = terms
        self._rho_units += self._rows_per_unit**2 * rho_units
        self._steps.append((seq, cost_units(terms, self._rho_units)))

    def after(self, seq: int) -> tuple[Fraction | None, int]:
        """Its delta, if there is any, and its cost after an entry."""
        units = [cost for since, cost in self._steps if since <= seq]
        return (self._terms.delta, units[-1]) if self._terms and units else (None, 0)


def gaussian_noise_of(fields: Fields) -> GaussianNoise:
    """The noise among the fields of a purchase; Wrong if there is none."""
    units, bits = whole(fields, "rho_units", 1), whole(fields, "lattice_bits")
    if units > RHO_UNITS_MAX or bits > LATTICE_BITS_MAX:
        raise Wrong(f"a rho of {units} units or a lattice of {bits} bits is too large")
    return GaussianNoise(units, scale_of(fields, "noise_scale"))


def check_gaussian(noise: GaussianNoise, sensitivity: int) -> None:
    """Raise Wrong unless the noise loses no more than its rho."""
    if (sensitivity / Fraction(noise.scale)) ** 2 > Fraction(2 * noise.rho_units, UNITS_PER_RHO):
        raise Wrong("the noise is smaller than the paid rho allows")


def row_noise_of(fields: Fields) -> RowNoise:
    """The Gaussian noise of rows among the fields of a purchase; Wrong if there is none."""
    units, bits = whole(fields, "precision_units", 1), whole(fields, "lattice_bits")
    if units > PRECISION_UNITS_MAX or bits > LATTICE_BITS_MAX:
        raise Wrong(f"a precision of {units} units or a lattice of {bits} bits is too large")
    return RowNoise(units, scale_of(fields, "noise_scale"))


def check_row_noise(noise: RowNoise) -> None:
    """Raise Wrong unless the noise loses no more than its precision, for each squared unit."""
    if 1 / Fraction(noise.scale) ** 2 > Fraction(2 * noise.precision_units, UNITS_PER_PRECISION):
        raise Wrong("the noise is smaller than the paid precision allows")


def price_per_square(noise: RowNoise, terms: Terms, times: int = 1) -> Price:
    """The cost of a row at a cell, by the size of its coefficient there.

    ``times * order * precision * size**2`` in units of 2**-40, rounded up.
    """
    order_units = terms.order * 2**ORDER_UNIT_BITS
    shift = ORDER_UNIT_BITS + PRECISION_UNIT_BITS - EPSILON_UNIT_BITS
    numerator = times * order_units.numerator * noise.precision_units
    return Price(numerator, shift, power=2)


def terms_of(value: Json) -> Terms:
    """The terms of a charge; Wrong if they are not valid."""
    fields = fields_of(value, ("delta", "order"))
    delta, order = fraction(fields, "delta"), fraction(fields, "order")
    if not DELTA_MIN <= delta <= DELTA_MAX:
        raise Wrong(f"the delta {delta} is outside 1e-30 to 1e-3")
    if not 1 < order <= ORDER_MAX or 2**ORDER_UNIT_BITS % order.denominator:
        raise Wrong(
            f"the order {order} must be above 1, at most {ORDER_MAX} and a multiple of "
            f"2**-{ORDER_UNIT_BITS}"
        )
    return Terms(delta, order)


def cost_units(terms: Terms, rho_units: int) -> int:
    """The cost of this much rho, in whole units of 2**-40 epsilon."""
    cost = terms.order * Fraction(rho_units, UNITS_PER_RHO) + _constant(terms)
    units: int = math.ceil(cost * UNITS_PER_EPSILON)
    return units


@lru_cache(maxsize=64)
def _constant(terms: Terms) -> Fraction:
    """The part of the cost that does not depend on rho."""
    less = terms.order - 1
    tail = -logarithm(terms.order * terms.delta) / less
    return max(Fraction(0), tail + logarithm(less / terms.order) - SLACK)


def logarithm(value: Fraction) -> Fraction:
    """The natural logarithm, to more than sixty digits.

    Notes
    -----
    ``log(m 2**k) = log(m) + k log(2)`` and ``log(m) = 2 artanh((m - 1) / (m + 1))``, with `m` from
    1/2 to 2, so that each term of the series is at most a ninth of the one before.
    """
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    rest = value / Fraction(2) ** shift
    steps = _artanh((rest - 1) / (rest + 1)) + shift * _artanh(Fraction(1, 3))
    return Fraction(2 * steps, 2**BITS)


def _artanh(value: Fraction) -> int:
    """``value + value**3 / 3 + value**5 / 5 + ..`` in units of ``2**-BITS``, to some hundreds."""
    power = value.numerator * 2**BITS // value.denominator
    square = power * power >> BITS
    total, divisor = 0, 1
    while power not in (0, -1):  # rounding down leaves negative powers at -1
        total += power // divisor
        power = power * square >> BITS
        divisor += 2
    return total
