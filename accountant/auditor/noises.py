"""The noise for a weight, as a charge records it, and whether it suffices.

``2**-lattice_bits`` is the lattice and `s` the scale of the discrete Laplace variable in units of
the answer: a record that moves an answer by 1 moves it by ``2**bits`` steps of a law whose scale is
``s 2**bits`` steps, so the privacy loss is ``1/s``. So ``1/s`` must not exceed the paid weight,
exactly: see proofs/noise.md.
"""

import math
from dataclasses import dataclass
from typing import Final

from accountant.auditor.fields import Fields, text, whole
from accountant.auditor.wrong import Wrong
from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX

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
        raise Wrong(f"a weight of {units} units on a lattice of {bits} bits")
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
        raise Wrong("a measurement raised to a weight that is no larger")
    if may_be_clamped or after.lattice_bits != before.lattice_bits or after.scale >= before.scale:
        raise Wrong("a measurement raised to noise that is no refinement of its own")
    return after.weight_units - before.weight_units


def scale_of(fields: Fields, name: str) -> float:
    """A positive float, to the last bit."""
    written = text(fields, name)
    try:
        scale = float.fromhex(written)
    except (ValueError, OverflowError):
        scale = math.nan
    if not 0 < scale < math.inf or scale.hex() != written:
        raise Wrong(f"{name} is no positive number in hexadecimal")
    return scale
