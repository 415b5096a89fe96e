"""Whether columns are independent, judged from a noisy table and the law of its noise.

All of it is post-processing: it reads noisy counts, charges nothing, and sees no private row.
"""

from inference.independence.cell_noise import Floats, NoisyTables, TableLaw
from inference.independence.chi_square import (
    Decision,
    IndependenceTest,
    Reason,
    Statistic,
    degrees_of_freedom,
    independence_test,
    table_from_history,
)

__all__ = [
    "Decision",
    "Floats",
    "IndependenceTest",
    "NoisyTables",
    "Reason",
    "Statistic",
    "TableLaw",
    "degrees_of_freedom",
    "independence_test",
    "table_from_history",
]
