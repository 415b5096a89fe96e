"""The alarm for one request that took a large part of a table's budget.

A budget that is spent in ten requests was mostly spent by mistake: a target too narrow, a column
too wide. Whoever watches the server is told by a metric and a line of the log, so that they can cap
what one query may cost (`per_query`, in `proxy/admin`) before it happens again. It refuses nothing:
what it tells of is paid for.
"""

import logging
from fractions import Fraction
from typing import Final

from accountant.ledger.limits import Payer
from proxy.monitoring.logs import write_log
from proxy.tables.private_table import ServedTable

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
