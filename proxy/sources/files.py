"""Source files as something that DuckDB can select from, and the fingerprint of their bytes.

The owner declares the format of a file; it is not guessed from its rows or its folder. By default
text is UTF-8 with commas, double quotes and one header line, and an empty field is
NULL. DuckDB reads UTF-8; text in another encoding is decoded into memory first, and never into a
file.

The source_table of a database file has to be a base table, whose rows are in the file. A view is a
text that is run anew each time: it may read another file, or the clock, while the bytes of its own
file, and so its fingerprint, stay the same. The same holds for a generated column. The catalog says
which is which; neither is run.
"""

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from cube.encoding import canonical_json
from cube.refusals import ConfigurationInvalid, DataChanged
from proxy.sources.axis_sql import TEXT, SourceColumn
from proxy.sources.closed import Connection, name_sql, text_sql
from proxy.sources.location import SourceFiles, SourceKind, SourceLocation, kind_of
from proxy.sources.text_format import (
    NOT_COMPRESSED,
    UTF8,
    TextFormat,
    compression_of,
    first_fields,
    text_of,
)

SCHEMA = "main"
STORED = "CREATE TABLE people AS FROM your_view, and then CHECKPOINT, stores the rows in the file."


def check_base_table(location: SourceLocation, catalog: str, connection: Connection) -> str:
    """The name of the source table in the file's spelling.

    Parameters
    ----------
    location : SourceLocation
        A database file and the table in it.
    catalog : str
        The name under which the file is attached.
    connection : Connection
        The database to which it is attached.

    Raises
    ------
    ConfigurationInvalid
        If there is no such table, or if it is a view, or if one of its columns is generated.
    """
    wanted = location.source_table or ""
    found = _spelled(wanted, "duckdb_tables", "table_name", catalog, connection)
    if len(found) != 1:
        if _spelled(wanted, "duckdb_views", "view_name", catalog, connection):
            raise ConfigurationInvalid(
                f"{location.path}: {wanted} is a view, and a view's rows can change while the "
                "file stays the same.",
                hint=STORED,
            )
        raise ConfigurationInvalid(
            f"{location.path} cannot be read: there is no table {wanted} in it."
        )
    (name,) = found
    ((is_generated,),) = connection.execute(
        "SELECT coalesce(bool_or(is_generated), false) FROM system.main.duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? AND table_name = ?",
        [catalog, SCHEMA, name],
    ).fetchall()
    if is_generated:
        raise ConfigurationInvalid(
            f"{location.path}: {wanted} has a generated column, and its values can change while "
            "the file stays the same.",
            hint=STORED,
        )
    return name


def _spelled(
    wanted: str, listing: str, column: str, catalog: str, connection: Connection
) -> list[str]:
    """The entry of a catalog listing with that name, ignoring letter case."""
    rows = connection.execute(
        f"SELECT {column} FROM system.main.{listing}() "  # noqa: S608 - fixed names
        "WHERE database_name = ? AND schema_name = ?",
        [catalog, SCHEMA],
    ).fetchall()
    return [name for (name,) in rows if name.casefold() == wanted.casefold()]


CHUNK_BYTES = 2**20
DECODED_AT_ONCE: Final = 2**20  # characters
PATTERN_CHARACTERS = frozenset("*?[]{}")
OUTSIDE = "outside"  # the default name of an attached database file while it is read
NO_EMPTY_TEXTS: Final[Mapping[str, bool]] = MappingProxyType({})
LOG = ".wal"
# The file beside a database file in which DuckDB keeps changes that are not yet in it.
LOGS = (LOG, f"{LOG}.checkpoint", f"{LOG}.recovery")


