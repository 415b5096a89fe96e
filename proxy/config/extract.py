"""`extract` of a table: whether its rows are kept in memory, in a file, or where they are.

Nothing here writes an extract; where it lies if nothing is said is decided with the ledger.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from cube.schema import Schema
from proxy.sources.extract_file import ExtractPlace, Told, untold
from proxy.sources.location import Extract, PostgresRows, TableLocation
from proxy.sources.problems import Problems
from proxy.sources.pushdown.opening import TIMEOUT_SECONDS, StaysThere
from proxy.sources.spark_table import SparkTable


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """Where the rows of one table are kept.

    Parameters
    ----------
    kept : Extract
    folder : Path, optional
        The folder of the file; by default one beside the ledger.
    timeout : float
        How long a statement may take where rows are counted where they are, in seconds.
    """

    kept: Extract = Extract.MEMORY
    folder: Path | None = None
    timeout: float = TIMEOUT_SECONDS

    def beside(self, ledger: Path | None) -> "ExtractSettings":
        """The same, in the folder beside a ledger's file if no other is named."""
        if self.kept is not Extract.FILE or self.folder is not None or ledger is None:
            return self
        return replace(self, folder=ledger.with_name(f"{ledger.name}.extracts"))

    def file(self, key: bytes, told: Told = untold) -> ExtractPlace | None:
        """The file of a table whose rows are read; None for those in memory."""
        found = self.place(key, told)
        if isinstance(found, StaysThere):
            raise TypeError("rows that are counted where they are have no file")
        return found

    def place(self, key: bytes, told: Told = untold) -> ExtractPlace | StaysThere | None:
        """Where the rows are kept on disk, under a ledger's key; None for those in memory.

        Somebody may be told when an extract is made.
        """
        if self.kept is Extract.NONE:
            return StaysThere(self.timeout)
        if self.kept is not Extract.FILE or self.folder is None:
            return None
        return ExtractPlace(self.folder, key, told)


def read_extract(  # noqa: PLR0913, PLR0917 - what the file says, and where to say what is wrong
    kept: tuple[str | None, float | None],
    written: str | None,
    location: TableLocation,
    folder: Path,
    keys: tuple[str, ...],
    problems: Problems,
) -> ExtractSettings:
    """What the file says, with paths relative to its folder.

    Parameters
    ----------
    kept : tuple of str and float
        The values of `extract` and of `timeout`, or None.
    written : str, optional
        That of `extract_dir`.
    location : TableLocation
        Of the table's rows.
    folder : Path
        The folder of the configuration file.
    keys : tuple of str
        Of the table in the file.
    problems : Problems
        Where problems are recorded.
    """
    said, timeout = kept
    is_spark = isinstance(location, SparkTable)
    default = Extract.NONE if is_spark else Extract.MEMORY
    found = ExtractSettings(
        default if said is None else Extract(said),
        None if written is None else folder / written,
        TIMEOUT_SECONDS if timeout is None else timeout,
    )
    if timeout is not None and found.kept is not Extract.NONE:
        problems.add((*keys, "timeout"), "is of statements that count rows where they are")
    if is_spark and found.kept is not Extract.NONE:
        problems.add((*keys, "extract"), 'is "none" of a table in Spark, which stays there')
    if found.folder is not None and found.kept is not Extract.FILE:
        problems.add((*keys, "extract_dir"), 'goes with extract = "file"')
    if found.folder is not None and not found.folder.is_dir():
        problems.add((*keys, "extract_dir"), "should be an existing directory")
    is_still = is_spark or (isinstance(location, PostgresRows) and location.immutable)
    if isinstance(location, PostgresRows) and location.query and found.kept is Extract.NONE:
        problems.add((*keys, "extract"), "counts a table where it is; source_query is read out")
    if found.kept is Extract.NONE and not is_still:
        problems.add(
            (*keys, "extract"),
            "counts rows where they are, which is for a table in a database that is immutable",
        )
    return found


def check_counted_there(
    extract: ExtractSettings, schema: Schema, keys: tuple[str, ...], problems: Problems
) -> None:
    """Record what a table that is counted where it is cannot be."""
    if extract.kept is not Extract.NONE:
        return
    if schema.rows_per_unit_max > 1:
        what = "needs rows to be chosen by a secret key, which goes to no engine: extract them"
        problems.add((*keys, "rows_per_unit_max"), what)
    if schema.grows is not None:
        problems.add((*keys, "grows"), "needs rows to be read up to a horizon: extract them")
