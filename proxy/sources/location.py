"""The location of a private table: a file, its owner's SQL on several, or the units of either.

Pure values; nothing here opens anything.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from cube.axis import NAME_LENGTH_MAX


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
            raise ValueError(f"a source must be a {', '.join(KIND_BY_SUFFIX)} file")
        if (self.kind is SourceKind.DUCKDB) != (self.source_table is not None):
            raise ValueError("source_table goes with a .duckdb file, and only with one")

    @property
    def kind(self) -> SourceKind:
        """The file's format."""
        return KIND_BY_SUFFIX[self.path.suffix.lower()]

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (self.path,)

    @property
    def label(self) -> str:
        """The name for it in messages."""
        return str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateView:
    """A private table that the owner's SQL computes from files, one row for each privacy unit.

    Parameters
    ----------
    sql : str
        One SELECT in DuckDB's SQL.
    sources : tuple of (str, SourceLocation)
        The tables that it may select from: the name of each in the SQL, and its location.
    """

    sql: str
    sources: tuple[tuple[str, SourceLocation], ...]

    def __post_init__(self) -> None:
        if not self.sql.strip():
            raise ValueError("a view must be a SELECT")
        if not self.sources:
            raise ValueError("a view needs at least one source")
        names = [name for name, _location in self.sources]
        if not all(0 < len(name) <= NAME_LENGTH_MAX and name.isprintable() for name in names):
            raise ValueError(
                f"the name of a source has 1 to {NAME_LENGTH_MAX} printable characters"
            )
        if len({name.casefold() for name in names}) != len(names):
            raise ValueError("two sources share a name (letter case does not count)")

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return tuple(dict.fromkeys(location.path for _name, location in self.sources))

    @property
    def label(self) -> str:
        """The name for it in messages."""
        return f"The view of {', '.join(str(path) for path in self.files)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRows:
    """One row for each unit that the rows of another table are about, bounded or not.

    Parameters
    ----------
    of : SourceLocation or PrivateView
        Where those rows are.
    """

    of: SourceLocation | PrivateView

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return self.of.files

    @property
    def label(self) -> str:
        """The name for it in messages."""
        return self.of.label


Location: TypeAlias = SourceLocation | PrivateView | UnitRows
