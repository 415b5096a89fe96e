"""Where rows come from, as the owner declares it, and where those of a private table are kept.

A private table has a `source`, or a `view` and `sources`; a federated one has `holders`. A source
is a file, a folder or a pattern of files, a table in PostgreSQL, or one behind Spark Connect:
`source = "sc://HOST:PORT"`. `extract` says whether its rows are kept in memory, in a file, or where
they are; where the file lies if nothing is said is decided with the ledger.

The `[public.NAME]` tables are files whose rows anybody may see, to join with private tables.

Nothing here opens a source or writes an extract; whether it can be read, and what is in it, is
checked when the source opens, and whether a public table's key is unique when it is loaded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from accountant.ledger.stores import PostgresLocation, is_postgres
from cube.schema import Schema
from proxy.config.holders import note_without_holders, read_holders
from proxy.sources import (
    KINDS_BY_NAME,
    OF_TEXT,
    SCHEME,
    TIMEOUT_SECONDS,
    Extract,
    ExtractPlace,
    PostgresRows,
    PrivateView,
    Problems,
    Section,
    SourceFiles,
    SourceKind,
    SourceLocation,
    SparkTable,
    StaysThere,
    TableLocation,
    TextFormat,
    Told,
    default_format,
    inner_suffix,
    kind_of,
    untold,
)
from proxy.sources.public import RESERVED_NAMES, Key, PublicSettings, is_public_name

OF_SPARK: Final = ("version", "token_file", "tls")


def is_spark(source: str) -> bool:
    """Whether a source is behind Spark Connect."""
    return source.startswith(SCHEME)


def read_spark(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> SparkTable | None:
    """The table; None on problems. Values of a wrong type are recorded with the table's section."""
    table, token, version = (values.get(key) for key in ("source_table", "token_file", "version"))
    path = folder / token if isinstance(token, str) else None
    if path is not None and not path.is_file():
        problems.add((*keys, "token_file"), "names no file")
    try:
        return SparkTable(
            address=str(values["source"]).removeprefix(SCHEME).rstrip("/"),
            parts=tuple(table.split(".")) if isinstance(table, str) else (),
            version=version if type(version) is int else None,
            immutable=values.get("immutable") is True,
            token_file=path,
            tls=values.get("tls") is not False,
        )
    except ValueError as error:
        problems.add((*keys, "source"), str(error))
        return None


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """Where the rows of one table are kept.

    Parameters
    ----------
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
        The value of `extract_dir`.
    location : TableLocation
        Where the table's rows are.
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
        problems.add((*keys, "timeout"), "is for tables whose rows are counted where they are")
    if is_spark and found.kept is not Extract.NONE:
        problems.add(
            (*keys, "extract"), 'must be "none" for a table in Spark, which is counted where it is'
        )
    if found.folder is not None and found.kept is not Extract.FILE:
        problems.add((*keys, "extract_dir"), 'goes with extract = "file"')
    if found.folder is not None and not found.folder.is_dir():
        problems.add((*keys, "extract_dir"), "should be an existing directory")
    is_still = is_spark or (isinstance(location, PostgresRows) and location.immutable)
    if isinstance(location, PostgresRows) and location.query and found.kept is Extract.NONE:
        problems.add(
            (*keys, "extract"),
            "counts a table where it is, but the rows of a source_query are read out",
        )
    if found.kept is Extract.NONE and not is_still:
        problems.add(
            (*keys, "extract"),
            "counts rows where they are, so the table must be in a database, and immutable",
        )
    return found


def check_counted_there(
    extract: ExtractSettings, schema: Schema, keys: tuple[str, ...], problems: Problems
) -> None:
    """Record what a table that is counted where it is cannot be."""
    if extract.kept is not Extract.NONE:
        return
    if schema.rows_per_unit_max > 1:
        what = "needs rows to be chosen by a secret key, which no engine is given: extract the rows"
        problems.add((*keys, "rows_per_unit_max"), what)
    if schema.grows is not None:
        problems.add((*keys, "grows"), "needs rows to be read up to a horizon: extract the rows")


NO_FILE: Final = "names no file"
IN_A_PATTERN: Final = frozenset("*?[")
OF_POSTGRES: Final = ("source_query", "password_file", "immutable")
OF_FILES: Final = (*OF_TEXT, ".parquet")
TEXT_KEYS: Final = ("delimiter", "decimal", "encoding", "header")


class TextSection(Section):
    """The keys that say how a file of text is written."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None


