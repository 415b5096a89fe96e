"""What a server does for its tables beside answering: horizons, new generations, the kept state.

Moving the horizons of growing tables: at the start of a server, and while it runs.

What may be read is decided by the owner's configuration and the clock; the gate reads, checks what
was readable before, and writes it down. What fails is logged and tried again: history answers
meanwhile. Nothing here sees rows.

Reading the data of a new generation while a server runs, once the ledger says that there is one.

Until it is read, and if it is not the data that the ledger says, nothing is measured: the gate
compares. What fails is logged and tried again. Nothing here sees rows.

Keeping the state of a long ledger for the next start, while a server runs.

The file is beside the ledger's key (`accountant/ledger/checkpoint.py`). Nothing depends on it but
how long a start takes: what fails is logged, once. Nothing here sees rows.
"""

import datetime as dt
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from accountant import Source
from accountant.gate import Gate, RemoteGates
from accountant.ledger import Ledger, NotAState
from cube.refusals import (
    CannotStart,
    ConfigurationInvalid,
    LedgerUnavailable,
    SourceUnavailable,
    TacitError,
)
from proxy.config import Closing
from proxy.monitoring import UNEXPECTED, Background, write_log

CLOCK_SECONDS: Final = 60.0  # between looks at the clock
ADVANCE_AGAIN_SECONDS: Final = 600.0  # after a failure: every attempt reads all of the data
BY_CLOCK: Final = "closed_after"  # who says so, for the ledger
BY_OWNER: Final = "closed_through"
CHANGED: Final = "rows_changed"  # the log's code for closed rows that read otherwise now


def open_periods(gate: Gate, closing: Closing) -> None:
    """Read what is closed when a server starts.

    If closed rows have changed, the table is served from its history, and nothing is measured.

    Raises
    ------
    CannotStart
        If the data cannot be read as declared.
    """
    try:
        if not _advanced(gate, closing):
            gate.prepare()
    except SourceUnavailable as refusal:
        growth = gate.history.growth
        if isinstance(refusal.__cause__, CannotStart):
            raise refusal.__cause__ from None
        if growth is None or not growth.horizon:
            raise ConfigurationInvalid(refusal.message, hint=refusal.hint) from None
        log_unread(gate)


def log_unread(gate: Gate) -> None:
    """Tell the owner that a table cannot be measured; which rows changed is for them to ask."""
    code = CHANGED if gate.changed_periods() else SourceUnavailable.code
    write_log(logging.ERROR, "not_measured", table=gate.schema.table, code=code)


@dataclass(frozen=True, slots=True)
class Growing:
    """A table whose horizon follows the clock."""

    gate: Gate
    closing: Closing


class Advancing(Background):
    """A thread that moves horizons by the clock; a context manager."""

    def __init__(self, tables: Sequence[Growing]) -> None:
        super().__init__("advancing", CLOCK_SECONDS)
        self._tables = [one for one in tables if one.closing.after is not None]
        self._not_before: dict[str, float] = {}  # for tables whose horizon could not be moved

    @property
    def has_work(self) -> bool:
        """Whether any horizon follows the clock."""
        return bool(self._tables)

    def look(self) -> None:
        """Move the horizons that are due."""
        for one in self._tables:
            table = one.gate.schema.table
            if time.monotonic() < self._not_before.get(table, 0.0):
                continue
            try:
                _advanced(one.gate, one.closing)
            except LedgerUnavailable:  # which is logged where it is watched
                continue
            except SourceUnavailable:
                log_unread(one.gate)
            except Exception as error:  # noqa: BLE001 - or the other tables would wait for it
                code = error.code if isinstance(error, TacitError) else UNEXPECTED
                write_log(logging.ERROR, "not_advanced", table=table, code=code)
            else:
                continue
            self._not_before[table] = time.monotonic() + ADVANCE_AGAIN_SECONDS


def _advanced(gate: Gate, closing: Closing) -> bool:
    """Move a horizon to where rows are closed now, if it is not there yet; whether this did."""
    by = BY_OWNER if closing.after is None else BY_CLOCK
    horizon = closing.horizon(gate.schema, dt.datetime.now(dt.UTC))
    is_new = gate.advance(horizon, by)
    if is_new:
        write_log(logging.INFO, "advanced", table=gate.schema.table)
    return is_new


LOOK_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 60.0  # after a failure: every attempt reads all of the data


@dataclass(frozen=True, slots=True)
class Renewable:
    """A table that does not grow, and how its data is read."""

    gate: Gate
    read: Callable[[], Source | RemoteGates]


class Renewing(Background):
    """A thread that reads the data of new generations; a context manager."""

    def __init__(self, tables: Sequence[Renewable]) -> None:
        super().__init__("renewing", LOOK_SECONDS)
        self._tables = tables
        self._failed: dict[str, tuple[int, float]] = {}  # of a generation, and until when to wait

    @property
    def has_work(self) -> bool:
        """Whether there are such tables."""
        return bool(self._tables)

    def look(self) -> None:
        """Read the data of every generation that has begun."""
        for one in self._tables:
            if one.gate.lacks_rows and not self._waits(one.gate):
                self._read(one)

    def _waits(self, gate: Gate) -> bool:
        """Whether its data could not be read a moment ago."""
        generation, until = self._failed.get(gate.schema.table, (0, 0.0))
        return generation == gate.history.generations.number and time.monotonic() < until

    def _read(self, one: Renewable) -> None:
        table, number = one.gate.schema.table, one.gate.history.generations.number
        try:
            one.gate.read_from(one.read())
            code = CHANGED if one.gate.lacks_rows else None
        except Exception as error:  # noqa: BLE001 - or the other tables would wait for it
            code = error.code if isinstance(error, TacitError) else UNEXPECTED
        if code is None:
            write_log(logging.INFO, "renewed", table=table)
            return
        write_log(logging.ERROR, "not_measured", table=table, code=code)
        self._failed[table] = number, time.monotonic() + RETRY_SECONDS


KEEP_SECONDS: Final = 30.0
N_ENTRIES_MORE: Final = 2_000  # since it was last written: half a second of a start
SHARE_MORE: Final = 8  # of a longer ledger, one part in so many: writing takes as long as it is


class Keeping(Background):
    """A thread that writes the checkpoint of a ledger; a context manager."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__("keeping", KEEP_SECONDS)
        self._ledger = ledger
        self._has_failed = False

    @property
    def has_work(self) -> bool:
        """Every ledger may become long."""
        return True

    def look(self) -> None:
        """Write the checkpoint, if the ledger has become longer by much."""
        try:
            n_entries, _ = self._ledger.position
            self._ledger.keep_state(max(N_ENTRIES_MORE, n_entries // SHARE_MORE))
        except (OSError, TacitError, NotAState) as error:
            if not self._has_failed:
                write_log(logging.WARNING, "checkpoint_not_written", error=type(error).__name__)
            self._has_failed = True
