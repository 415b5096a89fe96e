"""Where a private table lies: a file, and for a database file the table in it.

A pure value; nothing here opens anything.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class SourceKind(StrEnum):
    """The formats a source can be read from."""

    CSV = "csv"
    PARQUET = "parquet"
    DUCKDB = "duckdb"


KIND_BY_SUFFIX = {
    ".csv": SourceKind.CSV,
    ".parquet": SourceKind.PARQUET,
    ".duckdb": SourceKind.DUCKDB,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """The file of a private table.

    Parameters
    ----------
    path : Path
        A `.csv`, `.parquet` or `.duckdb` file; the suffix decides how it is read.
    source_table : str, optional
        The table inside a `.duckdb` file, required there and meaningless elsewhere.
    """

    path: Path
    source_table: str | None = None

    def __post_init__(self) -> None:
        if self.path.suffix.lower() not in KIND_BY_SUFFIX:
            raise ValueError(f"a source is a {', '.join(KIND_BY_SUFFIX)} file")
        if (self.kind is SourceKind.DUCKDB) != (self.source_table is not None):
            raise ValueError("source_table goes with a .duckdb file, and only with one")

    @property
    def kind(self) -> SourceKind:
        """The file's format."""
        return KIND_BY_SUFFIX[self.path.suffix.lower()]
