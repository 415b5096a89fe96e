"""The loss of a counter of visits, by walking everything that can happen to one user.

A life is a number of visits in each stretch of time. Between stretches there is a release, or the
intruder's one look. The joint law of all that is seen, the cell and the released numbers, is
computed visit by visit and draw by draw, without a formula for the loss; in fractions, so that the
result is exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

from streams.counters import CounterMechanism

Cell: TypeAlias = tuple[int, int]
Seen: TypeAlias = tuple[object, ...]
LOOK, RELEASE = "look", "release"


@dataclass(frozen=True)
class WalkedCounter:
    """A cell of a mechanism.

    `moments` are what happens after each stretch of visits. `alpha` may be another than the
    mechanism's, to walk a release that is not built.
    """

    mechanism: CounterMechanism
    moments: Sequence[str] = (LOOK, RELEASE)
    starts: Sequence[Fraction] = ()

    def law(self, life: Sequence[int]) -> dict[Seen, Fraction]:
        """The law of what is seen, up to one factor for all lives alike."""
        mechanism = self.mechanism
        levels, p0 = mechanism.levels, mechanism.state.p0
        start = self.starts or [Fraction(1, levels)] * levels
        found: dict[tuple[Cell, Seen], Fraction] = {}
        for c, b in product(range(levels), (0, 1)):
            found[(c, b), ()] = start[c] * (p0 if b else 1 - p0)
        for n_visits, moment in zip(life, self.moments, strict=True):
            for _ in range(n_visits):
                found = self._after_visit(found)
            found = dict(self._after(found, moment))
        seen: dict[Seen, Fraction] = {}
        for (_, what), chance in found.items():
            seen[what] = seen.get(what, Fraction(0)) + chance
        return seen

    def _after_visit(
        self, found: dict[tuple[Cell, Seen], Fraction]
    ) -> dict[tuple[Cell, Seen], Fraction]:
        levels, p1 = self.mechanism.levels, self.mechanism.state.p1
        moved: dict[tuple[Cell, Seen], Fraction] = {}

        def add(cell: Cell, seen: Seen, chance: Fraction) -> None:
            moved[cell, seen] = moved.get((cell, seen), Fraction(0)) + chance

        for ((c, b), seen), chance in found.items():
            if c + 1 < levels:
                add((c + 1, b), seen, chance)
            else:
                add((0, 1), seen, chance * p1)
                add((0, 0), seen, chance * (1 - p1))
        return moved

    def _after(
        self, found: dict[tuple[Cell, Seen], Fraction], moment: str
    ) -> Iterator[tuple[tuple[Cell, Seen], Fraction]]:
        """What is seen at a moment; of a release, every output where a ratio can be largest."""
        alpha = self.mechanism.output.alpha
        for ((c, b), seen), chance in found.items():
            if moment == LOOK:
                yield ((c, b), (*seen, (c, b))), chance
                continue
            sign = 1 if b else -1
            for y in product((-1, 0, 1), repeat=self.mechanism.levels):
                far = sum(abs(one - (sign if k == c else 0)) for k, one in enumerate(y))
                yield ((c, b), (*seen, y)), chance * alpha**far


def largest_ratio(walked: WalkedCounter, n_max: int) -> Fraction:
    """The largest ratio between any two lives with up to `n_max` visits in each stretch."""
    lives = product(range(n_max + 1), repeat=len(walked.moments))
    laws = {tuple(sorted(walked.law(life).items(), key=repr)) for life in lives}
    return max(
        a / b for one in laws for other in laws for (_, a), (_, b) in zip(one, other, strict=True)
    )
