"""Keeping what a long ledger costs for the next start, while a server runs.

The file is beside the ledger's key (`accountant/ledger/checkpoint.py`). Nothing depends on it but
how long a start takes: what fails is logged, once. Nothing here sees rows.
"""

import logging
from typing import Final

from accountant.ledger.ledger import Ledger
from cube.refusals import TacitError
from proxy.monitoring.logs import write_log
from proxy.tables.background import Background

LOOK_SECONDS: Final = 30.0
N_ENTRIES_MORE: Final = 2_000  # since it was last written: a second of a start


class Keeping(Background):
    """A thread that writes the checkpoint of a ledger; a context manager.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__("keeping", LOOK_SECONDS)
        self._ledger = ledger
        self._has_failed = False

    @property
    def has_work(self) -> bool:
        """Every ledger may become long."""
        return True

    def look(self) -> None:
        """Write the checkpoint, if the ledger has become longer by much."""
        try:
            self._ledger.keep_costs(N_ENTRIES_MORE)
        except (OSError, TacitError) as error:
            if not self._has_failed:
                write_log(logging.WARNING, "checkpoint_not_written", error=type(error).__name__)
            self._has_failed = True
