"""Bayesian networks learned from noisy tables: which columns depend on which, and how sure that is.

Post-processing of tables that a source gives: released counts of a few columns, or the rows of a
synthetic table. Nothing is chosen privately here, as PrivBayes does (`synthesis.privbayes`), no
budget is spent, and no rows are drawn.
"""

from synthesis.networks.learned import (
    N_WORK_MAX,
    LearnedNetwork,
    Method,
    Reading,
    network_dot,
    network_json,
    work,
)
from synthesis.networks.score import N_CELLS_MAX, N_NULL_DRAWS, BicScore, mutual_information
from synthesis.networks.search import N_COLUMNS_MAX
from synthesis.networks.source import (
    MeasuredTables,
    NoisyCounts,
    RowTables,
    ShareTable,
    TableSource,
)

__all__ = [
    "N_CELLS_MAX",
    "N_COLUMNS_MAX",
    "N_NULL_DRAWS",
    "N_WORK_MAX",
    "BicScore",
    "LearnedNetwork",
    "MeasuredTables",
    "Method",
    "NoisyCounts",
    "Reading",
    "RowTables",
    "ShareTable",
    "TableSource",
    "mutual_information",
    "network_dot",
    "network_json",
    "work",
]
