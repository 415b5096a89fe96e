"""Histories: what a ledger's entries mean for a table, and for all of them together."""

from accountant.ledger.history.changed_rows import (
    acceptance,
    is_given_up,
    levels_of,
    next_generation,
)
from accountant.ledger.history.payments import BindingLimit, Payment, ReleasedStatistics
from accountant.ledger.history.raises import Raises, StalePlan
from accountant.ledger.history.replay import NOT_AN_ENTRY, Replay
from accountant.ledger.history.table_history import Budget, Growth, Renewal, TableHistory
from accountant.ledger.history.unit_counts import Name, UnitCounts, name_of

__all__ = [
    "NOT_AN_ENTRY",
    "BindingLimit",
    "Budget",
    "Growth",
    "Name",
    "Payment",
    "Raises",
    "ReleasedStatistics",
    "Renewal",
    "Replay",
    "StalePlan",
    "TableHistory",
    "UnitCounts",
    "acceptance",
    "is_given_up",
    "levels_of",
    "name_of",
    "next_generation",
]
