"""What an owner does to a table whose data was replaced, beside a running server or without one.

The command reads the data itself, as the server would, and writes one entry to the ledger; running
servers follow within about a second. Nothing here keeps rows.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from accountant.gate.open_table import renew_table
from accountant.ledger.history.table_history import Budget, TableHistory
from accountant.ledger.ledger import Ledger
from accountant.source import Source
from cube.refusals import InvalidRequest
from proxy.config.table_settings import TableSettings
from proxy.sources.opening import Extracted, table_rows


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """The present generation of a table.

    Parameters
    ----------
    number : int
    since : str
        When it began, to the second, in UTC.
    budget : Budget
        Of all generations together.
    """

    number: int
    since: str
    budget: Budget

    @classmethod
    def of(cls, history: TableHistory) -> "GenerationStatus":
        """The status of a table that the ledger knows."""
        generations = history.generations
        since = generations.begun_at[-1][: len("2026-11-23T20:15:02")].replace("T", " ")
        return cls(generations.number, since, Budget.of(history))


def renew(
    ledger: Ledger, tables: Sequence[TableSettings], *, by: str
) -> list[GenerationStatus | None]:
    """Begin a generation of each table with its data as it is now; None where it is what it was.

    All of it is read first: if one table cannot go on, none does.

    Raises
    ------
    InvalidRequest
        If a table grows.
    CannotStart
        If its data cannot be read; or if the ledger does not know the table, knows it with another
        declaration, or knows the data as that of another table.
    LedgerUnavailable
    """
    for table in tables:
        schema = table.schema
        if schema.grows is not None:
            raise InvalidRequest(
                f"{schema.table} grows: its rows come by {schema.grows}, and it has one "
                "generation.",
                hint="`tacit table accept-changes` goes on with closed rows that are others now.",
            )
    read = [(table, _data(table, ledger, is_kept=True)) for table in tables]
    begun = [renew_table(ledger, table.schema, table.funds, data, by=by) for table, data in read]
    return [
        GenerationStatus.of(ledger.history_now(table.schema.table)) if is_new else None
        for table, is_new in zip(tables, begun, strict=True)
    ]


def generation(ledger: Ledger, table: TableSettings) -> tuple[GenerationStatus, bool]:
    """The present generation of a table that does not grow, and whether its data is what it was.

    Raises
    ------
    InvalidRequest
        If the ledger does not know the table.
    CannotStart
        If its data cannot be read.
    """
    ledger.refresh()
    history = ledger.history_now(table.schema.table)
    if history.opened is None:
        raise InvalidRequest(
            f"The ledger does not know {table.schema.table} yet.", hint="`tacit serve` enters it."
        )
    known = history.generations.data[-1]
    found = _data(table, ledger, is_kept=False).fingerprint(ledger.key, known)
    is_same = hmac.compare_digest(known, found)
    return GenerationStatus.of(history), is_same


def _data(table: TableSettings, ledger: Ledger, *, is_kept: bool) -> Source:
    """The data as it is now; an extract that is there is replaced if the new one is kept."""
    known = ledger.history(table.schema.table).rows_fingerprint or ""
    place = table.extract.place(ledger.key)
    extracted = Extracted.REPLACED if is_kept else Extracted.LEFT
    return table_rows(table.schema, table.location, ledger.key, place, known, extracted)
