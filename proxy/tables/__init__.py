"""Private tables as they are served: history, snapshots, purchases.

A table owns its locks. Callers ask it for a snapshot, which is a value and takes no lock, and for
the answers that they lack. Not here: SQL, formulas and targets that depend on answers (`engine/`).
"""

from proxy.tables.disclosure import (
    NO_ENTRIES,
    ShownEntries,
    check_may_see_history,
    note_if_large,
    shown_budget,
    shown_entries,
    shown_instead,
    shown_whole_budget,
)
from proxy.tables.empty_history import DefaultWidth, EmptyHistory, unit_of
from proxy.tables.extent import DataReplaced, ExtentName, HorizonMoved
from proxy.tables.in_flight import ANSWER_SECONDS
from proxy.tables.live_tables import LiveTables, steadily
from proxy.tables.private_table import ServedTable
from proxy.tables.self_answering import AS_IT_IS, OwnAnswer, OwnAnswers, OwnCells, SelfAnswering
from proxy.tables.snapshot import TableSnapshot
from proxy.tables.upkeep import Advancing, Growing, Keeping, Renewable, Renewing, open_periods

__all__ = [
    "ANSWER_SECONDS",
    "AS_IT_IS",
    "NO_ENTRIES",
    "Advancing",
    "DataReplaced",
    "DefaultWidth",
    "EmptyHistory",
    "ExtentName",
    "Growing",
    "HorizonMoved",
    "Keeping",
    "LiveTables",
    "OwnAnswer",
    "OwnAnswers",
    "OwnCells",
    "Renewable",
    "Renewing",
    "SelfAnswering",
    "ServedTable",
    "ShownEntries",
    "TableSnapshot",
    "check_may_see_history",
    "note_if_large",
    "open_periods",
    "shown_budget",
    "shown_entries",
    "shown_instead",
    "shown_whole_budget",
    "steadily",
    "unit_of",
]
