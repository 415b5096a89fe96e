"""The exact law of a program that draws: every path through it is walked, and its mass added up.

A program is run again and again, each time told what its draws are to be. A choice has finitely
many options here; where the real one has infinitely many, the caller leaves out a tail whose mass
it knows.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import mpmath


class LeftOut(Exception):
    """The program has come to a path that is left out of its law."""


@dataclass
class Path:
    """One path through a program: the options it takes, and how likely they are."""

    forced: Sequence[int]
    taken: list[int] = field(default_factory=list)
    n_options: list[int] = field(default_factory=list)
    mass: mpmath.mpf = field(default_factory=lambda: mpmath.mpf(1))

    def choose(self, masses: Sequence[mpmath.mpf]) -> int:
        """The option to take: as told, and after that the first."""
        place = len(self.taken)
        option = self.forced[place] if place < len(self.forced) else 0
        self.taken.append(option)
        self.n_options.append(len(masses))
        self.mass *= masses[option]
        return option


def law_of(program: Callable[[Path], Hashable]) -> dict[Hashable, mpmath.mpf]:
    """The probability of each outcome; what is left out belongs to none."""
    law: dict[Hashable, mpmath.mpf] = defaultdict(mpmath.mpf)
    unwalked: list[list[int]] = [[]]
    while unwalked:
        path = Path(unwalked.pop())
        try:
            outcome = program(path)
        except LeftOut:
            pass
        else:
            law[outcome] += path.mass
        for place in range(len(path.forced), len(path.taken)):
            others = range(1, path.n_options[place])
            unwalked.extend([*path.taken[:place], other] for other in others)
    return law
