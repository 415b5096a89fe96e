"""The audit report of a ledger: what was spent, by whom, on what, and what that guarantees."""

from proxy.reporting.amounts import exact_text
from proxy.reporting.charts import FAINT, INK, LIMIT, SPENT, SPENT_AREA, drawing, inline
from proxy.reporting.declared import DeclaredColumn, DeclaredTable, query_text, unit_count_text
from proxy.reporting.pages import page_environment
from proxy.reporting.report import ReportFormat, drawn_with_matplotlib, make_report, versions

__all__ = [
    "FAINT",
    "INK",
    "LIMIT",
    "SPENT",
    "SPENT_AREA",
    "DeclaredColumn",
    "DeclaredTable",
    "ReportFormat",
    "drawing",
    "drawn_with_matplotlib",
    "exact_text",
    "inline",
    "make_report",
    "page_environment",
    "query_text",
    "unit_count_text",
    "versions",
]
