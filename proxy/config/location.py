"""Where a table's rows come from, as the owner declares it: `source`, or `view` and `sources`.

Nothing here opens a file; whether it can be read, and what is in it, is checked when the source
opens.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from proxy.sources.location import Location, PrivateView, SourceLocation
from proxy.sources.problems import Problems, Section


class SourceSection(Section):
    """A source of a view that needs more than its path."""

    file: str = Field(min_length=1)
    table: str | None = Field(default=None, min_length=1)


def read_location(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> Location | None:
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
    if not has_source and "source_table" in values:
        problems.add((*keys, "source_table"), "goes with source")
    # If both are given, both are read, so that neither hides the other's problems.
    view = _read_view(values, folder, keys, problems) if has_view else None
    file = _read_file(values, folder, keys, problems) if has_source else None
    return view or file


def _read_file(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> SourceLocation | None:
    source, source_table = values.get("source"), values.get("source_table")
    if not isinstance(source, str) or not source:
        return None
    path = folder / source
    try:
        location = SourceLocation(path=path, source_table=source_table)
    except ValueError as error:
        problems.add((*keys, "source"), str(error))
        return None
    return _existing(location, (*keys, "source"), problems)


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
) -> SourceLocation | None:
    values = value if isinstance(value, Mapping) else {"file": value}
    section = problems.section(SourceSection, values, keys)
    if section is None:
        return None
    try:
        location = SourceLocation(path=folder / section.file, source_table=section.table)
    except ValueError:
        what = 'a .csv or .parquet file, or {file = "x.duckdb", table = "t"}'
        problems.add(keys, f"should be {what}")
        return None
    return _existing(location, keys, problems)


def _existing(
    location: SourceLocation, keys: tuple[str, ...], problems: Problems
) -> SourceLocation | None:
    if location.path.is_file():
        return location
    problems.add(keys, "names no file")
    return None
