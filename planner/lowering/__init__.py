"""Lowers a SELECT to linear queries, formulas of them, and SQL over the answers.

Here: the cut at the aggregates, and the translation of each kind of aggregate. Not here: what is
then measured (`measuring/`).
"""

from planner.lowering.as_of import TableGenerations
from planner.lowering.joint_counts import FUNCTION, GIVEN
from planner.lowering.outer import (
    SOURCE_MODEL,
    modelled,
    n_rows_wanted,
    named_columns,
    outer_sql,
    public_types,
)
from planner.lowering.parts import PlanningContext
from planner.lowering.result_columns import (
    CountColumns,
    chosen_among,
    gives_no_rows,
    is_count,
    pick_of,
    with_rounded_counts,
)
from planner.lowering.rows import Rows
from planner.lowering.split import Splitter
from planner.lowering.tables import ShownAnswer

__all__ = [
    "FUNCTION",
    "GIVEN",
    "SOURCE_MODEL",
    "CountColumns",
    "PlanningContext",
    "Rows",
    "ShownAnswer",
    "Splitter",
    "TableGenerations",
    "chosen_among",
    "gives_no_rows",
    "is_count",
    "modelled",
    "n_rows_wanted",
    "named_columns",
    "outer_sql",
    "pick_of",
    "public_types",
    "with_rounded_counts",
]
