"""`levels_from = "cities.csv:city"`: the levels of a category, read from a public file's column.

The levels are read when the configuration is, and are declared as if they stood in it: a file that
changed declares other levels. A private table's own file is refused, whatever its path: the values
in its rows are no public knowledge.
"""

from dataclasses import dataclass
from pathlib import Path

from cube.refusals import ConfigurationInvalid
from proxy.sources.location import SourceKind, SourceLocation
from proxy.sources.problems import Problems
from proxy.sources.public_file import read_texts


@dataclass(frozen=True, slots=True)
class LevelFiles:
    """Where level files are looked for, and which files they may not be.

    Parameters
    ----------
    folder : Path
        The folder of the configuration file.
    private : frozenset of Path
        The files of every private table, links followed.
    """

    folder: Path
    private: frozenset[Path] = frozenset()

    def levels(
        self, written: str, keys: tuple[str, ...], problems: Problems
    ) -> tuple[str, ...] | None:
        """The values of a column in the order of the file, each once; None on problems."""
        name, colon, column = written.rpartition(":")
        if not (name and colon and column):
            problems.add(keys, 'should be a file and its column, such as "cities.csv:city"')
            return None
        path = self.folder / name
        if not _is_readable(path):
            problems.add(keys, "should name a .csv or .parquet file that exists")
            return None
        if path.resolve() in self.private:
            problems.add(keys, "names the file of a private table; levels are public")
            return None
        try:
            return read_texts(path, column)
        except ConfigurationInvalid as refusal:
            problems.add(keys, refusal.explain())
            return None


def _is_readable(path: Path) -> bool:
    try:
        kind = SourceLocation(path=path).kind
    except ValueError:  # another suffix, or that of a database
        return False
    return kind is not SourceKind.DUCKDB and path.is_file()
