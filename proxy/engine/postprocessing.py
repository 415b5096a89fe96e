"""Post-processing of noisy answers: SQL on noisy and public relations, in a locked-down DuckDB.

The database is empty and can reach no file, network, extension or setting. Each call sees only the
relations it is given, so whatever SQL is run here, its result depends only on what is public
already.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import Final

import duckdb
import pyarrow as pa

from cube.pace import checkpoint, seconds_left
from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.domain.watchdog import interrupted_after

SECONDS_MAX: Final = 20.0  # answers are few; SQL that takes longer multiplies them with each other
N_ROWS_MAX: Final = 1_000_000  # of a result
ON_ANSWERS: Final = "SQL on the answers"
_SHOWN_LENGTH: Final = 160
# DuckDB's messages about names, among all its binder errors.
_OF_A_NAME: Final = re.compile(
    r"^Referenced |^Column .* referenced|^Ambiguous reference|does not have a column"
)

_SETTINGS: Final = (
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL threads = 1",
    "SET GLOBAL memory_limit = '256MB'",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL integer_division = true",  # as in PostgreSQL
    # A noisy count may be zero: then a ratio is NULL, and the other rows are kept.
    "SET GLOBAL ieee_floating_point_ops = false",
    "SET GLOBAL error_on_division_by_zero = false",
    "SET GLOBAL lock_configuration = true",
)


class OuterSql:
    """Runs SQL on the given relations. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        """The database; opened when it is first needed, with the lock held."""
        database = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            database.execute(setting)
        return database

    def run(self, sql: str, relations: Mapping[str, pa.Table], what: str = ON_ANSWERS) -> pa.Table:
        """The result of a query over `relations`, by their names.

        Parameters
        ----------
        sql : str
        relations : mapping
        what : str
            What a refusal calls the query.

        Raises
        ------
        UnsupportedSql, UnknownName
            If the query cannot be run; the message has DuckDB's reason, which can reveal no more
            than the relations.
        TooLarge, TooSlow
            If the query takes too long, or its result is too large.
        """
        with self._lock:
            cursor = self._database.cursor()
        try:
            with interrupted_after(seconds_left(SECONDS_MAX), cursor.interrupt):
                for name, table in relations.items():
                    cursor.register(name, table)
                result: pa.Table = cursor.sql(sql).limit(N_ROWS_MAX + 1).to_arrow_table()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            checkpoint()  # the statement's deadline may have passed, however short this query was
            raise TooLarge(
                f"The {what} takes too long, or too much memory.",
                hint="Join or group fewer of them at once.",
            ) from None
        except duckdb.Error as error:
            raise _refusal(error, what) from None
        finally:
            cursor.close()
        if result.num_rows > N_ROWS_MAX:
            raise TooLarge(f"The result has more than {N_ROWS_MAX} rows.", hint="Add a LIMIT.")
        return result


def _refusal(error: duckdb.Error, what: str) -> UnknownName | UnsupportedSql:
    reason = _reason(error)
    if isinstance(error, duckdb.BinderException) and _OF_A_NAME.search(reason):
        return UnknownName(
            f"The {what} refers to an unknown name: {reason}.",
            hint="A SELECT sees the columns of its FROM, under the names that they have there.",
        )
    return UnsupportedSql(
        f"The {what} cannot be computed: {reason}.",
        hint="Answers are numbers, keys have their columns' types, and DuckDB computes the rest.",
    )


def _reason(error: duckdb.Error) -> str:
    """The first line of DuckDB's message, without the error class and advice on settings."""
    line = str(error).split("\n", 1)[0].split(". ", 1)[0]
    line = line.split(": ", 1)[-1].rstrip(".!")
    return line if len(line) <= _SHOWN_LENGTH else line[: _SHOWN_LENGTH - 3] + "..."