class SourceSection(TextSection):
    """A source of a view that needs more than its path."""

    file: str = Field(min_length=1)
    table: str | None = Field(default=None, min_length=1)


def read_text_format(
    values: Mapping[str, Any], path: Path, keys: tuple[str, ...], problems: Problems
) -> TextFormat | None:
    """How a file of text is written, as far as that is said; None if nothing is.

    Values of a wrong type are recorded with the section.
    """
    given = {key: values[key] for key in TEXT_KEYS if values.get(key) is not None}
    if not given:
        return None
    found = default_format(path)
    for key, value in given.items():
        if isinstance(value, bool if key == "header" else str):
            try:
                found = replace(found, **{key: value})  # type: ignore[arg-type]
            except ValueError as error:
                problems.add((*keys, key), str(error).removeprefix(f"{key} "))
    if kind_of(path) is not SourceKind.CSV and not path.is_dir():
        problems.add((*keys, next(iter(given))), "goes with a file of text, such as .csv or .tsv")
        return None
    return found


def read_location(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> TableLocation | None:
    """The file or the view of one table, with paths relative to `folder`; None on problems.

    Values of a wrong type are recorded with the table's section.
    """
    if "holders" in values:
        return read_holders(values, folder, keys, problems)
    note_without_holders(values, keys, problems)
    has_source, has_view = "source" in values, "view" in values
    if has_view and has_source:
        problems.add((*keys, "view"), "is given beside source; a table has only one of them")
    if not has_view and not has_source:
        problems.add(
            (*keys, "source"), "is missing; a table needs source, or view and sources, or holders"
        )
    if not has_view and "sources" in values:
        problems.add((*keys, "sources"), "goes with view")
    if not has_source:
        _note(("source_table", *OF_POSTGRES, *OF_SPARK), "goes with source", values, keys, problems)
        what = (
            "goes with source; for a view, set it for each of its sources, as in {file = .., "
            "delimiter = ..}"
        )
        _note(TEXT_KEYS, what, values, keys, problems)
    # If both are given, both are read, so that neither hides the other's problems.
    view = _read_view(values, folder, keys, problems) if has_view else None
    rows = _read_rows(values, folder, keys, problems) if has_source else None
    return view or rows


def _read_rows(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> SourceLocation | SourceFiles | PostgresRows | SparkTable | None:
    source = values.get("source")
    if not isinstance(source, str) or not source:
        return None
    if is_postgres(source) or is_spark(source):
        _note(TEXT_KEYS, "goes with a file of text", values, keys, problems)
    if is_postgres(source):
        _note(OF_SPARK, "goes with a source in Spark", values, keys, problems)
        return _read_postgres(source, values, folder, keys, problems)
    if is_spark(source):
        _note(OF_POSTGRES[:2], "goes with a source in PostgreSQL", values, keys, problems)
        return read_spark(values, folder, keys, problems)
    _note(OF_POSTGRES, "goes with a source in PostgreSQL", values, keys, problems)
    _note(OF_SPARK, "goes with a source in Spark", values, keys, problems)
    text = read_text_format(values, folder / source, keys, problems)
    found = _read_files(folder / source, values.get("source_table"), text)
    if isinstance(found, str):
        problems.add((*keys, "source"), found)
        return None
    return found


def _note(
    names: Sequence[str],
    what: str,
    values: Mapping[str, Any],
    keys: tuple[str, ...],
    problems: Problems,
) -> None:
    """Record the keys that go with another kind of source."""
    for name in names:
        if name in values:
            problems.add((*keys, name), what)


def _read_files(
    path: Path, source_table: str | None, text: TextFormat | None
) -> SourceLocation | SourceFiles | str:
    """A file, or those of a folder or a pattern; what is wrong, as text, if that is none."""
    try:
        if path.is_dir():
            found = _all_of_a_kind(path, text)
        elif set(str(path)) & IN_A_PATTERN and not path.is_file():
            first = next(at for at, part in enumerate(path.parts) if set(part) & IN_A_PATTERN)
            found = SourceFiles(
                folder=Path(*path.parts[:first]), pattern="/".join(path.parts[first:]), text=text
            )
        else:
            location = SourceLocation(path=path, source_table=source_table, text=text)
            return location if path.is_file() else NO_FILE
    except ValueError as error:
        return str(error)
    if source_table is not None:
        return "names several files; source_table is for a single .duckdb file"
    return found if found.names else NO_FILE


def _all_of_a_kind(folder: Path, text: TextFormat | None) -> SourceFiles:
    """The files of a folder that can be read; ValueError if they are not of one kind."""
    each = [SourceFiles(folder=folder, pattern=f"*{suffix}") for suffix in OF_FILES]
    there = [one for one in each if one.names]
    if len(there) != 1:
        raise ValueError(f"should be a folder with {' or '.join(OF_FILES)} files, of one kind")
    return replace(there[0], text=text)


def _read_postgres(
    source: str,
    values: Mapping[str, Any],
    folder: Path,
    keys: tuple[str, ...],
    problems: Problems,
) -> PostgresRows | None:
    """A table in PostgreSQL; values of a wrong type are recorded with the table's section."""
    table, query = values.get("source_table"), values.get("source_query")
    if not all(text is None or isinstance(text, str) for text in (table, query)):
        return None
    password_file = values.get("password_file")
    path = folder / password_file if isinstance(password_file, str) else None
    if path is not None and not path.is_file():
        problems.add((*keys, "password_file"), "names no file")
    try:
        server = PostgresLocation.parse(source, "a file that holds it as password_file")
    except ValueError as error:
        problems.add((*keys, "source"), str(error))
        return None
    try:
        return PostgresRows(
            server=server,
            table=table,
            query=query,
            password_file=path,
            immutable=values.get("immutable") is True,
        )
    except ValueError as error:
        problems.add((*keys, "source"), str(error))
        return None


def _read_view(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> PrivateView | None:
    sql, listed = values["view"], values.get("sources")
    if not isinstance(listed, Mapping) or not listed:
        problems.add((*keys, "sources"), 'should name the files of the view, as in NAME = "FILE"')
        return None
    read = [
        (name, _read_source(value, folder, (*keys, "sources", name), problems))
        for name, value in listed.items()
    ]
    sources = tuple((name, location) for name, location in read if location is not None)
    if not isinstance(sql, str) or not sql or len(sources) < len(read):
        return None
    try:
        return PrivateView(sql=sql, sources=sources)
    except ValueError as error:
        problems.add(keys, str(error))
        return None


def _read_source(
    value: Any, folder: Path, keys: tuple[str, ...], problems: Problems
) -> SourceLocation | SourceFiles | None:
    values = value if isinstance(value, Mapping) else {"file": value}
    section = problems.section(SourceSection, values, keys)
    if section is None:
        return None
    if is_postgres(section.file):
        problems.add(
            keys,
            "is in PostgreSQL, but a view reads files; use source_query for a query in PostgreSQL",
        )
        return None
    path = folder / section.file
    text = read_text_format(values, path, keys, problems)
    if text is not None and text.decimal != ".":
        what = (
            "is not for a view, in which columns are text: write CAST(replace(x, ',', '.') AS "
            "DOUBLE)"
        )
        problems.add((*keys, "decimal"), what)
    found = _read_files(path, section.table, text)
    if isinstance(found, str):
        what = 'should be a .csv or .parquet file, or {file = "x.duckdb", table = "t"}'
        named = KINDS_BY_NAME.get(inner_suffix(path))
        if named is not None:
            what = f"{what}; {path.name} is {named[0]}"
        problems.add(keys, found if found == NO_FILE else what)
        return None
    return found


N_PUBLIC_TABLES_MAX = 100
N_KEY_COLUMNS_MAX: Final = 32  # as many as a primary key of PostgreSQL may have


class PublicSection(TextSection):
    """One public table as the file declares it."""

    source: str = Field(min_length=1)
    key: Any = None  # a name or names, which are read below


def read_public(
    values: Any, folder: Path, private: Iterable[str], problems: Problems
) -> tuple[PublicSettings, ...]:
    """The public tables, with paths relative to the file's folder.

    Parameters
    ----------
    values : mapping
        The contents of `[public]`: one entry per public table.
    folder : Path
        The folder of the configuration file.
    private : iterable of str
        The names of the private tables, which public tables may not have.
    problems : Problems
        Where problems are recorded.
    """
    if not isinstance(values, Mapping):
        problems.add(("public",), "should hold tables, as [public.NAME]")
        return ()
    if len(values) > N_PUBLIC_TABLES_MAX:
        problems.add(("public",), f"holds more than {N_PUBLIC_TABLES_MAX} tables")
    taken = {name.casefold() for name in private}
    if len({name.casefold() for name in values}) != len(values):
        problems.add(("public",), "two tables share a name (letter case does not count)")
    for name in values:
        if name.casefold() in taken:
            problems.add(("public", name), "is the name of a private table, too")
        elif name.casefold() in RESERVED_NAMES:
            problems.add(("public", name), "is a name that the server reserves for its own views")
        elif not is_public_name(name):
            problems.add(("public", name), "should have a name of 1 to 63 printable characters")
    read = (_read_one(name, table, folder, problems) for name, table in values.items())
    return tuple(table for table in read if table is not None)


def _read_one(name: str, values: Any, folder: Path, problems: Problems) -> PublicSettings | None:
    declared = values.get("key") if isinstance(values, Mapping) else None
    key = _read_key(declared, ("public", name, "key"), problems)
    section = problems.section(PublicSection, values, ("public", name))
    if section is None:
        return None
    path = folder / section.source
    keys = ("public", name, "source")
    try:
        location = SourceLocation(
            path=path, text=read_text_format(values, path, ("public", name), problems)
        )
    except ValueError as error:
        is_database = kind_of(path) is SourceKind.DUCKDB
        problems.add(keys, "should be a .csv or .parquet file" if is_database else str(error))
        return None
    if not path.is_file():
        problems.add(keys, "names no file")
    return PublicSettings(name=name, path=path, key=key, text=location.text)


def _read_key(value: Any, keys: tuple[str, ...], problems: Problems) -> Key:
    """The column, or columns, that a key is declared of."""
    named = value if isinstance(value, list) else [value]
    if value is None:
        return None
    are_names = all(isinstance(name, str) and name for name in named)
    if not are_names or not 1 <= len(named) <= N_KEY_COLUMNS_MAX:
        problems.add(
            keys,
            'should be the name of a column, as "city", or a list of 1 to '
            f'{N_KEY_COLUMNS_MAX} names, as ["part", "supplier"]',
        )
        return None
    return tuple(named) if isinstance(value, list) else str(value)


def texts_of_public(values: Any, folder: Path) -> dict[Path, TextFormat]:
    """How the files of public tables are written, where that is said; no problem is recorded."""
    found: dict[Path, TextFormat] = {}
    for table in values.values() if isinstance(values, Mapping) else ():
        if isinstance(table, Mapping) and isinstance(table.get("source"), str):
            path = folder / table["source"]
            text = read_text_format(table, path, (), Problems(path))
            if text is not None:
                found[path.resolve()] = text
    return found
