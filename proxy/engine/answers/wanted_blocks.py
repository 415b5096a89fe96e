"""What a statement asks of one table: its blocks, each with the half-width to be asked for next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

from planner.workload import Part, Wanted


@dataclass(slots=True)
class Asked:
    """One block of one aggregate: its target, and what that has cost so far.

    `first_row` counts the rows of the aggregate's blocks before it; `is_row_by_row` says whether
    these are the rows of the part, as they are not for a total and for the counts of a quantile.
    """

    part: int
    aggregate: int
    wanted: Wanted
    first_row: int
    is_row_by_row: bool
    epsilon: Fraction = Fraction(0)
    was_known: bool = True

    @property
    def rows(self) -> slice:
        """The block's rows among those of its aggregate."""
        return slice(self.first_row, self.first_row + self.wanted.block.n_rows)


@dataclass(slots=True)
class Step:
    """The half-widths to ask for next, by the places of their blocks; others stay as they are.

    Parameters
    ----------
    half_widths : dict
        What to ask for next.
    likely : dict
        What will probably be asked for in the end, where it is less: no more than is plausible.
    foreseen : dict
        The same, with the records spread evenly over groups without any known count.
    surest : dict
        The narrowest that may be asked for in the end; 0 where that is not known yet.
    """

    half_widths: dict[int, float] = field(default_factory=dict)
    likely: dict[int, float] = field(default_factory=dict)
    foreseen: dict[int, float] = field(default_factory=dict)
    surest: dict[int, float] = field(default_factory=dict)

    @property
    def looks_ahead(self) -> bool:
        """Whether more than what is asked for next will probably be asked for in the end."""
        return any(self.likely[place] < width for place, width in self.half_widths.items())

    def ask(
        self,
        place: int,
        half_width: float,
        likely: float | None = None,
        foreseen: float | None = None,
        surest: float | None = None,
    ) -> None:
        """Ask for a half-width of a block; of several, the narrowest is asked for."""
        likely = half_width if likely is None else min(likely, half_width)
        foreseen = likely if foreseen is None else min(foreseen, likely)
        self.half_widths[place] = min(half_width, self.half_widths.get(place, half_width))
        self.likely[place] = min(likely, self.likely.get(place, likely))
        self.foreseen[place] = min(foreseen, self.foreseen.get(place, foreseen))
        surest = likely if surest is None else min(surest, likely)
        self.surest[place] = min(surest, self.surest.get(place, surest))

    def join(self, other: Self) -> None:
        """Ask for what another step asks for, too."""
        for place, half_width in other.half_widths.items():
            widths = other.likely[place], other.foreseen[place], other.surest[place]
            self.ask(place, half_width, *widths)


def asked_of(parts: Sequence[Part], cap: Fraction | None) -> list[Asked]:
    """Every block that the parts need."""
    found: list[Asked] = []
    for place, part in enumerate(parts):
        for number, aggregate in enumerate(part.aggregates):
            first_row = 0
            n_rows = sum(block.n_rows for block in aggregate.blocks)
            is_row_by_row = n_rows == part.n_rows and not aggregate.is_total
            for block in aggregate.blocks:
                target = aggregate.target
                asked = replace(aggregate.wanted(block), is_searched=part.is_searched)
                wanted = _at(asked, target.half_width, cap)
                found.append(Asked(place, number, wanted, first_row, is_row_by_row))
                first_row += block.n_rows
    return found


def smallest_cap(parts: Sequence[Part]) -> Fraction | None:
    """The most that the parts of one table may cost together."""
    caps = [part.epsilon_cap for part in parts if part.epsilon_cap is not None]
    return min(caps, default=None)


def at_widths(
    asked: Sequence[Asked], half_widths: Mapping[int, float], cap: Fraction | None
) -> list[Wanted]:
    """What is wanted with some half-widths in place of those asked for, and a cap."""
    return [
        _at(one.wanted, half_widths.get(place, one.wanted.target.half_width), cap)
        for place, one in enumerate(asked)
    ]


def take_step(asked: Sequence[Asked], step: Step) -> None:
    """Ask for the half-widths of a step from now on."""
    for place, half_width in step.half_widths.items():
        wanted = asked[place].wanted
        asked[place].wanted = _at(wanted, half_width, wanted.target.epsilon_cap)


def _at(wanted: Wanted, half_width: float, cap: Fraction | None) -> Wanted:
    target = wanted.target
    if (half_width, cap) == (target.half_width, target.epsilon_cap):
        return wanted
    return replace(wanted, target=replace(target, half_width=half_width, epsilon_cap=cap))
