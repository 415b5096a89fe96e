"""Generations of a table that does not grow: its data, replaced as a whole, under one budget.

Nothing is known of the rows of a new generation, and nothing is forgotten of what the earlier ones
cost: a person may have had other rows in each, and has paid for all of them. Here are the entry
that begins one, and what a history keeps of those that there were; what the entry does is in
next_generation.py. Nothing here does input or output. Proof: proofs/generations.md.
"""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class GenerationBegun:
    """The data of a table is other data from now on; who said so.

    Parameters
    ----------
    data_fingerprint, rows_fingerprint : str
        The identity of the new data, and of the rows that are read from it.
    units_before : int
        What the table has spent until then, in units of 2**-40 epsilon. It stays spent.
    by : str
    """

    data_fingerprint: str
    rows_fingerprint: str
    units_before: int
    by: str

    def __post_init__(self) -> None:
        if not (self.data_fingerprint and self.rows_fingerprint):
            raise ValueError("a generation without data")


@dataclass(frozen=True, slots=True)
class Generations:
    """The generations of one table so far, the present one last.

    Parameters
    ----------
    data : tuple of str
        The identity of the data of each.
    begun_at : tuple of str
        When each began: the first when the table was opened.
    units : int
        What was charged for rows of all but the present one.
    n_payments : int
        How many payments there were before the present one.
    ended_at : str
        Of an earlier one, as it is kept: when the next began.
    """

    data: tuple[str, ...] = ()
    begun_at: tuple[str, ...] = ()
    units: int = 0
    n_payments: int = 0
    ended_at: str = ""

    @property
    def number(self) -> int:
        """The number of the present generation: 1 for a table that was never renewed."""
        return max(1, len(self.data))

    def corrected(self, at: str) -> Self:
        """With none that began later than `at`, as the clock was corrected."""
        if not self.begun_at or self.begun_at[-1] <= at:
            return self
        return replace(self, begun_at=tuple(min(one, at) for one in self.begun_at))

    def followed_by(self, data: str, at: str, units: int, n_payments: int) -> Self:
        """With one more, which begins after so much was charged for rows, in so many payments."""
        return replace(
            self,
            data=(*self.data, data),
            begun_at=(*self.begun_at, at),
            units=units,
            n_payments=n_payments,
        )
