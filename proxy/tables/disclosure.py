"""Who may see a table's history and budget, and the alarm for a request that took much of it.

Owners and auditors see everything, and so does everybody if the history is shared. Analysts of a
table whose history is private see what is left of budgets in tenths, and prices on an empty history
(`empty_history.py`). `engine/disclosure.py` does the same for answers.

Entries of a ledger reach a view by `shown_entries` alone, which gives those of a shared history and
else nothing: a kind of entry that is added is hidden until it is listed there.

The alarm for one request that took a large part of a table's budget.

A budget that is spent in ten requests was mostly spent by mistake: a target too narrow, a column
too wide. A metric and a line of the log tell the server's operator, who can then cap the cost of a
query (`per_query`, in `proxy/admin`) before it happens again. It refuses nothing: the requests that
it reports are paid already.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Self

from accountant.ledger import Payer
from accountant.ledger.history import Budget, Payment, TableHistory, UnitCounts
from cube.measurement import Measurement
from cube.refusals import NotAllowed
from proxy.api import BudgetStatus, Caller, LimitStatus
from proxy.monitoring import write_log
from proxy.tables.empty_history import EmptyHistory
from proxy.tables.private_table import ServedTable

N_SHOWN_STEPS: Final = 10  # of a budget


def shown_instead(table: ServedTable, caller: Caller) -> EmptyHistory | None:
    """The empty history that gives a caller's prices; None if they may see the actual prices."""
    return None if caller.role.oversees else table.empty_history


@dataclass(frozen=True, slots=True)
class ShownEntries:
    """The questions about a table that a caller may see: by default, none.

    Parameters
    ----------
    payments : tuple of (int, Payment)
        In order, each with its position among all payments of the table.
    measurements : sequence of Measurement
        Everything that was measured, in order.
    unit_counts : UnitCounts
        Every count of units.
    """

    payments: tuple[tuple[int, Payment], ...] = ()
    measurements: Sequence[Measurement] = ()
    unit_counts: UnitCounts = field(default_factory=UnitCounts)

    @classmethod
    def of(cls, history: TableHistory, caller: Caller) -> Self:
        """Those of a history that is shared: of payments, analysts see their own."""
        payments = tuple(
            (place, payment)
            for place, payment in enumerate(history.payments)
            if caller.role.oversees or payment.charge.payer.analyst == caller.payer.analyst
        )
        return cls(payments, history.measurements, history.unit_counts)


NO_ENTRIES: Final = ShownEntries()


def shown_entries(table: ServedTable, history: TableHistory, caller: Caller) -> ShownEntries:
    """The entries of a table's ledger that a caller may see.

    If the history is private, analysts see no entry, of whatever kind: also their own payments say
    what others had bought before.
    """
    is_open = shown_instead(table, caller) is None
    return ShownEntries.of(history, caller) if is_open else NO_ENTRIES


def shown_whole_budget(table: ServedTable, history: TableHistory, caller: Caller) -> Budget:
    """A table's budget, for all payers together."""
    budget = Budget.of(history)
    if shown_instead(table, caller) is None:
        return budget
    renewal = None if budget.renewal is None else budget.renewal.without_sums
    return Budget(budget.limit, shown_spent(budget.limit, budget.spent), 0, renewal)


def shown_budget(table: ServedTable, caller: Caller) -> BudgetStatus:
    """A table's budget, and the limits that bind a caller."""
    status = table.budget(caller.payer)
    if shown_instead(table, caller) is None:
        return status
    return replace(
        status,
        spent=shown_spent(status.limit, status.spent),
        n_measurements=0,
        renewal=None if status.renewal is None else status.renewal.without_sums,
        limits=tuple(_shown_limit(limit) for limit in status.limits),
    )


def shown_spent(limit: Fraction, spent: Fraction) -> Fraction:
    """What was spent, rounded up to a tenth of the limit, and at least one tenth.

    >>> shown_spent(Fraction(1), Fraction(0)), shown_spent(Fraction(1), Fraction(1, 3))
    (Fraction(1, 10), Fraction(2, 5))
    """
    if not limit:
        return Fraction(0)
    steps = min(int(spent / limit * N_SHOWN_STEPS) + 1, N_SHOWN_STEPS)
    return limit * steps / N_SHOWN_STEPS


def check_may_see_history(table: ServedTable, caller: Caller) -> None:
    """Refuse callers who may not see results that are computed from the whole history.

    Raises
    ------
    NotAllowed
    """
    if shown_instead(table, caller) is not None:
        name = table.info.schema.table
        raise NotAllowed(
            f"The history of {name} is private, and this would be made from it.",
            hint="Ask in SQL, or ask an owner; you may use the existing synthetic tables.",
        )


def _shown_limit(status: LimitStatus) -> LimitStatus:
    limit = status.limit
    return replace(status, spent=Fraction(0) if limit is None else shown_spent(limit, status.spent))


LARGE_SHARE: Final = Fraction(1, 10)  # of the whole budget, by one request


def note_if_large(table: ServedTable, payer: Payer, epsilon: Fraction) -> None:
    """Raise the alarm if what a request was charged is a large share of its table's budget."""
    if not epsilon:
        return
    budget = table.budget()
    if epsilon < LARGE_SHARE * budget.limit:
        return
    table.watcher.took_much(budget.table)
    write_log(
        logging.WARNING,
        "large_purchase",
        table=budget.table,
        analyst=payer.analyst,
        epsilon=float(epsilon),
        epsilon_left=float(budget.left),
    )
