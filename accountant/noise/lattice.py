"""The lattice that noise is added on: whole numbers of a power-of-two step, clamped in public.

An exact answer is a whole number. It is put on a lattice whose step is far below the scale of the
noise, noise is added there, and the sum is clamped to a public range far outside anything that
happens. Every step is exact integer arithmetic.

Proof: proofs/noise.md.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from cube.refusals import TooLarge

STEP_BITS_UNDER_SCALE: Final = 20  # a step of 2**-20 scales widens an interval by less than it says
LATTICE_ANSWER_MAX: Final = 2**62  # half of int64 for the answer, half for the noise
LATTICE_BITS_MAX: Final = 32  # what the largest weight, 2**12, asks for


class OnLattice:
    """Noise of a scale on the whole multiples of ``2**-lattice_bits``, of whichever law."""

    __slots__ = ()

    lattice_bits: int
    scale_in_steps: float

    @property
    def noise_scale(self) -> float:
        """The scale in units of the answer; exact, for it only moves the binary point."""
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
            As many variables of the law, in lattice steps, held within int64.
        answer_bound : int
            A public bound on the magnitude of the answers.

        Notes
        -----
        The sampler holds its output within int64. Clamping the sum to ``2**63 - 1`` less the
        answers' bound removes every trace of that: the result has exactly the law it would have
        with unlimited noise, clamped.
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
            If it leaves no room for noise. Depends on public bounds alone.
        """
        bound = answer_bound << self.lattice_bits
        if bound > LATTICE_ANSWER_MAX:
            raise TooLarge(
                "The answer could be too large to be measured exactly at this accuracy.",
                hint="Ask for a wider half_width, or sum a column with smaller values.",
            )
        return bound


def rounded_up(value: Fraction) -> float:
    """The smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
