"""In-memory databases that can reach the files they are given, and nothing else.

Everything else is closed before the first statement: other files, the network, extensions, Python
variables, and changes of settings. So whatever an owner's file or SQL contains, its result depends
on those files alone, or on nothing that is read (a clock, a random number), which the fingerprint
of the rows detects.

Rows on their way through such a database are counted, and what stopped them is remembered: a
database that pulls rows out of Python replaces an exception by its own, with its text; here the
first is raised instead. Nothing here keeps a row.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import duckdb
import pyarrow as pa

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


class Flow:
    """Batches of rows that are pulled once."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._failure: Exception | None = None
        self.n_rows = 0

    def reader(self, schema: pa.Schema) -> pa.RecordBatchReader:
        """The batches, for one who pulls them."""
        return pa.RecordBatchReader.from_batches(schema, self._counted())

    def into(self, keep: Callable[[pa.RecordBatchReader], None], schema: pa.Schema) -> None:
        """Let somebody pull them all.

        Parameters
        ----------
        schema : pyarrow.Schema
            The schema of each batch.

        Raises
        ------
        Exception
            The error that stopped the batches, if any, instead of the errors that it caused.
        """
        try:
            keep(self.reader(schema))
        except Exception:
            self.raise_failure()
            raise

    def raise_failure(self) -> None:
        """Raise what stopped the batches, if something did."""
        if self._failure is not None:
            raise self._failure from None

    def _counted(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                self.n_rows += batch.num_rows
                yield batch
        except Exception as failure:
            self._failure = failure
            raise
