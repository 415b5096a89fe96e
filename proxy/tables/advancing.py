"""Moving the horizons of growing tables: at the start of a server, and while it runs.

What may be read is decided by the owner's configuration and the clock; the gate reads, checks what
was readable before, and writes it down. What fails is logged and tried again: history answers
meanwhile. Nothing here sees rows.
"""

import datetime as dt
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from accountant.gate.gate import Gate
from cube.refusals import CannotStart, LedgerUnavailable, SourceUnavailable, TacitError
from proxy.config.columns import Closing
from proxy.monitoring.background import UNEXPECTED, Background
from proxy.monitoring.logs import write_log

LOOK_SECONDS: Final = 60.0  # between looks at the clock
RETRY_SECONDS: Final = 600.0  # after a failure: every attempt reads all of the data
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
            raise
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
    """A thread that moves horizons by the clock; a context manager.

    Parameters
    ----------
    tables : sequence of Growing
    """

    def __init__(self, tables: Sequence[Growing]) -> None:
        super().__init__("advancing", LOOK_SECONDS)
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
            self._not_before[table] = time.monotonic() + RETRY_SECONDS


def _advanced(gate: Gate, closing: Closing) -> bool:
    """Move a horizon to where rows are closed now, if it is not there yet; whether this did."""
    by = BY_OWNER if closing.after is None else BY_CLOCK
    horizon = closing.horizon(gate.schema, dt.datetime.now(dt.UTC))
    is_new = gate.advance(horizon, by)
    if is_new:
        write_log(logging.INFO, "advanced", table=gate.schema.table)
    return is_new
