"""What follows the noisy answers: SQL on noisy and public relations alone, in a locked-down DuckDB.

The database holds nothing of its own and can reach no file, network, extension or setting. Each
call sees the relations it is given and no others, so whatever SQL is run here, only what is public
already can come out.
"""

import re
from collections.abc import Mapping
from threading import Lock
from typing import Final

import duckdb
import pyarrow as pa

from cube.pace import checkpoint, seconds_left
from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.domain.watchdog import interrupted_after

SECONDS_MAX: Final = 20.0  # answers are few; what takes longer multiplies them with each other
N_ROWS_MAX: Final = 1_000_000  # of a result
_SHOWN_LENGTH: Final = 160
# What DuckDB says of names, among all that it finds wrong when it reads a query.
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
    # A noisy count may be zero: a ratio with it is NULL, and no reason to lose the other rows.
    "SET GLOBAL ieee_floating_point_ops = false",
    "SET GLOBAL error_on_division_by_zero = false",
    "SET GLOBAL lock_configuration = true",
)


class OuterSql:
    """Runs SQL on given relations. Thread-safe."""

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            self._database.execute(setting)
        self._lock = Lock()

    def run(self, sql: str, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The result of a query over relations that are called as in `relations`.

        Raises
        ------
        UnsupportedSql, UnknownName
            If the query cannot be run; the message has DuckDB's reason, which knows no more than
            the relations.
        TooLarge, TooSlow
            If it takes too long, or its result is too large.
        """
        with self._lock:
            cursor = self._database.cursor()
        try:
            with interrupted_after(seconds_left(SECONDS_MAX), cursor.interrupt):
                for name, table in relations.items():
                    cursor.register(name, table)
                result: pa.Table = cursor.sql(sql).limit(N_ROWS_MAX + 1).to_arrow_table()
        except (duckdb.InterruptException, duckdb.OutOfMemoryException):
            checkpoint()  # the statement may have no time left, whatever this took of it
            raise TooLarge(
                "What is computed from the answers takes too long, or too much memory.",
                hint="Join or group less of them at once.",
            ) from None
        except duckdb.Error as error:
            raise _refusal(error) from None
        finally:
            cursor.close()
        if result.num_rows > N_ROWS_MAX:
            raise TooLarge(f"The result has more than {N_ROWS_MAX} rows.", hint="Add a LIMIT.")
        return result


def _refusal(error: duckdb.Error) -> UnknownName | UnsupportedSql:
    reason = _reason(error)
    if isinstance(error, duckdb.BinderException) and _OF_A_NAME.search(reason):
        return UnknownName(
            f"What is computed from the answers names something else: {reason}.",
            hint="A SELECT sees the columns of its FROM, by the names that they have there.",
        )
    return UnsupportedSql(
        f"What is computed from the answers cannot be: {reason}.",
        hint="Answers are numbers, keys have their columns' types, and DuckDB computes the rest.",
    )


def _reason(error: duckdb.Error) -> str:
    """DuckDB's own first line, without its class of error and advice on settings."""
    line = str(error).split("\n", 1)[0].split(". ", 1)[0]
    line = line.split(": ", 1)[-1].rstrip(".!")
    return line if len(line) <= _SHOWN_LENGTH else line[: _SHOWN_LENGTH - 3] + "..."
