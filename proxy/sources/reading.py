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
    PrivateView,
    SourceFiles,
    SourceKind,
    SourceLocation,
    UnitRows,
)
from proxy.sources.postgres_rows import ConnectionLost
from proxy.sources.text_format import IS_PARQUET, fault_of, what_file_is

States = Mapping[Path, files.FileState]
N_ATTEMPTS: Final = 3
PAUSE_SECONDS: Final = 1.0

HINTS = {
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
        raise unreadable(location) from None
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


def unreadable(location: Location) -> ConfigurationInvalid:
    """What is wrong with a location that could not be read, without a word of its rows."""
    each: list[SourceLocation | SourceFiles] = []
    match location:
        case UnitRows(of=rows):
            return unreadable(rows)
        case PostgresRows():
            return ConfigurationInvalid(f"{location.label} cannot be read as it is declared.")
        case SourceLocation() | SourceFiles():
            each = [location]
        case PrivateView(sources=sources):
            each = [source for _name, source in sources]
    for one in each:
        for path in one.files:
            found = wrong_with(path, one)
            if found is not None:
                return ConfigurationInvalid(f"{path} {found[0]}.", hint=found[1])
    if len(each) == 1:
        what = f"{location.label} cannot be read as {each[0].kind}."
        return ConfigurationInvalid(what, hint=HINTS.get(each[0].kind))
    return ConfigurationInvalid(
        f"{location.label} cannot be read: a file is missing, or is not what its name says."
    )


def wrong_with(path: Path, location: SourceLocation | SourceFiles) -> tuple[str, str] | None:
    """What is wrong with one file of a location, and what to do; None if nothing seems to be.

    It reads the file once more, and says no word of what is in it.
    """
    if not path.exists():
        return (
            "cannot be read: there is no such file",
            "Paths are relative to the folder of the configuration.",
        )
    try:
        if location.kind is SourceKind.CSV:
            return fault_of(path, location.text_format)
        known = what_file_is(path)
    except OSError:
        return "cannot be read", "The user that runs the server must be allowed to read it."
    if location.kind is SourceKind.PARQUET and known is not None and known[0] == IS_PARQUET:
        known = None
    if known is not None:
        return known
    return f"cannot be read as a {location.kind} file", HINTS[location.kind]