@dataclass(frozen=True, slots=True)
class FileState:
    """The identity of a file, links followed, and what changes when it is written or replaced."""

    path: Path
    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int  # unlike the modification time, no writer can set it
    logs: tuple[str, ...]
    packed: str = NOT_COMPRESSED  # as the name that was given says, whatever a link leads to
    decoded: str = ""

    @property
    def read_path(self) -> str:
        """The path that DuckDB reads: of the file, or of its text in memory."""
        return self.decoded or str(self.path)

    @property
    def compression(self) -> str:
        """How what is there is compressed."""
        return NOT_COMPRESSED if self.decoded else self.packed

    @classmethod
    def of(cls, path: Path) -> "FileState":
        """The state of a file now.

        Raises
        ------
        ConfigurationInvalid
            If it is a pipe, a device or a folder; it is not opened, since that could block for
            ever.
        OSError
            If it does not exist.
        """
        real = Path(os.path.realpath(path, strict=True))
        found = real.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise ConfigurationInvalid(
                f"{path} is not a file.",
                hint="A source is read more than once, and must be a regular file.",
            )
        return cls(
            path=real,
            device=found.st_dev,
            inode=found.st_ino,
            size=found.st_size,
            modified_ns=found.st_mtime_ns,
            changed_ns=found.st_ctime_ns,
            logs=tuple(log for log in LOGS if os.path.lexists(f"{real}{log}")),
            packed=compression_of(path),
        )

    def is_of(self, file: int) -> bool:
        """Whether an open file is this one."""
        found = os.fstat(file)
        return (found.st_dev, found.st_ino) == (self.device, self.inode)


def states_of(paths: Iterable[Path]) -> dict[Path, FileState]:
    """The state of each file now."""
    return {path: FileState.of(path) for path in paths}


def reachable(states: Mapping[Path, FileState]) -> Iterator[str]:
    """The paths that a database must be able to reach in order to read these files."""
    for path, state in states.items():
        yield state.read_path
        if kind_of(path) is SourceKind.DUCKDB:
            # DuckDB fails if it cannot look for a log file; `opened` refuses the file if there is
            # one.
            yield f"{state.path}{LOG}"


@contextmanager
def decoded(
    locations: Iterable[SourceLocation | SourceFiles], states: Mapping[Path, FileState]
) -> Iterator[Mapping[Path, FileState]]:
    """The states of files; inside the block, texts that are not UTF-8 are in memory.

    Raises
    ------
    ConfigurationInvalid
        If there is no such memory on this system.
    OSError, UnicodeError
        If one cannot be read, or is not in its encoding.
    """
    with ExitStack() as stack:
        found = dict(states)
        for location in locations:
            encoding = location.text_format.encoding
            if location.kind is not SourceKind.CSV or encoding == UTF8:
                continue
            for path in _listed(location, states):
                text = stack.enter_context(_in_memory(states[path], encoding))
                found[path] = replace(states[path], decoded=text)
        yield found


@contextmanager
def _in_memory(state: FileState, encoding: str) -> Iterator[str]:
    """The path of a file's text as UTF-8, in memory."""
    if not hasattr(os, "memfd_create"):
        raise ConfigurationInvalid(
            f"{state.path} is in {encoding}, which can be read on Linux only.",
            hint="Write it as UTF-8, as `iconv -t utf-8` does.",
        )
    with open(os.memfd_create("text"), "wb") as file:  # noqa: PTH123 - a file without a path
        with text_of(state.path, state.packed, encoding) as text:
            while some := text.read(DECODED_AT_ONCE):
                file.write(some.encode())
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation to select from.

    Parameters
    ----------
    sql : str
        What follows FROM.
    columns : dict, optional
        The columns by their names in lower case, where they are known without asking DuckDB.
    named : str
        What follows FROM to get the columns under the names they have in the file.
    texts : dict
        The columns of a file of text by the names they have there.
    """

    sql: str
    columns: dict[str, SourceColumn] | None = None
    named: str = ""
    texts: dict[str, SourceColumn] = field(default_factory=dict)


def opened(
    location: SourceLocation | SourceFiles,
    states: Mapping[Path, FileState],
    connection: Connection,
    outside: str = OUTSIDE,
    empty: Mapping[str, bool] = NO_EMPTY_TEXTS,
) -> Relation:
    """Files as a relation in a database that can reach them (`reachable`).

    Parameters
    ----------
    states : mapping of Path to FileState
        The states of the files at that location, in order, and perhaps of others.
    outside : str
        The name under which a database file is attached there.
    empty : mapping of str to bool
        The columns, in lower case, in which an empty text is a value; and whether NULL is one too.

    Raises
    ------
    ConfigurationInvalid
        If the rows do not depend on the bytes of these files alone.
    """
    some = {path: states[path] for path in _listed(location, states)}
    for path, state in some.items():
        if set(str(state.path)) & PATTERN_CHARACTERS:
            # Other files that match would be read too, and the fingerprint would not cover them.
            raise ConfigurationInvalid(
                f"{path} cannot be read: its full path holds one of * ? [ ] {{ }}.",
                hint="Move or rename it.",
            )
    if location.kind is SourceKind.CSV:
        return csv_relation(some, location.text_format, empty)
    if location.kind is SourceKind.PARQUET:
        return parquet_relation(some, connection)
    (state,) = some.values()
    return _table_relation(location, state, connection, outside)


def _listed(
    location: SourceLocation | SourceFiles, states: Mapping[Path, FileState]
) -> tuple[Path, ...]:
    """The files of a location, which are those whose states were taken."""
    found = location.files
    if not found:
        raise ConfigurationInvalid(f"{location.label} names no file.")
    if not states.keys() >= set(found):
        raise DataChanged(f"{location.label} changed while it was being read.")
    return found


def _table_relation(
    location: SourceLocation | SourceFiles, state: FileState, connection: Connection, outside: str
) -> Relation:
    """A table of a database file."""
    if not isinstance(location, SourceLocation):
        raise TypeError("a database file is a source by itself")
    path = str(state.path)
    if state.logs:
        raise ConfigurationInvalid(
            f"{location.path} has changes in a .wal file beside it.",
            hint="Close the process that writes it, or run CHECKPOINT in it.",
        )
    connection.execute(
        f"ATTACH IF NOT EXISTS {text_sql(path)} AS {outside} (READ_ONLY, TYPE duckdb)"
    )
    table = check_base_table(location, outside, connection)
    sql = f"{outside}.{SCHEMA}.{name_sql(table)}"
    return Relation(sql, named=sql)


def typed_columns(described: Iterable[tuple[Any, ...]]) -> dict[str, SourceColumn]:
    """The columns that DuckDB's DESCRIBE lists, by their names in lower case."""
    return {
        name.casefold(): _typed_column(f"source.{name_sql(name)}", kind)
        for name, kind, *_ in described
    }


