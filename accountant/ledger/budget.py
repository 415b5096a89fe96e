"""What is told of a table's budget at one moment: what is spent of it, and when it renews.

A budget that renews bounds what one window adds to the tables' cost. The guarantee over more time
is the sum, and so it is told wherever such a budget is. Values only; what may be spent is decided
in table_history.py. Proof: proofs/gate.md, "Budgets that renew".
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

from accountant.ledger.limits import Window
from accountant.ledger.table_history import TableHistory
from cube.measurement import UNITS_PER_EPSILON


@dataclass(frozen=True, slots=True)
class Renewal:
    """A budget that renews, at one moment; epsilons are of all tables that share it.

    Parameters
    ----------
    window : Window
    next_at : str
        When it renews next, as UTC text.
    spent_in_year, spent_in_all : Fraction, optional
        What was spent in the last twelve months, and since the first entry; None for a reader who
        may not learn it.
    """

    window: Window
    next_at: str
    spent_in_year: Fraction | None
    spent_in_all: Fraction | None

    @property
    def next_day(self) -> str:
        """The day on which it renews next, at midnight UTC."""
        return self.next_at[: len("2027-01-01")]

    @property
    def without_sums(self) -> "Renewal":
        """The same for a reader who may not learn what was spent: what the owner declared."""
        return replace(self, spent_in_year=None, spent_in_all=None)

    @classmethod
    def of(cls, history: TableHistory) -> Self | None:
        """What is told at the moment `now` of a history; None if its budget does not renew."""
        if history.renews is Window.NEVER:
            return None
        now = history.now
        a_year_ago = f"{int(now[:4]) - 1:04}{now[4:]}"  # sorts rightly on a 29th of February, too
        return cls(
            history.renews,
            history.renews.end(now),
            Fraction(history.units_used_since(a_year_ago), UNITS_PER_EPSILON),
            Fraction(history.units_used_since(""), UNITS_PER_EPSILON),
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """A table's budget, in epsilon. What tables that share it have spent counts, too.

    If it renews, `spent` is what was spent in the present window, and `renewal` tells the rest.
    """

    limit: Fraction
    spent: Fraction
    n_measurements: int
    renewal: Renewal | None = None

    @property
    def left(self) -> Fraction:
        """What may still be spent."""
        return max(Fraction(0), self.limit - self.spent)

    @classmethod
    def of(cls, history: TableHistory) -> Self:
        """The budget at the moment `now` of a history."""
        spent = Fraction(history.units_used, UNITS_PER_EPSILON)
        return cls(history.budget, spent, len(history.measurements), Renewal.of(history))
