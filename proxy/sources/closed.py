"""In-memory databases that can reach the files they are given, and nothing else.

Everything else is closed before the first statement: other files, the network, extensions, Python
variables, and changes of settings. So whatever an owner's file or SQL contains, its result depends
on those files alone, or on nothing that is read (a clock, a random number), which the fingerprint
of the rows detects.
"""

from collections.abc import Iterable
from typing import TypeAlias

import duckdb

Connection: TypeAlias = duckdb.DuckDBPyConnection
Settings: TypeAlias = dict[str, str | bool | int | float | list[str]]

SETTINGS: Settings = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",  # never spill private rows to a file
}
LOCK_DOWN = (
    # In a process without a main file it would go to standard output, among a command's answers.
    "SET enable_progress_bar = false",
    "SET enable_external_access = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)


def closed_database(paths: Iterable[str] = (), settings: Settings | None = None) -> Connection:
    """A new, empty database that can read only the files at `paths`, under exactly these names."""
    connection = duckdb.connect(config=SETTINGS | (settings or {}))
    allowed = ", ".join(text_sql(path) for path in paths)
    for setting in (f"SET allowed_paths = [{allowed}]", *LOCK_DOWN):
        connection.execute(setting)
    return connection


def text_sql(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def name_sql(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'
