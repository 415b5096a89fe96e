"""The lattice on which noise is added: whole multiples of a power-of-two step, publicly clamped.

An exact answer is a whole number. It is put on a lattice whose step is far below the scale of the
noise, noise is added there, and the sum is clamped to a public range far beyond any real value.
Everything is exact integer arithmetic.

Proof: proofs/noise.md.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from cube.refusals import TooLarge

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
                "The answer could be too large to be measured exactly at this accuracy.",
                hint="Ask for a wider half_width, or sum a column with smaller values.",
            )
        return bound


def rounded_up(value: Fraction) -> float:
    """The smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
