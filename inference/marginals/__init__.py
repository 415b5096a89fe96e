"""Marginals: noisy tables of counts made consistent with one another, from released values alone.

Needs no data, no budget and no noise: everything passed to it is released already.
"""

from inference.marginals.budget import DeclaredMarginal, laplace_weights
from inference.marginals.entropy import maximum_entropy
from inference.marginals.error_law import (
    CellError,
    MeasuredTable,
    UnknownLaw,
    cell_coefficients,
    cell_error,
)
from inference.marginals.joint import N_JOINT_CELLS_MAX, reconciled_globally
from inference.marginals.nonnegative_fit import nonnegative
from inference.marginals.projection import meeting_sets, projected, reconciled
from inference.marginals.table import (
    ConsistentTable,
    Floats,
    NoisyTable,
    Reconciled,
    Solver,
    marginal,
    spread,
)

__all__ = [
    "N_JOINT_CELLS_MAX",
    "CellError",
    "ConsistentTable",
    "DeclaredMarginal",
    "Floats",
    "MeasuredTable",
    "NoisyTable",
    "Reconciled",
    "Solver",
    "UnknownLaw",
    "cell_coefficients",
    "cell_error",
    "laplace_weights",
    "marginal",
    "maximum_entropy",
    "meeting_sets",
    "nonnegative",
    "projected",
    "reconciled",
    "reconciled_globally",
    "spread",
]