def _typed_column(sql: str, kind: str) -> SourceColumn:
    """A column of a type as DuckDB writes it, as in ``DECIMAL(9,2)``."""
    name, _, within = kind.rstrip(")").partition("(")
    if name != "DECIMAL":
        return SourceColumn(sql, name, False)
    digits, places = map(int, within.split(","))
    return SourceColumn(sql, name, False, places, decimal_digits=digits)


def parquet_relation(states: Mapping[Path, FileState], connection: Connection) -> Relation:
    """Parquet files with the same columns, of the same types."""
    paths = [text_sql(str(state.path)) for state in states.values()]
    kinds = None
    for path, sql in zip(states, paths, strict=True):
        # DuckDB would give the second of two columns with one name another.
        nodes = "SELECT name, coalesce(num_children, 0) FROM parquet_schema(?)"
        found = connection.execute(nodes, [states[path].read_path]).fetchall()
        check_distinct(str(path), _top_names(found))
        if len(paths) == 1:
            break
        one = f"DESCRIBE FROM read_parquet({sql}, hive_partitioning = false)"
        described = [(name, kind) for name, kind, *_ in connection.execute(one).fetchall()]
        kinds = kinds or described
        if described != kinds:
            raise _unlike(path)
    sql = f"read_parquet([{', '.join(paths)}], hive_partitioning = false)"
    return Relation(sql, named=sql)


def _top_names(nodes: Sequence[tuple[str, int]]) -> Iterator[str]:
    """The names of a Parquet file's columns, among all nodes of its schema, parents first."""
    within = 0  # nodes that are left below the column before
    for name, n_children in nodes[1:]:
        if not within:
            yield name
        within += n_children - bool(within)


def _unlike(path: Path) -> ConfigurationInvalid:
    return ConfigurationInvalid(
        f"{path} does not have the columns of the files before it.",
        hint="All files of a table must have the same columns, in the same order.",
    )


