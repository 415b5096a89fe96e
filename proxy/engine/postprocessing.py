"""Post-processing of noisy answers: SQL on noisy and public relations.

Each call sees only the relations it is given, so whatever SQL is run here, its result depends only
on what is public already. What is bounded by its input (`short_sql`) runs here, everything else in
a process that can be ended (`sql_process`); what it meets there becomes a refusal here.
"""

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from cube.pace import checkpoint, seconds_left
from cube.refusals import Refused, TooLarge, UnknownName, UnsupportedSql
from proxy.engine.closed_database import (
    BINDING,
    N_BYTES_RESULT,
    N_ROWS_MAX,
    TOO_LARGE,
    TOO_MUCH,
    ClosedDatabase,
    SqlEnded,
)
from proxy.engine.short_sql import reach
from proxy.engine.sql_process import PROCESSES

SECONDS_MAX: Final = 20.0  # answers are few; SQL that takes longer multiplies them with each other
REACH_MAX: Final = 2**25  # of SQL that runs here: a tenth of a second, 32 MB
ON_ANSWERS: Final = "SQL on the answers"
_SHOWN_LENGTH: Final = 160
# DuckDB's messages about names, among all its binder errors.
_OF_A_NAME: Final = re.compile(
    r"^Referenced |^Column .* referenced|^Ambiguous reference|does not have a column"
)


class OuterSql:
    """Runs SQL on the given relations, by itself or in processes that all engines share.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._database = ClosedDatabase()

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
        seconds = seconds_left(SECONDS_MAX)
        touched = reach(sql, relations)
        try:
            if touched is None or touched > REACH_MAX:
                return PROCESSES.run(sql, relations, seconds)
            return self._database.run(sql, relations)
        except SqlEnded as ended:
            if ended.kind == TOO_MUCH:
                checkpoint()  # the statement's deadline may have passed, however short this was
            raise _refusal(ended, what) from None


def _refusal(ended: SqlEnded, what: str) -> Refused:
    if ended.kind == TOO_MUCH:
        return TooLarge(
            f"The {what} takes too long, or too much memory.",
            hint="Join or group fewer of them at once.",
        )
    if ended.kind == TOO_LARGE:
        return TooLarge(
            f"The result has more than {N_ROWS_MAX} rows, or {N_BYTES_RESULT} bytes.",
            hint="Add a LIMIT, or select fewer columns.",
        )
    reason = _reason(ended.text)
    if ended.kind == BINDING and _OF_A_NAME.search(reason):
        return UnknownName(
            f"The {what} refers to an unknown name: {reason}.",
            hint="A SELECT sees the columns of its FROM, under the names that they have there.",
        )
    return UnsupportedSql(
        f"The {what} cannot be computed: {reason}.",
        hint="Answers are numbers, keys have their columns' types, and DuckDB computes the rest.",
    )


def _reason(message: str) -> str:
    """The first line of DuckDB's message, without the error class and advice on settings."""
    line = message.split("\n", 1)[0].split(". ", 1)[0]
    line = line.split(": ", 1)[-1].rstrip(".!")
    return line if len(line) <= _SHOWN_LENGTH else line[: _SHOWN_LENGTH - 3] + "..."
