"""What an owner does to a table that grows or whose data was replaced, beside a running server.

The command reads the data itself, as the server would, and writes to the ledger; running servers
follow within about a second. Nothing here keeps rows.

The command reads the data itself, as the server would, and writes one entry to the ledger; running
servers follow within about a second. Nothing here keeps rows.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from accountant import Source
from accountant.gate import Gate, RemoteGates, renew_table
from accountant.ledger import Ledger, Period
from accountant.ledger.history import Budget, Growth, TableHistory
from accountant.noise import SystemNoise
from cube.axis import Axis
from cube.horizon import until
from cube.refusals import CannotStart, InvalidRequest, SourceUnavailable
from cube.schema import Schema
from proxy.config import TableSettings, horizon_of, levels_through, read_level
from proxy.sources import Extracted, growing_rows, table_rows


@dataclass(frozen=True, slots=True)
class GrowthStatus:
    """How far a table is readable, and what was found of its closed rows.

    Parameters
    ----------
    axis : Axis
        The axis along which the table grows.
    horizon : int
        The number of readable levels.
    n_periods : int
        The number of closed periods.
    changed : tuple of Period
        Those whose rows read otherwise now.
    """

    axis: Axis
    horizon: int
    n_periods: int
    changed: tuple[Period, ...]

    @property
    def last(self) -> str:
        """The last readable level, as text."""
        return level_text(self.axis, self.horizon - 1)


def level_text(axis: Axis, place: int) -> str:
    """A level of a growing table's axis, as text."""
    return str(until(axis, place + 1).regular[-1])


def advance(ledger: Ledger, table: TableSettings, to: str, *, by: str) -> GrowthStatus:
    """Make a table readable through one level.

    Raises
    ------
    InvalidRequest
        If the table does not grow, is not in the ledger, or is readable further already.
    CannotStart
        If its data cannot be read, or closed rows have changed.
    LedgerUnavailable
    """
    gate, growth = _opened(ledger, table)
    axis = _axis(table.schema)
    horizon = horizon_of(axis, read_level(axis, to))
    if horizon <= growth.horizon:
        raise InvalidRequest(
            f"{table.schema.table} is readable through {level_text(axis, growth.horizon - 1)}.",
            hint="A horizon only moves forward.",
        )
    try:
        gate.advance(horizon, by)
    except SourceUnavailable as refusal:
        raise _why(gate, axis, refusal) from None
    return status(ledger, table)


def accept_changes(
    ledger: Ledger, table: TableSettings, first: str, last: str, *, by: str
) -> tuple[Period, ...]:
    """Take the closed rows from one level, or day, through another as they are now.

    Returns
    -------
    tuple of Period
        All periods that touch these levels; none if no row has changed.

    Raises
    ------
    InvalidRequest
        If the table does not grow, or is not in the ledger; if other rows have changed, too; or if
        what was bought cannot be set apart.
    CannotStart
        If its data cannot be read.
    LedgerUnavailable
    """
    gate, _ = _opened(ledger, table)
    axis = _axis(table.schema)
    start, end = levels_through(axis, read_level(axis, first), read_level(axis, last))
    try:
        return gate.accept_changes(start, end, by)
    except SourceUnavailable as refusal:
        raise _why(gate, axis, refusal) from None
    except ValueError as wrong:
        raise InvalidRequest(
            f"Changes of {table.schema.table} {first} to {last} are not accepted: {wrong}.",
            hint="`tacit table status` shows what has changed.",
        ) from None


def status(ledger: Ledger, table: TableSettings) -> GrowthStatus:
    """How far a table is readable, and whether its closed rows are what they were.

    Raises
    ------
    InvalidRequest
        If the table does not grow, or is not in the ledger.
    CannotStart
        If its data cannot be read.
    """
    gate, growth = _opened(ledger, table)
    try:
        gate.prepare()
    except SourceUnavailable as refusal:
        if not gate.changed_periods():
            raise _why(gate, _axis(table.schema), refusal) from None
    axis = _axis(table.schema)
    return GrowthStatus(axis, growth.horizon, len(growth.periods), gate.changed_periods())


def _opened(ledger: Ledger, table: TableSettings) -> tuple[Gate, Growth]:
    schema = table.schema
    if schema.grows is None:
        raise InvalidRequest(
            f"{schema.table} does not grow.",
            hint="A table grows if its configuration says grows = {axis = ..., ...}.",
        )
    ledger.refresh()
    growth = ledger.history(schema.table).growth
    if growth is None:
        raise InvalidRequest(
            f"The ledger does not know {schema.table} yet.",
            hint=("Start `tacit serve` once: it enters the table."),
        )
    place = table.extract.file(ledger.key)
    source = growing_rows(schema, table.location, ledger.key, place, is_new=True)
    return Gate(ledger, schema, source, SystemNoise()), growth


def _axis(schema: Schema) -> Axis:
    if schema.grows is None:
        raise ValueError(f"{schema.table} does not grow")
    return schema.by_name[schema.grows]


def _why(gate: Gate, axis: Axis, refusal: SourceUnavailable) -> Exception:
    """What to tell the owner of data that cannot be measured."""
    if isinstance(refusal.__cause__, CannotStart):
        return refusal.__cause__
    changed = gate.changed_periods()
    if not changed:
        return refusal
    first, last = changed[0].start, changed[-1].end - 1
    return InvalidRequest(
        f"Closed rows of {gate.schema.table} have changed, between {axis.name} "
        f"{level_text(axis, first)} and {level_text(axis, last)}.",
        hint=(
            "Restore them, or accept them with `tacit table accept-changes`. Until then nothing "
            "is measured."
        ),
    )


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """The present generation of a table.

    Parameters
    ----------
    since : str
        When it began, to the second, in UTC.
    budget : Budget
        The budget of all generations together.
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
    """Begin a generation of each table with its present data; None where the data is unchanged.

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
                f"{schema.table} grows by {schema.grows}, so it has only one generation.",
                hint="If closed rows have changed, accept them with `tacit table accept-changes`.",
            )
    read = [(table, _data(table, ledger, is_kept=True)) for table in tables]
    begun = [renew_table(ledger, table.schema, table.funds, data, by=by) for table, data in read]
    return [
        GenerationStatus.of(ledger.history_now(table.schema.table)) if is_new else None
        for table, is_new in zip(tables, begun, strict=True)
    ]


def generation(ledger: Ledger, table: TableSettings) -> tuple[GenerationStatus, bool]:
    """The present generation of a table that does not grow, and whether its data is unchanged.

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
            f"The ledger does not know {table.schema.table} yet.",
            hint=("Start `tacit serve` once: it enters the table."),
        )
    data, known = _data(table, ledger, is_kept=False), history.generations.data[-1]
    is_same = hmac.compare_digest(known, data.fingerprint(ledger.key, known))
    if isinstance(data, RemoteGates) and history.rows_fingerprint:  # each holder may renew its own
        there = data.rows_fingerprint(ledger.key, history.rows_fingerprint)
        is_same = is_same and hmac.compare_digest(history.rows_fingerprint, there)
    return GenerationStatus.of(history), is_same


def _data(table: TableSettings, ledger: Ledger, *, is_kept: bool) -> Source | RemoteGates:
    """The data as it is now; an extract that is there is replaced if the new one is kept."""
    known = ledger.history(table.schema.table).rows_fingerprint or ""
    place = table.extract.place(ledger.key)
    extracted = Extracted.REPLACED if is_kept else Extracted.LEFT
    return table_rows(table.schema, table.location, ledger.key, place, known, extracted)
