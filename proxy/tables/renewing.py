"""Reading the data of a new generation while a server runs, once the ledger says that there is one.

Until it is read, and if it is not the data that the ledger says, nothing is measured: the gate
compares. What fails is logged and tried again. Nothing here sees rows.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from accountant.gate.gate import Gate
from accountant.source import Source
from cube.refusals import TacitError
from proxy.monitoring.background import UNEXPECTED, Background
from proxy.monitoring.logs import write_log
from proxy.tables.advancing import CHANGED

LOOK_SECONDS: Final = 0.5
RETRY_SECONDS: Final = 60.0  # after a failure: every attempt reads all of the data


@dataclass(frozen=True, slots=True)
class Renewable:
    """A table that does not grow, and how its data is read."""

    gate: Gate
    read: Callable[[], Source]


class Renewing(Background):
    """A thread that reads the data of new generations; a context manager.

    Parameters
    ----------
    tables : sequence of Renewable
    """

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
