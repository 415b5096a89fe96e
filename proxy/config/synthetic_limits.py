"""Limits on the synthetic tables that are kept."""

from dataclasses import dataclass
from typing import Final

from proxy.sources.public_table import N_BYTES_MAX, N_ROWS_MAX

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
