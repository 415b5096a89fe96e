"""The audit report of a ledger: what was spent, by whom, on what, and what that guarantees."""

from proxy.reporting.declared import DeclaredColumn, DeclaredTable, of_units_text, query_text
from proxy.reporting.pages import page_environment
from proxy.reporting.report import drawn_with_matplotlib, versions

__all__ = [
    "DeclaredColumn",
    "DeclaredTable",
    "drawn_with_matplotlib",
    "of_units_text",
    "page_environment",
    "query_text",
    "versions",
]
