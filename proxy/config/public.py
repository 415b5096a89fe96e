"""The `[public.NAME]` tables: files whose rows anybody may see, to join with private tables.

Nothing here opens them; whether a key is unique is checked when they are loaded.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from proxy.config.location import TextSection, read_text_format
from proxy.sources.location import SourceKind, SourceLocation, kind_of
from proxy.sources.problems import Problems
from proxy.sources.public_file import PublicSettings
from proxy.sources.public_table import RESERVED_NAMES, Key, is_public_name
from proxy.sources.text_format import TextFormat

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
