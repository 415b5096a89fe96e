"""Synthetic tables: from the request for one to serving it."""

from proxy.synthetic_tables.conditional_law import LawQuestion
from proxy.synthetic_tables.models import levels_of
from proxy.synthetic_tables.record import SYNTHETIC_VIEW, SyntheticRecord, synthetic_view
from proxy.synthetic_tables.request import Evaluation, Progress, Watch
from proxy.synthetic_tables.service import (
    NO_TABLES,
    PREVIEW_SCHEMA,
    SyntheticTableService,
    check_cap,
    explain_statement,
    preview_table,
    receipt_of,
    run_statement,
    statement_schema,
)
from proxy.synthetic_tables.store import SyntheticStore

__all__ = [
    "NO_TABLES",
    "PREVIEW_SCHEMA",
    "SYNTHETIC_VIEW",
    "Evaluation",
    "LawQuestion",
    "Progress",
    "SyntheticRecord",
    "SyntheticStore",
    "SyntheticTableService",
    "Watch",
    "check_cap",
    "explain_statement",
    "levels_of",
    "preview_table",
    "receipt_of",
    "run_statement",
    "statement_schema",
    "synthetic_view",
]
