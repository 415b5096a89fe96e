"""Writes SQL for DuckDB so that functions, operators and casts mean the same as in PostgreSQL.

One table (`table`) and one pass over a tree (`writing`), which knows the type of each expression
and writes what DuckDB computes. Public levels, public tables and answers are all evaluated by it.
What cannot be computed as PostgreSQL does is refused. Not here: aggregates, and what may be
evaluated on private rows.
"""

from planner.meaning.made import COPIES, Copies, check_made, copied, n_nodes_run
from planner.meaning.moments import check_written, n_pieces, thresholds
from planner.meaning.numbers import QUOTIENT_PLACES
from planner.meaning.table import longest_text
from planner.meaning.types import (
    ANSWER,
    CAST_TYPES,
    INT4,
    INT8,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
    decimal_digits,
    of_duckdb,
)
from planner.meaning.writing import RelationTypes, duckdb_sql, written_expression, written_query
from planner.meaning.written import Value

__all__ = [
    "ANSWER",
    "CAST_TYPES",
    "COPIES",
    "INT4",
    "INT8",
    "QUOTIENT_PLACES",
    "TEXT",
    "UNKNOWN",
    "Copies",
    "Kind",
    "RelationTypes",
    "SqlType",
    "Value",
    "check_made",
    "check_written",
    "copied",
    "decimal_digits",
    "duckdb_sql",
    "longest_text",
    "n_nodes_run",
    "n_pieces",
    "of_duckdb",
    "thresholds",
    "written_expression",
    "written_query",
]
