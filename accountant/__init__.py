"""The trusted core: privacy costs, the ledger, the noise, and the gate to private data."""

from accountant.grouping import BY_ITSELF, NOT_COUNTED, Grouping, LevelRuns
from accountant.source import CellCounts, GrowingSource, Source, UnitCells

__all__ = [
    "BY_ITSELF",
    "NOT_COUNTED",
    "CellCounts",
    "Grouping",
    "GrowingSource",
    "LevelRuns",
    "Source",
    "UnitCells",
]
