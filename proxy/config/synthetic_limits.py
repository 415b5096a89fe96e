"""How much is kept of synthetic tables."""

from dataclasses import dataclass
from typing import Final

from proxy.sources.public_table import N_BYTES_MAX, N_ROWS_MAX

N_TABLES_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticLimits:
    """Rows and bytes of one table, and how many one analyst may have of one private table.

    Places that strangers share would tell each of them how many the others have.

    A synthetic table is read as a public one is, so that it is no larger than those may be.
    """

    n_rows: int = N_ROWS_MAX
    n_bytes: int = N_BYTES_MAX
    n_tables: int = N_TABLES_MAX

    def __post_init__(self) -> None:
        if not (1 <= self.n_rows <= N_ROWS_MAX and 1 <= self.n_bytes <= N_BYTES_MAX):
            raise ValueError(f"{self.n_rows} rows and {self.n_bytes} bytes are beyond the limits")
        if self.n_tables < 1:
            raise ValueError("no synthetic table at all")


DEFAULT_LIMITS: Final = SyntheticLimits()
