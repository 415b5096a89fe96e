"""How much a server may keep: of earlier work, which is plans and estimates, and synthetic tables.

What does not fit of earlier work is dropped, what was least recently used first, and computed again
when it is needed. Values of the configuration; what is kept is elsewhere.
"""

from dataclasses import dataclass
from typing import Final

from inference import N_BYTES_DEFAULT, N_BYTES_LEAST
from planner.planner import PLAN_BYTES_DEFAULT, PLAN_BYTES_LEAST
from proxy.sources.public import N_BYTES_MAX, N_ROWS_MAX

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


N_TABLES_MAX: Final = 100
N_ROWS_HIGHEST: Final = 2**22  # all rows of a table are in memory when it is queried
N_BYTES_HIGHEST: Final = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticLimits:
    """Rows and bytes of one table, and the number of tables one analyst may have of a private one.

    The number is counted for each analyst: a shared limit would reveal how many tables others have.

    A synthetic table is read as a public table is, so that by default its size has the same bounds.
    """

    n_rows: int = N_ROWS_MAX
    n_bytes: int = N_BYTES_MAX
    n_tables: int = N_TABLES_MAX

    def __post_init__(self) -> None:
        if not (1 <= self.n_rows <= N_ROWS_HIGHEST and 1 <= self.n_bytes <= N_BYTES_HIGHEST):
            raise ValueError(f"{self.n_rows} rows and {self.n_bytes} bytes are beyond the limits")
        if self.n_tables < 1:
            raise ValueError("at least one synthetic table must be allowed")


DEFAULT_LIMITS: Final = SyntheticLimits()
