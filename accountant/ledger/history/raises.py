"""Raises: rows that were measured before, measured again at a larger weight for the difference.

    Laplace noise     of one value: the noise is refined, and only the last value counts
    Gaussian noise    an independent value at the difference of the precisions: the two are averaged

Either way the earlier measurement is then the later one plus independent noise, and adds nothing.
The ledger records what was drawn; averaging needs nothing else, and is done whenever it is read.

Here is what may be raised, what a raise adds, and what comes of it. Nothing here does input or
output. Proofs: proofs/refinement.md; proofs/gaussian_noise.md, "Raises".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import Charge
from accountant.ledger.values import AppendOnly, GrowingSet
from accountant.noise import GaussianNoise, LatticeNoise, may_be_clamped, rounded_up
from cube.encoding import fingerprint
from cube.measurement import Measurement, PlannedMeasurement, Precision, Weight
from cube.query import QueryBlock
from cube.refusals import TooLarge


class StalePlan(ValueError):
    """A plan made for a history that has changed: plan again, nothing was charged."""


@dataclass(frozen=True, slots=True, eq=False)
class Raises:
    """The measurements, and which of them have been raised."""

    measurements: AppendOnly[Measurement]
    superseded: GrowingSet

    def added(self, plan: Sequence[PlannedMeasurement]) -> list[PlannedMeasurement]:
        """The rows that a plan adds to the paid rows: a raise adds only the difference.

        Raises
        ------
        ValueError
            If it contains an impossible raise: of another block, of noise of the other kind, to no
            larger weight, or twice.
        StalePlan
            If it raises a measurement that has been raised since.
        """
        places = [planned.raised_from for planned in plan if planned.raised_from is not None]
        if len(set(places)) < len(places):
            raise ValueError("one charge raises the same measurement twice")
        return [self._added(planned) for planned in plan]

    def noise_for(self, planned: PlannedMeasurement) -> LatticeNoise | GaussianNoise:
        """The noise to draw for a planned measurement; for a raise, see the head of this module.

        Raises
        ------
        TooLarge
            If it raises a measurement whose noise cannot be refined. This depends on public things.
        """
        if planned.is_gaussian:
            return GaussianNoise.for_precision(self._added(planned).precision)
        return self.laplace_noise_for(planned)

    def laplace_noise_for(self, planned: PlannedMeasurement) -> LatticeNoise:
        """The same for a measurement with Laplace noise; TypeError for another."""
        earlier = self._earlier(planned)
        if earlier is None:
            of_record = planned.block.query.bound
            return LatticeNoise.for_weight(planned.laplace_weight, of_record)
        if may_be_clamped(earlier):
            raise TooLarge(
                "An earlier answer is at the limit of the stored range, so it cannot "
                "be made more accurate.",
                hint="Ask for the sum of a column with smaller values.",
            )
        return LatticeNoise.of(earlier).refined_to(planned.laplace_weight)

    def foreseen(self, planned: PlannedMeasurement) -> Measurement:
        """The measurement that a planned one would make, with 0 for every value.

        Of a raise with Gaussian noise, the average is foreseen.

        Raises
        ------
        TooLarge
            As `noise_for`.
        """
        values = (0,) * planned.block.n_rows
        noise, place = self.noise_for(planned), planned.raised_from
        if isinstance(noise, LatticeNoise):
            scale = noise.noise_scale
            bits = noise.lattice_bits
            return Measurement(planned.block, planned.weight, bits, scale, values, place)
        bought = self._added(planned).precision
        scale = laplace_scale(noise.variance)
        more = Measurement(planned.block, bought, noise.lattice_bits, scale, values)
        earlier = self._earlier(planned)
        if earlier is None or place is None:
            return more
        return _average_of(earlier, more, place, values)

    def planned(self, charge: Charge) -> list[PlannedMeasurement]:
        """The plan that a charge pays for."""
        return [self._planned(charged, charge) for charged in charge.blocks]

    def checked(self, charged: ChargedBlock, pending: Sequence[Charge]) -> ChargedBlock:
        """The same charged block; a raised block shares its arrays with the earlier one.

        Raises
        ------
        ValueError
            If it cannot be charged: another charge that waits raises the same measurement, or the
            noise is no refinement of its own.
        """
        place = charged.raised_from
        if place is None:
            return charged
        if place in {other.raised_from for charge in pending for other in charge.blocks}:
            raise StalePlan("another raise of this measurement is pending")
        earlier = self._at(place, charged.block)
        noise = charged.noise
        if isinstance(noise, LatticeNoise):
            before = LatticeNoise.of(earlier)
            if (
                may_be_clamped(earlier)
                or noise.lattice_bits != before.lattice_bits
                or noise.scale_in_steps >= before.scale_in_steps
            ):
                raise ValueError("a measurement was raised to noise that does not refine its noise")
        return ChargedBlock(earlier.block, noise, place)

    def measured(self, charged: ChargedBlock, values: tuple[int, ...]) -> Measurement:
        """The measurement that a charged block and its noisy values, in lattice steps, make."""
        noise = charged.noise
        if isinstance(noise, LatticeNoise):
            scale, weight = noise.noise_scale, noise.weight
            return Measurement(
                charged.block, weight, noise.lattice_bits, scale, values, charged.raised_from
            )
        alone = Measurement(
            charged.block,
            charged.precision,
            noise.lattice_bits,
            laplace_scale(noise.variance),
            values,
        )
        if charged.raised_from is None:
            return alone
        return averaged(self.measurements[charged.raised_from], alone, charged.raised_from)

    def _added(self, planned: PlannedMeasurement) -> PlannedMeasurement:
        earlier = self._earlier(planned)
        if earlier is None:
            return planned
        units = planned.weight.units - earlier.weight.units
        more = Precision(units) if planned.is_gaussian else Weight(units)
        return PlannedMeasurement(earlier.block, more, terms=planned.terms)

    def _planned(self, charged: ChargedBlock, charge: Charge) -> PlannedMeasurement:
        noise = charged.noise
        if isinstance(noise, LatticeNoise):
            return PlannedMeasurement(charged.block, noise.weight, charged.raised_from)
        precision = charged.precision
        if charged.raised_from is not None:
            earlier = self._at(charged.raised_from, charged.block)
            if not earlier.is_gaussian:
                raise StalePlan("a measurement was raised with noise of another kind")
            precision = Precision(earlier.precision.units + precision.units)
        return PlannedMeasurement(charged.block, precision, charged.raised_from, charge.terms)

    def _earlier(self, planned: PlannedMeasurement) -> Measurement | None:
        """The measurement that a planned one raises; None if it raises none."""
        if planned.raised_from is None:
            return None
        earlier = self._at(planned.raised_from, planned.block)
        if planned.is_gaussian != earlier.is_gaussian:
            raise StalePlan("a measurement was raised with noise of another kind")
        if planned.weight.units <= earlier.weight.units:
            raise StalePlan("a measurement was raised to a weight that is not larger")
        if planned.raised_from in self.superseded:
            raise StalePlan("the measurement has already been raised")
        return earlier

    def _at(self, place: int, block: QueryBlock) -> Measurement:
        if place >= len(self.measurements):
            raise StalePlan("the measurement to raise does not exist")
        earlier = self.measurements[place]
        if fingerprint(earlier.block) != fingerprint(block):
            raise StalePlan("a measurement was raised as if it had other rows")
        return earlier


def averaged(earlier: Measurement, more: Measurement, place: int) -> Measurement:
    """Two independent values of each row of one block, weighted by their precisions.

    Parameters
    ----------
    earlier, more : Measurement
        Two measurements of the same rows with Gaussian noise.
    place : int
        The place of the earlier measurement.

    Notes
    -----
    All in whole numbers, so that every reader of a ledger computes the same; the average is put on
    the lattice of the summed precision, which moves it by at most half a step. From continuous
    noise it is as far as the two values are, by their shares, and that half step.
    """
    one, two = earlier.precision.units, more.precision.units
    lattice_bits = GaussianNoise.for_precision(Precision(one + two)).lattice_bits
    values = tuple(
        _rounded(
            (
                one * Fraction(before, 2**earlier.lattice_bits)
                + two * Fraction(new, 2**more.lattice_bits)
            )
            / (one + two)
            * 2**lattice_bits
        )
        for before, new in zip(earlier.lattice_values, more.lattice_values, strict=True)
    )
    return _average_of(earlier, more, place, values)


def _average_of(
    earlier: Measurement, more: Measurement, place: int, values: tuple[int, ...]
) -> Measurement:
    """The average of two measurements, with its values; its noise does not depend on them."""
    one, two = earlier.precision.units, more.precision.units
    precision = Precision(one + two)
    lattice_bits = GaussianNoise.for_precision(precision).lattice_bits
    variance = (one**2 * _variance(earlier) + two**2 * _variance(more)) / (one + two) ** 2
    step = Fraction(1, 2**lattice_bits)
    distance = (
        one * Fraction(earlier.lattice_widening) + two * Fraction(more.lattice_widening)
    ) / (one + two) + step / 2
    return Measurement(
        earlier.block,
        precision,
        lattice_bits,
        laplace_scale(variance),
        values,
        place,
        averaging_error=rounded_up(max(Fraction(0), distance - step)),
    )


def laplace_scale(variance: Fraction) -> float:
    """The scale of Laplace noise of a variance, rounded up."""
    scale = math.sqrt(variance / 2)
    while 2 * Fraction(scale) ** 2 < variance:
        scale = math.nextafter(scale, math.inf)
    return scale


def _variance(measurement: Measurement) -> Fraction:
    return 2 * Fraction(measurement.noise_scale) ** 2


def _rounded(value: Fraction) -> int:
    """The nearest whole number; of two, the larger."""
    return math.floor(value + Fraction(1, 2))
