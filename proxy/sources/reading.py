"""Reading a private table into cells, and saying what went wrong without a word of its rows.

Before and after, the state of every file is compared; a connection that is lost is made again, and
everything read again: nothing was kept, and nothing is charged yet.
"""

import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import duckdb

from cube.refusals import ConfigurationInvalid, DataChanged
from cube.schema import Schema
from proxy.sources import files
from proxy.sources.bounding import RowsRead
from proxy.sources.cells import Cells
from proxy.sources.extract.chunks import Damaged
from proxy.sources.loading import load
from proxy.sources.location import (
    Location,
    PostgresRows,
    SourceFiles,
    SourceKind,
    SourceLocation,
    UnitRows,
)
from proxy.sources.postgres_rows import ConnectionLost

States = Mapping[Path, files.FileState]
N_ATTEMPTS: Final = 3
PAUSE_SECONDS: Final = 1.0

HINTS = {
    SourceKind.CSV: "It must be UTF-8 with commas, double quotes and lines of equal length.",
    SourceKind.PARQUET: "It must be one Parquet file.",
    SourceKind.DUCKDB: "It must hold source_table, unencrypted, and no process may be writing it.",
}
FoundT = TypeVar("FoundT")


def read_into(kept: Cells, schema: Schema, location: Location, read: RowsRead) -> States:
    """Read a table into cells that hold nothing yet; the states of its files meanwhile.

    Raises
    ------
    ConfigurationInvalid
        If it cannot be read as declared; ConnectionLost if it could not be read to the end. The
        message contains nothing from its rows.
    DataChanged
        If a file was written meanwhile.
    """
    unreadable = _unreadable(location)
    try:
        states = files.states_of(location.files)
        load(schema, location, states, read, kept)
        changed = files.states_of(location.files) != states
    except duckdb.OutOfMemoryException:
        raise ConfigurationInvalid(
            f"{location.label} takes more memory than there is.",
            hint="Declare fewer columns, or serve it where there is more memory.",
        ) from None
    except (duckdb.Error, csv.Error, OSError, UnicodeError, Damaged):
        # The driver's text may quote a row, so it is dropped.
        raise unreadable from None
    if changed:
        raise DataChanged(f"{location.label} changed while it was being read.")
    return states


def until_read(attempt: Callable[[], FoundT]) -> FoundT:
    """What an attempt to read gives, which is made again if a connection was lost."""
    for number in range(1, N_ATTEMPTS):
        try:
            return attempt()
        except ConnectionLost:
            time.sleep(number * PAUSE_SECONDS)  # a server that restarts needs a moment
    return attempt()


def _unreadable(location: Location) -> ConfigurationInvalid:
    match location:
        case SourceLocation(path=path, kind=kind):
            return ConfigurationInvalid(
                f"{path} cannot be read as a {kind} file.", hint=HINTS[kind]
            )
        case SourceFiles(kind=kind):
            return ConfigurationInvalid(
                f"{location.label} cannot be read as {kind} files.", hint=HINTS[kind]
            )
        case UnitRows(of=rows):
            return _unreadable(rows)
        case PostgresRows():
            return ConfigurationInvalid(f"{location.label} cannot be read as it is declared.")
        case _:
            return ConfigurationInvalid(
                f"{location.label} cannot be read: a file is missing, or is not what its name says."
            )
