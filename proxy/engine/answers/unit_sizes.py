"""Noisy sizes of units: which bound leaves little out, and how much it leaves out.

Above the largest size that is seen in spite of noise, units are taken to become rarer from range to
range as the first of these ranges tells: were all that noise can hide taken to be there, no bound
would pay. What it can hide is in the intervals that are told.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from inference import Posterior
from inference.noise_law import law_of_noise

SURE: Final = 0.95  # of the sizes' intervals
SEEN: Final = 0.7  # of all units, before a bound is chosen
RARER_MAX: Final = 0.7  # units of twice the size
HIDDEN: Final = "Noise can hide that most of"
MISTAKEN: Final = 0.002  # the probability that units seem to be in some range that has none


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Noisy sizes of units about one block.

    Parameters
    ----------
    found : tuple of Posterior
        How many units are in each range.
    largest : int
        The largest size that a unit can have.
    """

    found: tuple[Posterior, ...]
    largest: int

    @property
    def ends(self) -> list[tuple[int, int]]:
        """The least and the largest size in each range."""
        n_ranges = len(self.found)
        lasts = [min(2**place, self.largest) for place in range(n_ranges - 1)] + [self.largest]
        return [(last + 1, end) for last, end in zip([0, *lasts], lasts, strict=False)]

    @property
    def scales(self) -> list[float]:
        """The scale of the noise of each number, about; one scale for a sum of holders' noise."""
        return [one.half_width(SURE) / -math.log1p(-SURE) for one in self.found]

    @property
    def seen(self) -> list[float]:
        """How many units are in the ranges in which noise alone would hardly show as many."""
        surely = 1 - 2 * MISTAKEN / len(self.found)
        return [one.value if one.value > one.half_width(surely) else 0.0 for one in self.found]

    @property
    def numbers(self) -> list[float]:
        """How many units seem to be in each range; see the head of this module."""
        found = self.seen
        top = max((place for place, one in enumerate(found) if one), default=None)
        if top is None or top + 1 == len(found):
            return found
        following = max(self.found[top + 1].value, 0.0) + self.scales[top + 1] / 2
        rarer = min(following / found[top], RARER_MAX)
        above = (found[top] * rarer**place for place in range(1, len(found) - top))
        return [*found[: top + 1], *above]

    @property
    def total(self) -> float:
        """The sum of all sizes, about."""
        return self._above(self.numbers, 0)

    def bound(self, cut_share_max: float) -> int | None:
        """The smallest size above which little seems to be; None if that cannot be told yet."""
        every = math.fsum(one.value for one in self.found)
        if every <= 0 or math.fsum(self.seen) < SEEN * every:
            return None
        numbers, total = self.numbers, self.total
        fits = (end for _, end in self.ends if self._above(numbers, end) <= cut_share_max * total)
        return next(fits, None)

    def best_for(self, epsilon: float) -> int | None:
        """The size at which what is left out and the noise of so much epsilon are least together.

        None if no unit is seen, or nothing is left for noise.
        """
        numbers = self.numbers
        if epsilon <= 0 or not any(numbers):
            return None
        return min(
            (end for _, end in self.ends),
            key=lambda end: end / epsilon + self._above(numbers, end),
        )

    def _above(self, numbers: Sequence[float], bound: int) -> float:
        """What sizes are above a bound, added up, where units are in the middle of ranges."""
        return math.fsum(
            number * max(0.0, (low + high) / 2 - bound)
            for number, (low, high) in zip(numbers, self.ends, strict=True)
        )

    def said(self, bound: int, confidence: float, unit: str, what: str) -> str:
        """How much a bound leaves out, with upper ends that hold with the confidence."""
        units, cut, kept = (self._sum(bound, power) for power in (0, 1, 2))
        _, high = units.interval(confidence)
        told = (
            f"About {_count(units.value)} {unit}s have more (at most {_count(high)} at confidence "
            f"{confidence:g})"
        )
        _, most = cut.interval((1 + confidence) / 2)
        least, _ = kept.interval((1 + confidence) / 2)
        if most >= max(least, 0.0):
            return f"{told}. {HIDDEN} {what} is left out."
        share = self._above(self.numbers, bound) / self.total
        largest = most / (most + least)
        return f"{told}. About {share:.2g} of {what} is left out (at most {largest:.2g})."

    def _sum(self, bound: int, power: int) -> Posterior:
        """The units above a bound; the most that they have above it; or the least that counts."""
        weights = []
        for low, high in self.ends:
            is_above = high > bound
            least = float(min(low, bound))
            weights.append([float(is_above), float(max(0, high - bound)), least][power])
        scales = np.array(self.scales)
        value = math.fsum(
            weight * one.value for weight, one in zip(weights, self.found, strict=True)
        )
        return Posterior(value, law_of_noise(np.array(weights) * scales), low=0.0)


def _count(number: float) -> str:
    return f"{math.ceil(max(number, 0.0)):,}"
