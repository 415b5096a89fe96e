"""The noise: discrete Laplace and discrete Gaussian on a power-of-two lattice, by system entropy.

An exact answer is a whole number. It is put on a lattice whose step is far below the scale of the
noise, noise is added there by OpenDP's exact samplers, and the sum is clamped to a public range far
beyond any real value. Everything is exact integer arithmetic.

Laplace noise is for a weight. A row that is measured again at a larger weight has its noise refined
on the same lattice instead of drawn again (sampling.py). Proof: proofs/noise.md.

Gaussian noise is for a rho, or for the precision of a row. One record moves the rows of a block by
at most the `sensitivity`, in L2, as it is in only one group. The sensitivity is computed from the
query; no caller states it. A row of the history is priced for each cell by its own coefficient
there: its noise is for one unit. Proof: proofs/gaussian_noise.md.

There is no seed to pass: repeatable noise protects nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from accountant.noise.sampling import Refinement
from cube.measurement import EPSILON_UNIT_BITS, Measurement, Precision, Rho, Weight
from cube.refusals import TooLarge
from cube.statistic import GaussianStatistic

STEP_BITS_UNDER_SCALE: Final = 20  # a step of 2**-20 scales hardly widens an interval
STEP_BITS_UNDER_RECORD: Final = 10  # so that a row bought at any weight may be raised to 16 or so
LATTICE_ANSWER_MAX: Final = 2**62  # half of int64 for the answer, half for the noise
LATTICE_BITS_MAX: Final = 32  # what the largest weight, 2**12, needs


class OnLattice:
    """Noise of a scale on the whole multiples of ``2**-lattice_bits``, of any law."""

    __slots__ = ()

    lattice_bits: int
    scale_in_steps: float

    @property
    def noise_scale(self) -> float:
        """The scale in units of the answer; exact, as only the binary point moves."""
        return math.ldexp(self.scale_in_steps, -self.lattice_bits)

    def on_lattice(
        self, exact: Sequence[int], noise: Sequence[int], answer_bound: int
    ) -> tuple[int, ...]:
        """Noisy answers in lattice steps.

        Parameters
        ----------
        exact : sequence of int
            The exact answers, in their own unit.
        noise : sequence of int
            The same number of variables of the law, in lattice steps, saturated at int64.
        answer_bound : int
            A public bound on the magnitude of the answers.

        Notes
        -----
        The sampler saturates at int64. Clamping the sum to ``2**63 - 1`` less the answers' bound
        removes every trace of that: the result has exactly the law of the clamped sum with
        unlimited noise.
        """
        limit = 2**63 - 1 - self.lattice_bound(answer_bound)
        steps = [value << self.lattice_bits for value in exact]
        return tuple(
            max(-limit, min(limit, step + drawn)) for step, drawn in zip(steps, noise, strict=True)
        )

    def lattice_bound(self, answer_bound: int) -> int:
        """A bound on the answers' magnitude in lattice steps.

        Raises
        ------
        TooLarge
            If it leaves no room for noise. This depends on public bounds alone.
        """
        bound = answer_bound << self.lattice_bits
        if bound > LATTICE_ANSWER_MAX:
            raise TooLarge(
                "The answer could be too large to measure it exactly at this accuracy.",
                hint="Ask for a wider half_width, or sum a column with smaller values.",
            )
        return bound


def rounded_up(value: Fraction) -> float:
    """The smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


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
            raise ValueError("the sensitivity must be at least 1")
        if isinstance(self.rho, Precision) and self.sensitivity != 1:
            raise ValueError("the sensitivity must be 1 where the noise has a precision")
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
                "An earlier answer was rounded too coarsely to be made this accurate.",
                hint="Ask for a wider half_width, or group the same rows in another way.",
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
        enable_features("contrib")
        space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
        mechanism = make_laplace(*space, scale=noise.scale_in_steps)
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
        enable_features("contrib")
        space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
        mechanism = make_gaussian(*space, scale=noise.scale_in_steps)
        moved = rounded_up(Fraction(noise.sensitivity * 2**noise.lattice_bits))
        loss = Fraction(mechanism.map(moved))  # type: ignore[no-untyped-call]  # opendp's stubs
        if loss > noise.rho.exact:
            raise ValueError("the noise is smaller than the paid rho allows")
        return tuple(int(drawn) for drawn in mechanism([0] * size))
