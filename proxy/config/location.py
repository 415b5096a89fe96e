"""Where a table's rows come from, as the owner declares it: `source`, or `view` and `sources`.

A source is a file, a folder or a pattern of files, or a table in PostgreSQL. Nothing here opens
one; whether it can be read, and what is in it, is checked when the source opens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from accountant.ledger.stores.postgres_location import PostgresLocation, is_postgres
from proxy.config.spark import OF_SPARK, is_spark, read_spark
from proxy.sources.location import (
    OF_TEXT,
    PostgresRows,
    PrivateView,
    SourceFiles,
    SourceKind,
    SourceLocation,
    TableLocation,
    default_format,
    kind_of,
)
from proxy.sources.problems import Problems, Section
from proxy.sources.spark_table import SparkTable
from proxy.sources.text_format import KINDS_BY_NAME, TextFormat, inner_suffix

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
    has_source, has_view = "source" in values, "view" in values
    if has_view and has_source:
        problems.add((*keys, "view"), "is given beside source; a table has only one of them")
    if not has_view and not has_source:
        problems.add((*keys, "source"), "is missing; a table needs source, or view and sources")
    if not has_view and "sources" in values:
        problems.add((*keys, "sources"), "goes with view")
    if not has_source:
        _note(("source_table", *OF_POSTGRES, *OF_SPARK), "goes with source", values, keys, problems)
        what = "goes with source; of a view, say it of a source, as in {file = .., delimiter = ..}"
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
        return "names several files; source_table is of one .duckdb file"
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
        problems.add(keys, "is in PostgreSQL; a view is over files, and source_query a view there")
        return None
    path = folder / section.file
    text = read_text_format(values, path, keys, problems)
    if text is not None and text.decimal != ".":
        what = "is for columns; in a view they are text: CAST(replace(x, ',', '.') AS DOUBLE)"
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
