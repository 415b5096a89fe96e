"""Resolves expressions over public columns, refuses or allows them, and evaluates them on levels.

Here: the public domain of one statement, and the scratch database that holds levels and nothing
else. Not here: which counts a statement asks for (`lowering/`).
"""

from planner.domain.allowance import Allowance, n_nodes_run
from planner.domain.allowed import (
    FUNCTIONS,
    LEAVES,
    OPERATORS,
    check_details,
    check_scalar,
    instead_of,
)
from planner.domain.domain import (
    CAP_IT,
    KeyArray,
    KnownConditions,
    LevelArray,
    PublicDomain,
    spread,
)
from planner.domain.exact_levels import Polynomial, number_of, polynomial_of
from planner.domain.relations import (
    OWN_PREFIX,
    PRIVACY_SCHEMA,
    REMAINING,
    UNITS,
    Columns,
    PublicRelation,
    PublicRows,
    SyntheticName,
    TableNames,
    WrittenName,
    no_public_rows,
    owner_of,
    placed,
    privacy_view,
    public_table,
    remaining_of,
    synthetic_table,
    units_table,
)
from planner.domain.scratchpad import Scratchpad, columns_of

__all__ = [
    "CAP_IT",
    "FUNCTIONS",
    "LEAVES",
    "OPERATORS",
    "OWN_PREFIX",
    "PRIVACY_SCHEMA",
    "REMAINING",
    "UNITS",
    "Allowance",
    "Columns",
    "KeyArray",
    "KnownConditions",
    "LevelArray",
    "Polynomial",
    "PublicDomain",
    "PublicRelation",
    "PublicRows",
    "Scratchpad",
    "SyntheticName",
    "TableNames",
    "WrittenName",
    "check_details",
    "check_scalar",
    "columns_of",
    "instead_of",
    "n_nodes_run",
    "no_public_rows",
    "number_of",
    "owner_of",
    "placed",
    "polynomial_of",
    "privacy_view",
    "public_table",
    "remaining_of",
    "spread",
    "synthetic_table",
    "units_table",
]
