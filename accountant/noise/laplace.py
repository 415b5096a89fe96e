"""The noise: discrete Laplace on a power-of-two lattice, from the system's entropy.

A discrete Laplace variable is added to a row on the lattice (lattice.py), by OpenDP's exact
sampler. A row that is measured again at a larger weight has its noise refined on the same lattice
instead of drawn again (refinement.py). Discrete Gaussian noise (gaussian.py) is drawn here too.

There is no seed to pass: repeatable noise protects nothing. Proof: proofs/noise.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import opendp.prelude as dp

from accountant.noise.gaussian import GaussianNoise
from accountant.noise.lattice import (
    LATTICE_ANSWER_MAX,
    STEP_BITS_UNDER_RECORD,
    STEP_BITS_UNDER_SCALE,
    OnLattice,
    rounded_up,
)
from accountant.noise.refinement import Refinement
from cube.measurement import EPSILON_UNIT_BITS, Measurement, Weight
from cube.refusals import TooLarge

# A coarser lattice would widen intervals visibly, as they treat noise as continuous.
SCALE_IN_STEPS_MIN = 2**6
# The clamp of `on_lattice` is never below 2**62 - 1, whatever the bound on answers was then.
UNCLAMPED_MAX = 2**63 - 2 - LATTICE_ANSWER_MAX


@dataclass(frozen=True, slots=True)
class LatticeNoise(OnLattice):
    """The noise for a weight.

    Parameters
    ----------
    weight : Weight
        Epsilon per unit of sensitivity.
    lattice_bits : int
        The lattice is the whole multiples of ``2**-lattice_bits``.
    scale_in_steps : float
        The scale of the discrete Laplace law, in lattice steps. One record that moves a row by one
        unit moves it by ``2**lattice_bits`` steps, at a loss of ``2**lattice_bits /
        scale_in_steps``, which must not exceed the weight.
    """

    weight: Weight
    lattice_bits: int
    scale_in_steps: float

    def __post_init__(self) -> None:
        # In whole numbers, as every charge of a ledger is checked when a server starts.
        steps, divisor = self.scale_in_steps.as_integer_ratio()
        if divisor << (self.lattice_bits + EPSILON_UNIT_BITS) > steps * self.weight.units:
            raise ValueError("the noise is smaller than the paid weight allows")

    @classmethod
    def for_weight(cls, weight: Weight, of_record: Fraction | None = None) -> "LatticeNoise":
        """The finest useful lattice, and the smallest scale that the weight allows on it.

        Parameters
        ----------
        weight : Weight
        of_record : Fraction, optional
            The most by which one record moves a row that may be raised later. A lattice is kept by
            all raises, so its step is also far below that, however small the weight is now.

        Notes
        -----
        Both are public, and any lattice is as private as any other.

        >>> LatticeNoise.for_weight(Weight.at_least(0.25)).lattice_bits
        18
        >>> LatticeNoise.for_weight(Weight.at_least(1e-6), of_record=Fraction(1)).lattice_bits
        10
        """
        # The least number of bits with 2**bits >= 2**20 * weight.
        shift = EPSILON_UNIT_BITS - STEP_BITS_UNDER_SCALE
        lattice_bits = max(0, (-(-weight.units >> shift) - 1).bit_length())
        if of_record is not None:
            bits_of_record = (math.ceil(of_record) - 1).bit_length()
            lattice_bits = max(lattice_bits, STEP_BITS_UNDER_RECORD - bits_of_record)
        return cls(weight, lattice_bits, rounded_up(2**lattice_bits / weight.exact))

    @classmethod
    def of(cls, measurement: Measurement) -> "LatticeNoise":
        """The noise of a measurement."""
        scale_in_steps = math.ldexp(measurement.noise_scale, measurement.lattice_bits)
        return cls(measurement.laplace_weight, measurement.lattice_bits, scale_in_steps)

    def refined_to(self, weight: Weight) -> "LatticeNoise":
        """The noise for a larger weight on the same lattice.

        Raises
        ------
        TooLarge
            If the lattice is too coarse for it. Depends on the weights alone.
        """
        scale_in_steps = rounded_up(2**self.lattice_bits / weight.exact)
        if scale_in_steps <= SCALE_IN_STEPS_MIN:
            raise TooLarge(
                "An earlier answer is on too coarse a lattice to be raised to this accuracy.",
                hint="Ask for a wider half_width, or for the same rows grouped another way.",
            )
        return LatticeNoise(weight, self.lattice_bits, scale_in_steps)

    def found_in(self, noisy: Sequence[int], exact: Sequence[int]) -> tuple[int, ...]:
        """The noise in values that `on_lattice` returned unclamped. As secret as `exact`."""
        return tuple(
            value - (answer << self.lattice_bits)
            for value, answer in zip(noisy, exact, strict=True)
        )


def may_be_clamped(measurement: Measurement) -> bool:
    """Whether the clamp may have changed a noisy value, so that its noise is unknown.

    The result does not depend on the public bound on answers, which may have changed since.
    """
    return any(abs(value) > UNCLAMPED_MAX for value in measurement.lattice_values)


class NoiseSource(Protocol):
    """The source of randomness."""

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        """Draw `size` independent variables with ``Pr(k)`` proportional to ``exp(-|k|/scale)``."""
        ...

    def refined_laplace(
        self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
    ) -> tuple[int, ...]:
        """Draw variables of the `fine` law, given those `drawn` before from the `coarse` law.

        Each pair differs by a variable that is independent of the fine one.
        """
        ...

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:
        """Draw `size` independent variables with ``Pr(k) ~ exp(-k**2 / (2 scale**2))``."""
        ...


class SystemNoise:
    """Noise from the operating system's entropy, by OpenDP's exact discrete sampler."""

    def discrete_laplace(self, noise: LatticeNoise, size: int) -> tuple[int, ...]:
        """Draw noise, in lattice steps, and check it against OpenDP's own privacy loss.

        Raises
        ------
        ValueError
            If OpenDP computes a loss above the weight for one unit of the answer.
        """
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        mechanism = dp.m.make_laplace(*space, scale=noise.scale_in_steps)
        # One unit of the answer is 2**lattice_bits steps; losses are proportional to distance.
        loss_per_step = Fraction(mechanism.map(1))  # type: ignore[no-untyped-call]  # opendp's stubs
        if loss_per_step * 2**noise.lattice_bits > noise.weight.exact:
            raise ValueError("the noise is smaller than the paid weight allows")
        return tuple(int(drawn) for drawn in mechanism([0] * size))

    def refined_laplace(
        self, coarse: LatticeNoise, fine: LatticeNoise, drawn: Sequence[int]
    ) -> tuple[int, ...]:
        """Refine noise, in lattice steps, by the exact conditional law.

        Raises
        ------
        ValueError
            If the two laws are not on one lattice, or the fine one is not the narrower.
        """
        if coarse.lattice_bits != fine.lattice_bits:
            raise ValueError("noise can only be refined on the lattice on which it was drawn")
        refinement = Refinement.of_scales(coarse.scale_in_steps, fine.scale_in_steps)
        return tuple(refinement.draw(noise) for noise in drawn)

    def discrete_gaussian(self, noise: GaussianNoise, size: int) -> tuple[int, ...]:
        """Draw Gaussian noise, in lattice steps, and check it against OpenDP's own privacy loss.

        Raises
        ------
        ValueError
            If OpenDP computes a loss of a record above what is paid.
        """
        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        mechanism = dp.m.make_gaussian(*space, scale=noise.scale_in_steps)
        moved = rounded_up(Fraction(noise.sensitivity * 2**noise.lattice_bits))
        loss = Fraction(mechanism.map(moved))  # type: ignore[no-untyped-call]  # opendp's stubs
        if loss > noise.rho.exact:
            raise ValueError("the noise is smaller than the paid rho allows")
        return tuple(int(drawn) for drawn in mechanism([0] * size))
