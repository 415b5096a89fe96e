"""Source files as text that DuckDB can select from, and the fingerprint of their bytes.

What a file looks like is fixed, not guessed from its rows: a CSV file is UTF-8 with commas, double
quotes and one header line, and an empty field is NULL.
"""

import csv
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cube.refusals import ConfigurationInvalid, DataChanged
from proxy.sources.axis_sql import TEXT, SourceColumn
from proxy.sources.location import SourceKind, SourceLocation

CHUNK_BYTES = 2**20
PATTERN_CHARACTERS = frozenset("*?[]{}")
OUTSIDE = "outside"  # the name an attached database file goes by while it is read, if not told


@dataclass(frozen=True, slots=True)
class FileState:
    """What changes when a file is written or replaced."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """The state of a file now."""
        found = path.stat()
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def states_of(paths: Iterable[Path]) -> dict[Path, FileState]:
    """The state of each file now."""
    return {path: FileState.of(path) for path in paths}


@dataclass(frozen=True, slots=True)
class Relation:
    """Something to select from.

    Parameters
    ----------
    sql : str
        What follows FROM.
    setup : str
        A statement to run beforehand, or nothing.
    teardown : str
        A statement that lets go of what was read, or nothing.
    columns : dict, optional
        The columns by their names in lower case, where they are known without asking DuckDB.
    named : str
        What follows FROM if the columns are to have the names they have in the file.
    """

    sql: str
    setup: str = ""
    teardown: str = ""
    columns: dict[str, SourceColumn] | None = None
    named: str = ""


def relation_of(location: SourceLocation, outside: str = OUTSIDE) -> Relation:
    """A file as SQL; `outside` is what a database file goes by while it is read."""
    path = str(location.path.resolve())
    if set(path) & PATTERN_CHARACTERS:
        # Other files that match would be read along, and escape the fingerprint.
        raise ConfigurationInvalid(
            f"{location.path} cannot be read: its full path holds one of * ? [ ] {{ }}.",
            hint="Move or rename it.",
        )
    if location.kind is SourceKind.CSV:
        return _csv_relation(location.path, path)
    if location.source_table is None:
        sql = f"read_parquet({text_sql(path)}, hive_partitioning = false)"
        return Relation(sql, named=sql)
    if Path(f"{path}.wal").exists():
        raise ConfigurationInvalid(
            f"{location.path} has changes in a .wal file beside it.",
            hint="Close the process that writes it, or run CHECKPOINT in it.",
        )
    sql = f"{outside}.{name_sql(location.source_table)}"
    return Relation(
        sql=sql,
        setup=f"ATTACH IF NOT EXISTS {text_sql(path)} AS {outside} (READ_ONLY)",
        teardown=f"DETACH {outside}",
        named=sql,
    )


def typed_columns(described: Iterable[tuple[Any, ...]]) -> dict[str, SourceColumn]:
    """The columns that DuckDB's DESCRIBE lists, by their names in lower case."""
    return {
        name.casefold(): SourceColumn(f"source.{name_sql(name)}", kind.split("(")[0], False)
        for name, kind, *_ in described
    }


def _csv_relation(location: Path, path: str) -> Relation:
    with location.open(encoding="utf-8-sig", newline="") as lines:
        header = next(csv.reader(lines), [])
    folded = [name.casefold() for name in header]
    if not header or len(set(folded)) != len(folded):
        raise ConfigurationInvalid(
            f"{location} must begin with a line of distinct column names.",
            hint="Letter case does not make a difference.",
        )
    names = [f"column_{place}" for place in range(len(header))]
    types = ", ".join(f"{name}: '{TEXT}'" for name in names)
    sql = (
        f"read_csv({text_sql(path)}, columns = {{{types}}}, auto_detect = false, header = true, "
        "delim = ',', quote = '\"', escape = '\"', nullstr = '')"
    )
    columns = (SourceColumn(f"source.{name}", TEXT, True) for name in names)
    renamed = ", ".join(
        f"{name} AS {name_sql(written)}" for name, written in zip(names, header, strict=True)
    )
    return Relation(
        sql,
        columns=dict(zip(folded, columns, strict=True)),
        named=f"(SELECT {renamed} FROM {sql})",  # noqa: S608 - quoted names
    )


def fingerprint(location: SourceLocation, key: bytes, opened: FileState) -> str:
    """HMAC-SHA256 of a file's bytes, in hexadecimal, provided it is as it was when opened.

    Keyed, so that whoever reads the ledger cannot test guesses of the data against it. A database
    file holds several tables, so that the name of the one that is read counts as data too.
    """
    path = location.path
    code = hmac.new(key, digestmod=hashlib.sha256)
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                code.update(chunk)
        unchanged = FileState.of(path) == opened
    except OSError:
        raise ConfigurationInvalid(f"{path} cannot be read.") from None
    if not unchanged:
        raise DataChanged(
            f"{path} changed while it was being read.", hint="Start again when it is at rest."
        )
    if location.source_table is None:
        return code.hexdigest()
    # As DuckDB does, names are told apart without regard to letter case.
    named = code.digest() + location.source_table.casefold().encode()
    return hmac.new(key, named, digestmod=hashlib.sha256).hexdigest()


def text_sql(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def name_sql(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'
