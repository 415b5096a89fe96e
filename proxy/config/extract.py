"""`extract` of a table: whether its rows are kept in memory, in a file, or where they are.

Nothing here writes an extract; where it lies if nothing is said is decided with the ledger.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from proxy.sources.extract_file import ExtractPlace
from proxy.sources.location import Extract, Location, PostgresRows
from proxy.sources.problems import Problems


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """Where the rows of one table are kept.

    Parameters
    ----------
    kept : Extract
    folder : Path, optional
        The folder of the file; by default one beside the ledger.
    """

    kept: Extract = Extract.MEMORY
    folder: Path | None = None

    def beside(self, ledger: Path | None) -> "ExtractSettings":
        """The same, in the folder beside a ledger's file if no other is named."""
        if self.kept is not Extract.FILE or self.folder is not None or ledger is None:
            return self
        return replace(self, folder=ledger.with_name(f"{ledger.name}.extracts"))

    def place(self, key: bytes) -> ExtractPlace | None:
        """Where the rows are kept on disk, under a ledger's key; None for those in memory."""
        if self.kept is not Extract.FILE or self.folder is None:
            return None
        return ExtractPlace(self.folder, key)


def read_extract(  # noqa: PLR0913, PLR0917 - what the file says, and where to say what is wrong
    kept: str,
    written: str | None,
    location: Location,
    folder: Path,
    keys: tuple[str, ...],
    problems: Problems,
) -> ExtractSettings:
    """What the file says, with paths relative to its folder.

    Parameters
    ----------
    kept : str
        The value of `extract`.
    written : str, optional
        That of `extract_dir`.
    location : Location
        Of the table's rows.
    folder : Path
        The folder of the configuration file.
    keys : tuple of str
        Of the table in the file.
    problems : Problems
        Where problems are recorded.
    """
    found = ExtractSettings(Extract(kept), None if written is None else folder / written)
    if found.folder is not None and found.kept is not Extract.FILE:
        problems.add((*keys, "extract_dir"), 'goes with extract = "file"')
    if found.folder is not None and not found.folder.is_dir():
        problems.add((*keys, "extract_dir"), "should be an existing directory")
    is_still = isinstance(location, PostgresRows) and location.immutable
    if found.kept is Extract.NONE and not is_still:
        problems.add(
            (*keys, "extract"),
            "counts rows where they are, which is for a table in a database that is immutable",
        )
    return found
