"""Which wide purchases cannot be worth their price, seen without reading a row from them.

At a given weight a family of counts answers at most the rows for which their least width leaves it
that weight (`least_width.py`). What these rows are worth bounds what the purchase may cost, which
bounds its weight, and that again the rows that it answers. So the bound comes down step by step,
until no weight is left, or until it stays: then rows have to be read to know more.

Proved: let a weight be worth its price. It is at most the first bound, that of all rows; and if it
is at most one bound it is at most the next, since it answers no row beyond that bound, and worth
never falls as rows are added. So it is never passed over.

A bound only: what rows need is in `hindsight.py`. Nothing here sees a noisy value.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from cube.measurement import UNITS_PER_EPSILON
from cube.schema import Schema
from planner.measuring.candidates import Candidate
from planner.measuring.hindsight import demand_of
from planner.measuring.least_width import least_widths
from planner.measuring.noise_kinds import NoiseKind
from planner.measuring.ski_rental import Evidence, RentedRows


@dataclass(frozen=True, slots=True)
class Reach:
    """Rented rows in the order of the weight at which a candidate may answer them.

    Parameters
    ----------
    units : tuple of int
        At most the common weight that the candidate needs for each, ascending.
    rents : tuple of Fraction
        One more: at least what none of them, the first, the first two, and so on have added to the
        table's cost.
    """

    units: tuple[int, ...]
    rents: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.rents) != len(self.units) + 1:
            raise ValueError("a rent for every number of rows")

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        kind: NoiseKind,
        rented: Sequence[RentedRows],
        confidence: float,
        schema: Schema,
    ) -> "Reach":
        """What a candidate may answer of the rows rented on its scope."""
        blocks = [rows.block for rows in rented]
        widths = least_widths(candidate.blocks, blocks, confidence, schema)
        found = sorted(
            (kind.as_precise_as(width / demand_of(rows, confidence).half_width), rows.most_units)
            for rows, width in zip(rented, widths, strict=True)
        )
        rents = accumulate((most for _, most in found), initial=0)
        return cls(
            tuple(units for units, _ in found),
            tuple(Fraction(rent, UNITS_PER_EPSILON) for rent in rents),
        )

    def worth_at_most(
        self,
        first: int,
        added: Callable[[int], Fraction],
        evidence: Evidence,
        limit: Fraction,
        rent: Fraction,
    ) -> Fraction | None:
        """At least what any weight costs that is worth its price; None if no weight is.

        Parameters
        ----------
        first : int
            The least weight.
        added : callable
            What a weight adds to the table's cost.
        evidence : Evidence
            At least what speaks for the scope.
        limit : Fraction
            What may be spent.
        rent : Fraction
            At least what all of the rows have added to the table's cost.
        """
        n_rows = n_answered = len(self.units)
        while True:
            of_answered = min(rent, self.rents[n_answered])
            worth = min(limit, evidence.worth(of_answered, is_all=n_answered == n_rows))
            if added(first) > worth:
                return None
            n_affordable = bisect_right(self.units, worth, hi=n_answered, key=added)
            if n_affordable == n_answered:
                return worth
            n_answered = n_affordable