def csv_relation(
    states: Mapping[Path, FileState],
    text: TextFormat,
    empty: Mapping[str, bool] = NO_EMPTY_TEXTS,
) -> Relation:
    """Files of text that begin with the same line of names, or have equally many fields in it.

    An empty field is NULL, between quotes or not. Only in a column with an empty text among its
    levels it is that text: between quotes, or in any way if NULL is not a level.
    """
    header: list[str] = []
    for location, state in states.items():
        found = _names(location, state, text)
        header = header or found
        if found != header:
            raise _unlike(location)
    names = [f"column_{place}" for place in range(len(header))]
    types = ", ".join(f"{name}: '{TEXT}'" for name in names)
    paths = ", ".join(text_sql(state.read_path) for state in states.values())
    (compression,) = {state.compression for state in states.values()}
    sql = (
        f"read_csv([{paths}], columns = {{{types}}}, auto_detect = false, "
        f"header = {str(text.header).lower()}, delim = {text_sql(text.delimiter)}, "
        "quote = '\"', escape = '\"', nullstr = '', "
        f"allow_quoted_nulls = {str(not empty).lower()}, "
        f"compression = '{compression}', hive_partitioning = false)"
    )
    texts = {
        written: SourceColumn(
            _field(f"source.{name}", written, empty), TEXT, is_csv=True, decimal_sign=text.decimal
        )
        for name, written in zip(names, header, strict=True)
        if written
    }
    renamed = ", ".join(
        f"{_field(name, written, empty)} AS {name_sql(written)}"
        for name, written in zip(names, header, strict=True)
        if written
    )
    # A column without a name is never asked for.
    return Relation(
        sql,
        columns={written.casefold(): column for written, column in texts.items()},
        texts=texts,
        named=f"(SELECT {renamed} FROM {sql})",  # noqa: S608 - quoted names
    )


def _field(name: str, written: str, empty: Mapping[str, bool]) -> str:
    """SQL for a field; NULL and an empty text are distinguished only if some column wants that."""
    if not empty:
        return name
    has_null = empty.get(written.casefold())
    if has_null is None:
        return f"nullif({name}, '')"
    return name if has_null else f"coalesce({name}, '')"


def _names(location: Path, state: FileState, text: TextFormat) -> list[str]:
    """The names of the columns of a file of text; empty for those that have none."""
    fields = first_fields(state.path, state.packed, text)
    header = text.names(fields)
    check_distinct(str(location), header)
    if not any(header):
        raise ConfigurationInvalid(
            f"{location} must begin with a line of distinct column names; it has none.",
            hint=(
                "If the file has no such line, set header = false: columns are then called "
                "column_1, column_2 and so on."
            ),
        )
    return header


def check_distinct(label: str, names: Iterable[str]) -> None:
    """Refuse columns with the same name; which is not said, since it may be a person's row.

    Raises
    ------
    ConfigurationInvalid
    """
    places: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        before = places.setdefault(name.casefold(), place)
        if name and before != place:
            raise ConfigurationInvalid(
                f"{label} must have distinct column names; columns {before} and {place} share one.",
                hint=(
                    "Names that differ only in letter case count as equal. Rename one in the "
                    "file; for a text file without a line of names, set header = false."
                ),
            )


def fingerprint(
    location: SourceLocation | SourceFiles, key: bytes, states: Mapping[Path, FileState]
) -> str:
    """The identity of a file, or of several: of their names, from their folder on, and bytes."""
    if isinstance(location, SourceLocation):
        return fingerprint_of_file(location, key, states[location.path])
    each = [
        (name, fingerprint_of_file(SourceLocation(path=path), key, states[path]))
        for name, path in zip(location.names, _listed(location, states), strict=True)
    ]
    return hmac.new(key, canonical_json(["files", *each]).encode(), hashlib.sha256).hexdigest()


def fingerprint_of_file(location: SourceLocation, key: bytes, opened: FileState) -> str:
    """HMAC-SHA256 of a file's bytes, in hexadecimal, provided it is unchanged since it was opened.

    It is keyed, so that readers of the ledger cannot test guesses of the data against it. A
    database file holds several tables, so the name of the table counts as data too.
    """
    path = location.path
    code = hmac.new(key, digestmod=hashlib.sha256)
    try:
        with opened.path.open("rb") as file:
            is_same = opened.is_of(file.fileno())
            while chunk := file.read(CHUNK_BYTES):
                code.update(chunk)
        unchanged = is_same and FileState.of(path) == opened
    except OSError:
        raise ConfigurationInvalid(f"{path} cannot be read.") from None
    if not unchanged:
        raise DataChanged(
            f"{path} changed while it was being read.",
            hint="Start again when no process writes it.",
        )
    if location.source_table is None:
        return code.hexdigest()
    # Like DuckDB, ignore letter case when comparing names.
    named = code.digest() + location.source_table.casefold().encode()
    return hmac.new(key, named, digestmod=hashlib.sha256).hexdigest()
