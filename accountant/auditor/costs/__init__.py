"""What the rows of a history cost, as the auditor finds it: totals, columns, and units."""

from accountant.auditor.costs.columns import ColumnCost, column_costs
from accountant.auditor.costs.history import Finding, Paid, follow
from accountant.auditor.costs.tables import Row
from accountant.auditor.costs.units import ONE_ROW, AtLevel, UnitRows, follow_levels

__all__ = [
    "ONE_ROW",
    "AtLevel",
    "ColumnCost",
    "Finding",
    "Paid",
    "Row",
    "UnitRows",
    "column_costs",
    "follow",
    "follow_levels",
]
