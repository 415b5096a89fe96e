"""Synthetic tables: from noisy tables of one and two columns, or of a network, to rows.

Reads noisy values only. Draws no noise that protects data; touches no budget and no private row.
"""

from synthesis.buckets import Buckets
from synthesis.choice import GAUSSIAN, LAPLACE, NoiseCost, score_share, tells_more_than_noise
from synthesis.drawing import controlled_counts
from synthesis.fitting import projected
from synthesis.holders import (
    DEGREES,
    FEDERATED,
    NETWORK_SHARES,
    HoldersSettings,
    Smoothing,
    Structure,
    federated_network,
)
from synthesis.known import KnownEstimates, Stratum
from synthesis.merging import Model, distances, drawn_levels, merged_model, model_sizes
from synthesis.model import PairwiseModel, model_json, model_of
from synthesis.pairwise import (
    TOTAL_SHARE,
    Wishes,
    buy_tables,
    known_model,
    known_sketch,
    one_way_budgets,
    worth_scoring,
)
from synthesis.references import HolderMargins, shares_of_holders, tables_if_independent
from synthesis.sketch import Candidate, Sketch
from synthesis.strata import (
    SCORE_SHARE,
    StratifiedModel,
    known_strata,
    measured_strata,
    scopes_of,
    strata_json,
    strata_model_of,
    strata_of,
)
from synthesis.tables import N_DIMENSIONS_MAX, Column, Floats, Integers, TableEstimate, combined

__all__ = [
    "DEGREES",
    "FEDERATED",
    "GAUSSIAN",
    "LAPLACE",
    "NETWORK_SHARES",
    "N_DIMENSIONS_MAX",
    "SCORE_SHARE",
    "TOTAL_SHARE",
    "Buckets",
    "Candidate",
    "Column",
    "Floats",
    "HolderMargins",
    "HoldersSettings",
    "Integers",
    "KnownEstimates",
    "Model",
    "NoiseCost",
    "PairwiseModel",
    "Sketch",
    "Smoothing",
    "StratifiedModel",
    "Stratum",
    "Structure",
    "TableEstimate",
    "Wishes",
    "buy_tables",
    "combined",
    "controlled_counts",
    "distances",
    "drawn_levels",
    "federated_network",
    "known_model",
    "known_sketch",
    "known_strata",
    "measured_strata",
    "merged_model",
    "model_json",
    "model_of",
    "model_sizes",
    "one_way_budgets",
    "projected",
    "scopes_of",
    "score_share",
    "shares_of_holders",
    "strata_json",
    "strata_model_of",
    "strata_of",
    "tables_if_independent",
    "tells_more_than_noise",
    "worth_scoring",
]
