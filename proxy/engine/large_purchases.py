"""The alarm for a statement that took a large part of a table's budget at once.

A budget that is spent in ten statements was mostly spent by mistake: a target too narrow, a column
too wide. Whoever watches the server is told by a metric and a line of the log, so that they can cap
what one query may cost (`per_query`, in `proxy/admin`) before it happens again.
"""

import logging
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from proxy.engine.results import AnsweredPart
from proxy.monitoring.events import Watcher
from proxy.monitoring.logs import write_log
from proxy.tables.private_table import ServedTable

LARGE_SHARE: Final = Fraction(1, 10)  # of the whole budget, by one statement


def note_if_large(
    watcher: Watcher, table: ServedTable, analyst: str, answered: Sequence[AnsweredPart]
) -> None:
    """Raise the alarm if an analyst's statement was charged a large share of a table's budget."""
    spent = sum((part.epsilon_spent for part in answered), Fraction(0))
    if not spent:
        return
    budget = table.budget()
    if spent < LARGE_SHARE * budget.limit:
        return
    watcher.took_much(budget.table)
    write_log(
        logging.WARNING,
        "large_purchase",
        table=budget.table,
        analyst=analyst,
        epsilon=float(spent),
        epsilon_left=float(budget.left),
    )
