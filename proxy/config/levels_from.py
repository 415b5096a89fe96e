"""`levels_from = "cities.csv:city"`: the levels of a category, read from a public file's column.

The levels are read when the configuration is, and are declared as if they stood in it: a file that
changed declares other levels. How the file is written is what a public table of it says. A private
table's own file is refused, whatever its path: the values in its rows are no public knowledge.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cube.refusals import ConfigurationInvalid
from proxy.sources.location import SourceKind, SourceLocation, kind_of
from proxy.sources.problems import Problems
from proxy.sources.public_file import read_texts
from proxy.sources.text_format import TextFormat


@dataclass(frozen=True, slots=True)
class LevelFiles:
    """Where level files are looked for, and which files they may not be.

    Parameters
    ----------
    folder : Path
        The folder of the configuration file.
    private : frozenset of Path
        The files of every private table, links followed.
    texts : mapping of Path to TextFormat
        How the files of public tables are written, links followed, where that is said.
    """

    folder: Path
    private: frozenset[Path] = frozenset()
    texts: Mapping[Path, TextFormat] = field(default_factory=dict)

    def levels(
        self, written: str, keys: tuple[str, ...], problems: Problems
    ) -> tuple[str, ...] | None:
        """The values of a column in the order of the file, each once; None on problems."""
        name, colon, column = written.rpartition(":")
        if not (name and colon and column):
            problems.add(keys, 'should be a file and its column, such as "cities.csv:city"')
            return None
        path = self.folder / name
        if kind_of(path) not in {SourceKind.CSV, SourceKind.PARQUET} or not path.is_file():
            problems.add(keys, "should name a .csv or .parquet file that exists")
            return None
        if path.resolve() in self.private:
            problems.add(keys, "names the file of a private table; levels are public")
            return None
        try:
            text = self.texts.get(path.resolve())
            return read_texts(SourceLocation(path=path, text=text), column)
        except ConfigurationInvalid as refusal:
            problems.add(keys, refusal.explain())
            return None
