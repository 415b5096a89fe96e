"""How much memory a server may use for what it keeps of earlier work: plans, and estimates.

What does not fit is dropped, what was least recently used first, and computed again when it is
needed. Values of the configuration; what is kept is elsewhere.
"""

from dataclasses import dataclass
from typing import Final

from inference.memory import N_BYTES_DEFAULT, N_BYTES_LEAST
from planner.planner import PLAN_BYTES_DEFAULT, PLAN_BYTES_LEAST

MIB: Final = 2**20
ESTIMATOR_MIB: Final = N_BYTES_DEFAULT // MIB
ESTIMATOR_MIB_LEAST: Final = N_BYTES_LEAST // MIB
PLANNER_MIB: Final = PLAN_BYTES_DEFAULT // MIB
PLANNER_MIB_LEAST: Final = PLAN_BYTES_LEAST // MIB
MIB_MOST: Final = 2**20


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """In bytes.

    Parameters
    ----------
    estimator : int
        Of each table.
    planner : int
        Of each set of tables that some callers see.
    """

    estimator: int = N_BYTES_DEFAULT
    planner: int = PLAN_BYTES_DEFAULT


DEFAULT_MEMORY: Final = MemoryLimits()
