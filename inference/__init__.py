"""Estimates from the history: best linear unbiased estimates, the law of their noise, posteriors.

Reads noisy values only. Draws no noise that is released; touches no budget and no private row.
"""

from inference.block_estimates import (
    RowEstimates,
    all_known,
    half_widths,
    intervals,
    posteriors_by,
    standard_deviations,
    values,
    widest,
)
from inference.blue import Reading
from inference.error_terms import FIRST_BESIDE, NoisePlaces, Places
from inference.estimator import Estimator
from inference.history import History, counts_groups, held_by, pooled
from inference.joint import draw_errors, error_parts
from inference.memory import DEFAULT_MEMORY, N_BYTES_DEFAULT, N_BYTES_LEAST, EstimatorMemory
from inference.posterior import NotEstimable, Posterior, RowEstimate, ends_about
from inference.remap import (
    N_COUNTS_MAX,
    N_POINTS_MAX,
    CountPrior,
    Floats,
    Loss,
    LossTable,
    PowerLoss,
    ZeroOneLoss,
    best_of,
    best_report,
    credible_interval,
    law_under,
)
from inference.scaling import Scaling, coefficient_range, posteriors_of, without_dust

__all__ = [
    "DEFAULT_MEMORY",
    "FIRST_BESIDE",
    "N_BYTES_DEFAULT",
    "N_BYTES_LEAST",
    "N_COUNTS_MAX",
    "N_POINTS_MAX",
    "CountPrior",
    "Estimator",
    "EstimatorMemory",
    "Floats",
    "History",
    "Loss",
    "LossTable",
    "NoisePlaces",
    "NotEstimable",
    "Places",
    "Posterior",
    "PowerLoss",
    "Reading",
    "RowEstimate",
    "RowEstimates",
    "Scaling",
    "ZeroOneLoss",
    "all_known",
    "best_of",
    "best_report",
    "coefficient_range",
    "counts_groups",
    "credible_interval",
    "draw_errors",
    "ends_about",
    "error_parts",
    "half_widths",
    "held_by",
    "intervals",
    "law_under",
    "pooled",
    "posteriors_by",
    "posteriors_of",
    "standard_deviations",
    "values",
    "widest",
    "without_dust",
]
